//! Derives the table of served calls from a published API schema.
//!
//! In: a file with one method a line (the form of `schema.jsonl`). Out: `calls.toml` and `params.toml` in our own, smaller form:
//! every parameter definition is written once (`name` or `name#2` where calls differ), every property-string format once, and the
//! options of a container once as a block. Run by hand when the schema changes; the result is committed and read at start.
//! Deliberately absent: descriptions, return types, and every call outside the served areas.
use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Why a table could not be derived.
#[derive(Debug, thiserror::Error)]
pub enum DeriveError {
    /// A line is not JSON.
    #[error("line {line} of the schema is not JSON")]
    Line {
        /// 1-based line number.
        line: usize,
        /// The parser's error.
        #[source]
        source: serde_json::Error,
    },
    /// A method has no path.
    #[error("line {line} of the schema names no {key}")]
    Missing {
        /// 1-based line number.
        line: usize,
        /// The missing key.
        key: &'static str,
    },
}

/// The two files.
#[derive(Debug)]
pub struct Derived {
    /// `calls.toml`
    pub calls: String,
    /// `params.toml`
    pub params: String,
}

/// Whole areas that are served.
const AREAS: &[&str] = &[
    "/access/acl",
    "/access/permissions",
    "/access/roles",
    "/access/users",
    "/access/ticket",
    "/access/password",
    "/pools",
    "/nodes/{node}/lxc",
    "/nodes/{node}/tasks",
    "/nodes/{node}/vzdump",
    "/nodes/{node}/storage",
    "/storage",
];
/// Single calls that are served.
const SINGLE: &[&str] = &[
    "GET /version",
    "GET /cluster/resources",
    "GET /cluster/nextid",
    "GET /cluster/status",
    "GET /cluster/tasks",
    "GET /cluster/options",
    "GET /cluster/backup",
    "GET /cluster/backup-info/not-backed-up",
    "GET /nodes",
    "GET /nodes/{node}/status",
    "GET /nodes/{node}/version",
    "GET /nodes/{node}/time",
    "GET /nodes/{node}/network",
    "GET /nodes/{node}/qemu",
    "GET /access",
    "GET /nodes/{node}/subscription",
    "GET /nodes/{node}/dns",
    "GET /nodes/{node}/aplinfo",
    "GET /nodes/{node}/capabilities",
    "GET /cluster/sdn/zones",
    "GET /nodes/{node}/sdn/zones",
    "GET /cluster/sdn/vnets",
    "GET /nodes/{node}/certificates/info",
    "GET /nodes/{node}/sdn/zones/{zone}/content",
    "GET /nodes/{node}/syslog",
    "GET /nodes/{node}/journal",
    "GET /nodes/{node}/services",
    "GET /nodes/{node}/services/{service}/state",
    "GET /nodes/{node}/disks/list",
    "GET /cluster/firewall/options",
    "PUT /cluster/firewall/options",
    "GET /cluster/firewall/refs",
    "GET /nodes/{node}/firewall/options",
    "PUT /nodes/{node}/firewall/options",
    "GET /access/domains",
    "GET /cluster/ha/status/current",
    "GET /cluster/notifications/targets",
    "GET /cluster/notifications/matchers",
    "GET /cluster/notifications/endpoints/sendmail",
    "GET /cluster/replication",
    "GET /nodes/{node}/apt/update",
    "GET /nodes/{node}/disks/smart",
    "GET /nodes/{node}/disks/directory",
    "GET /nodes/{node}/disks/lvm",
    "GET /nodes/{node}/disks/zfs",
    "GET /nodes/{node}/rrddata",
];
/// Parts of the areas that are not.
const LEFT_OUT: &[&str] = &[
    "/vncproxy",
    "/termproxy",
    "/vncwebsocket",
    "/spiceproxy",
    "/mtunnel",
    "/mtunnelwebsocket",
    "/remote_migrate",
    "/rrd",
    "/tfa",
    "/unlock-tfa",
    "/upload",
    "/oci-registry-pull",
    "/identity",
];

/// Derives both files.
///
/// # Errors
/// When the schema is not what its form promises.
pub fn derive(schema: &str) -> Result<Derived, DeriveError> {
    let mut book = Book::default();
    let mut calls: Vec<CallLine> = Vec::new();
    for (index, text) in schema.lines().enumerate() {
        let line = index + 1;
        let method: Value =
            serde_json::from_str(text).map_err(|source| DeriveError::Line { line, source })?;
        let path =
            method.get("path").and_then(Value::as_str).ok_or(DeriveError::Missing { line, key: "path" })?;
        let verb = method
            .get("method")
            .and_then(Value::as_str)
            .ok_or(DeriveError::Missing { line, key: "method" })?;
        if served(verb, path) {
            calls.push(CallLine::read(verb, path, &method, &mut book));
        }
    }
    let block = guest_block(&calls);
    let mut out = String::from("# Derived by `pve-sim derive-calls`; do not edit by hand.\n");
    let _ = writeln!(out, "\n[block]\nguest-options = [{}]", quoted(&block));
    calls.sort_by(|a, b| (&a.path, &a.verb).cmp(&(&b.path, &b.verb)));
    for call in &calls {
        call.write(&mut out, &block);
    }
    Ok(Derived { calls: out, params: book.write() })
}

fn served(verb: &str, path: &str) -> bool {
    let inside = AREAS
        .iter()
        .any(|area| path == *area || path.strip_prefix(area).is_some_and(|rest| rest.starts_with('/')));
    let left_out = LEFT_OUT.iter().any(|part| path.contains(part) && !path.ends_with("/rrddata"));
    (inside && !left_out) || SINGLE.contains(&format!("{verb} {path}").as_str())
}

/// What creating and changing a container have in common.
fn guest_block(calls: &[CallLine]) -> Vec<String> {
    let named = |at: &str| {
        calls.iter().find(|call| format!("{} {}", call.verb, call.path) == at).map(|call| call.params.clone())
    };
    let (Some(create), Some(change)) =
        (named("POST /nodes/{node}/lxc"), named("PUT /nodes/{node}/lxc/{vmid}/config"))
    else {
        return Vec::new();
    };
    create
        .into_iter()
        .filter(|name| change.contains(name) && !matches!(name.split('#').next(), Some("node" | "vmid")))
        .collect()
}

struct CallLine {
    verb: String,
    path: String,
    params: Vec<String>,
    check: Option<Value>,
    user: Option<String>,
    proxied: bool,
    token: bool,
}

impl CallLine {
    fn read(verb: &str, path: &str, method: &Value, book: &mut Book) -> Self {
        let permissions = method.get("permissions");
        let properties = method.pointer("/parameters/properties").and_then(Value::as_object);
        let params = properties
            .map(|all| all.iter().map(|(name, spec)| book.name_of(name, spec)).collect())
            .unwrap_or_default();
        Self {
            verb: verb.to_owned(),
            path: path.to_owned(),
            params,
            check: permissions.and_then(|p| p.get("check")).cloned(),
            user: permissions.and_then(|p| p.get("user")).and_then(Value::as_str).map(str::to_owned),
            proxied: method.get("proxyto").is_some(),
            token: method.get("allowtoken").is_none_or(|v| v.as_u64() != Some(0)),
        }
    }

    fn write(&self, out: &mut String, block: &[String]) {
        let _ = writeln!(out, "\n[[call]]\nat = \"{} {}\"", self.verb, self.path);
        if self.proxied {
            out.push_str("proxied = true\n");
        }
        if !self.token {
            out.push_str("token = false\n");
        }
        if let Some(user) = &self.user {
            let _ = writeln!(out, "user = \"{user}\"");
        }
        if let Some(check) = &self.check {
            let _ = writeln!(out, "check = {}", strings(check));
        }
        let whole = !block.is_empty() && block.iter().all(|name| self.params.contains(name));
        let own: Vec<String> =
            self.params.iter().filter(|name| !whole || !block.contains(name)).cloned().collect();
        if whole {
            out.push_str("blocks = [\"guest-options\"]\n");
        }
        if !own.is_empty() {
            let _ = writeln!(out, "params = [{}]", quoted(&own));
        }
    }
}

/// A permission expression as nested TOML arrays; numbers become strings so that arrays stay of one kind of leaf.
fn strings(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(strings).collect::<Vec<_>>().join(", ")),
        Value::String(text) => format!("{text:?}"),
        other => format!("\"{other}\""),
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// Every parameter and format seen so far, each once.
#[derive(Default)]
struct Book {
    params: BTreeMap<String, Vec<Map<String, Value>>>,
    formats: Vec<(String, Map<String, Value>)>,
}

impl Book {
    fn name_of(&mut self, name: &str, spec: &Value) -> String {
        let small = self.shrink(name, spec);
        let variants = self.params.entry(name.to_owned()).or_default();
        let index = variants.iter().position(|known| *known == small).unwrap_or_else(|| {
            variants.push(small);
            variants.len() - 1
        });
        if index == 0 { name.to_owned() } else { format!("{name}#{}", index + 1) }
    }

    fn shrink(&mut self, name: &str, spec: &Value) -> Map<String, Value> {
        let mut small = Map::new();
        let Some(spec) = spec.as_object() else { return small };
        for (from, to) in [
            ("type", "type"),
            ("optional", "optional"),
            ("minimum", "min"),
            ("maximum", "max"),
            ("minLength", "min-length"),
            ("maxLength", "max-length"),
            ("enum", "one-of"),
            ("requires", "requires"),
            ("pattern", "pattern"),
            ("default_key", "default-key"),
        ] {
            if let Some(value) = spec.get(from).filter(|value| !value.is_null()) {
                let value = match to {
                    "one-of" => squash(value),
                    "optional" | "default-key" => Value::Bool(truthy(value)),
                    "pattern" => Value::String(
                        value.as_str().unwrap_or_default().replace("(?^:", "(?:").replace("\\0", "\\x00"),
                    ),
                    "min" | "max" => value
                        .as_str()
                        .and_then(|text| text.parse::<i64>().ok())
                        .map_or_else(|| value.clone(), Value::from),
                    _ => value.clone(),
                };
                small.insert(to.to_owned(), value);
            }
        }
        match spec.get("format") {
            Some(Value::String(format)) => drop(small.insert("format".into(), Value::String(format.clone()))),
            Some(Value::Object(inner)) => {
                drop(small.insert("format".into(), Value::String(self.format_of(name, inner))))
            }
            _ => {}
        }
        small
    }

    fn format_of(&mut self, name: &str, inner: &Map<String, Value>) -> String {
        let keys: Map<String, Value> =
            inner.iter().map(|(key, spec)| (key.clone(), Value::Object(self.shrink(key, spec)))).collect();
        if let Some((known, _)) = self.formats.iter().find(|(_, held)| *held == keys) {
            return format!("@{known}");
        }
        let plain = name.trim_end_matches("[n]");
        let taken = self.formats.iter().filter(|(held, _)| held.split('#').next() == Some(plain)).count();
        let chosen = if taken == 0 { plain.to_owned() } else { format!("{plain}#{}", taken + 1) };
        self.formats.push((chosen.clone(), keys));
        format!("@{chosen}")
    }

    fn write(&self) -> String {
        let mut out = String::from("# Derived by `pve-sim derive-calls`; do not edit by hand.\n\n[param]\n");
        for (name, variants) in &self.params {
            for (index, spec) in variants.iter().enumerate() {
                let key = if index == 0 { name.clone() } else { format!("{name}#{}", index + 1) };
                let _ = writeln!(out, "{key:?} = {}", inline(spec));
            }
        }
        for (name, keys) in &self.formats {
            let _ = writeln!(out, "\n[format.{name:?}]");
            for (key, spec) in keys {
                let _ = writeln!(out, "{key:?} = {}", spec.as_object().map(inline).unwrap_or_default());
            }
        }
        out
    }
}

/// `mp0, mp1, …, mp255` is written as `mp[0-255]`.
fn squash(value: &Value) -> Value {
    let mut out: Vec<String> = Vec::new();
    let mut run: Option<(String, u32)> = None;
    let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    let close = |run: &mut Option<(String, u32)>, out: &mut Vec<String>| {
        if let Some((stem, last)) = run.take() {
            out.push(if last == 0 { format!("{stem}0") } else { format!("{stem}[0-{last}]") });
        }
    };
    for word in words {
        let stem = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = word.strip_prefix(stem).and_then(|digits| digits.parse::<u32>().ok());
        match (&mut run, number) {
            (Some((held, last)), Some(number)) if held == stem && *last + 1 == number => *last = number,
            (_, Some(0)) if !stem.is_empty() => {
                close(&mut run, &mut out);
                run = Some((stem.to_owned(), 0));
            }
            _ => {
                close(&mut run, &mut out);
                out.push(word.to_owned());
            }
        }
    }
    close(&mut run, &mut out);
    Value::from(out)
}

fn truthy(value: &Value) -> bool {
    value.as_u64() == Some(1) || value.as_bool() == Some(true) || value.as_str() == Some("1")
}

fn inline(spec: &Map<String, Value>) -> String {
    let parts: Vec<String> = spec
        .iter()
        .map(|(key, value)| match value {
            Value::String(text) if !text.contains('\'') => format!("{key} = '{text}'"),
            other => format!("{key} = {other}"),
        })
        .collect();
    format!("{{ {} }}", parts.join(", "))
}
