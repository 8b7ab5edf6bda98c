//! The configuration of the firewall.
//!
//! In: a call. Out: the content of a file, or the changed file. The guest need not exist: its file stays for the next guest with that
//! number.
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::lxc::config::same_digest;
use super::{Answer, Call, Handler, NOTHING, Reply, data};
use crate::access::credential::hex;
use crate::fail::{Fallible, Refusal, host};
use crate::firewall::address::{self, Address};
use crate::firewall::config::Alias;
use crate::firewall::{Config, Entry, IpSet, Rule, file};
use crate::node::Node;
use crate::schema::format::split_list;
use crate::schema::table::lookup;
use crate::task::index::write_whole;
use sha2::{Digest, Sha256};

/// Of a file that is not there: the name of nothing, by the real one's reckoning.
const NOTHING_DIGEST: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
/// Parameters that are no fields of a rule.
const NO_FIELDS: &[&str] = &["node", "vmid", "pos", "digest", "moveto", "delete"];

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    let at = at.replace("/nodes/{node}/lxc/{vmid}/firewall", "~");
    Some(match at.as_str() {
        "GET ~" => |_| {
            data(["rules", "aliases", "ipset", "refs", "options"].map(|name| json!({"name": name})).to_vec())
        },
        "GET ~/options" | "GET /cluster/firewall/options" | "GET /nodes/{node}/firewall/options" => options,
        "PUT ~/options" | "PUT /cluster/firewall/options" | "PUT /nodes/{node}/firewall/options" => {
            change_options
        }
        "GET ~/ipset" => sets,
        "POST ~/ipset" => make_set,
        "DELETE ~/ipset/{name}" => drop_set,
        "GET ~/ipset/{name}" => entries,
        "POST ~/ipset/{name}" => add_entry,
        "GET ~/ipset/{name}/{cidr}" => entry,
        "PUT ~/ipset/{name}/{cidr}" => change_entry,
        "DELETE ~/ipset/{name}/{cidr}" => drop_entry,
        "GET ~/rules" => rules,
        "POST ~/rules" => add_rule,
        "GET ~/rules/{pos}" => rule,
        "PUT ~/rules/{pos}" => change_rule,
        "DELETE ~/rules/{pos}" => drop_rule,
        "GET ~/aliases" => aliases,
        "POST ~/aliases" => add_alias,
        "DELETE ~/aliases/{name}" => drop_alias,
        "GET ~/refs" | "GET /cluster/firewall/refs" => refs,
        "GET ~/log" => |_| {
            Ok(Answer::Counted(json!([{"n": 1, "t": "unable to open file - No such file or directory"}]), 1))
        },
        _ => return None,
    })
}

/// Whose file a call is about.
fn name_of(call: &Call<'_>) -> String {
    match (call.text("vmid"), call.text("node")) {
        (Some(vmid), _) => format!("{vmid}.fw"),
        (None, Some(_)) => "host.fw".to_owned(),
        (None, None) => "cluster.fw".to_owned(),
    }
}

/// The text of a file; nothing when there is none.
#[must_use]
pub fn text_of(node: &Node, name: &str) -> String {
    std::fs::read_to_string(node.paths.etc("firewall").join(name)).unwrap_or_default()
}

/// Writes a file, or removes it when nothing is left in it.
///
/// # Errors
/// When the file cannot be written.
pub fn keep(node: &Node, name: &str, config: &Config) -> Fallible<()> {
    let folder = node.paths.etc("firewall");
    let place = folder.join(name);
    let done = if config.is_empty() {
        match std::fs::remove_file(&place) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    } else {
        std::fs::create_dir_all(&folder).and_then(|()| write_whole(&place, &file::print(config)))
    };
    done.map_err(|error| host("write of firewall file", &error))
}

fn digest_of(text: &str) -> String {
    if text.is_empty() {
        return NOTHING_DIGEST.to_owned();
    }
    let mut name = hex(&Sha256::digest(text));
    name.truncate(40);
    name
}

fn read(call: &Call<'_>) -> (Config, String) {
    let text = text_of(call.node, &name_of(call));
    (file::parse(&text), digest_of(&text))
}

/// A change under the world's lock, for a caller that has read the current state (same digest).
fn change(call: &Call<'_>, how: impl FnOnce(&mut Config) -> Fallible<()>) -> Reply {
    let _alone = call.node.world();
    let (mut config, digest) = read(call);
    same_digest(call.text("digest"), &digest)?;
    how(&mut config)?;
    keep(call.node, &name_of(call), &config)?;
    NOTHING
}

/// A value in its JSON form.
fn shown(call: &Call<'_>, at: &str, key: &str, value: &str) -> Value {
    let spec = call.node.table.call(at).and_then(|spec| lookup(&spec.params, key));
    match spec.and_then(|spec| spec.kind.as_deref()) {
        Some("boolean" | "integer") => {
            value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number))
        }
        _ => json!(value),
    }
}

/// The call that changes the options of this one's kind.
fn options_call(call: &Call<'_>) -> &'static str {
    match (call.text("vmid"), call.text("node")) {
        (Some(_), _) => "PUT /nodes/{node}/lxc/{vmid}/firewall/options",
        (None, Some(_)) => "PUT /nodes/{node}/firewall/options",
        (None, None) => "PUT /cluster/firewall/options",
    }
}

fn options(call: &Call<'_>) -> Reply {
    let (config, digest) = read(call);
    let held = config.options.iter();
    let mut out: Map<String, Value> =
        held.map(|(key, value)| (key.clone(), shown(call, options_call(call), key, value))).collect();
    out.insert("digest".to_owned(), json!(digest));
    data(out)
}

fn change_options(call: &Call<'_>) -> Reply {
    let known = call.node.table.call(options_call(call));
    let deleted = call.text("delete").unwrap_or_default();
    for name in split_list(&deleted) {
        let other = NO_FIELDS.contains(&name);
        if other || known.is_none_or(|spec| lookup(&spec.params, name).is_none()) {
            return Err(Refusal::param("delete", format!("no such option '{name}'")));
        }
    }
    let given = fields(call);
    change(call, |config| {
        split_list(&deleted).for_each(|name| drop(config.options.remove(name)));
        config.options.extend(given);
        Ok(())
    })
}

/// Parameters that are kept.
fn fields(call: &Call<'_>) -> BTreeMap<String, String> {
    let names = call.params.keys().filter(|name| !NO_FIELDS.contains(&name.as_str()));
    names.filter_map(|name| Some((name.clone(), call.text(name)?))).collect()
}

fn add(out: &mut Value, key: &str, text: &str) {
    if let Some(map) = out.as_object_mut().filter(|_| !text.is_empty()) {
        map.insert(key.to_owned(), json!(text));
    }
}

fn sets(call: &Call<'_>) -> Reply {
    let (config, digest) = read(call);
    let row = |(name, set): (&String, &IpSet)| {
        let mut out = json!({"name": name, "digest": digest});
        add(&mut out, "comment", &set.comment);
        out
    };
    data(config.sets.iter().map(row).collect::<Vec<_>>())
}

fn make_set(call: &Call<'_>) -> Reply {
    let (name, comment) = (call.need("name")?, call.text("comment"));
    change(call, |config| {
        let held = match call.text("rename") {
            // Of its own name it only gets another comment.
            Some(old) => {
                config.set(&old)?;
                if old != name && config.sets.contains_key(&name) {
                    return Err(Refusal::param("name", format!("IPSet '{name}' already exists")));
                }
                config.sets.remove(&old).unwrap_or_default()
            }
            None if config.sets.contains_key(&name) => {
                return Err(Refusal::param("name", format!("IPSet '{name}' already exists")));
            }
            None => IpSet::default(),
        };
        let comment = comment.unwrap_or_else(|| held.comment.clone());
        config.sets.insert(name, IpSet { comment, ..held });
        Ok(())
    })
}

fn drop_set(call: &Call<'_>) -> Reply {
    let name = call.need("name")?;
    change(call, |config| {
        if !config.set(&name)?.entries.is_empty() && !call.flag("force") {
            return Err(Refusal::die(format!("IPSet '{name}' is not empty")));
        }
        config.sets.remove(&name);
        Ok(())
    })
}

fn entry_row(entry: &Entry, digest: &str) -> Value {
    let mut out = json!({"cidr": entry.cidr, "digest": digest});
    add(&mut out, "comment", &entry.comment);
    if let Some(map) = out.as_object_mut().filter(|_| entry.nomatch) {
        map.insert("nomatch".to_owned(), json!(1));
    }
    out
}

fn entries(call: &Call<'_>) -> Reply {
    let (mut config, digest) = read(call);
    let set = config.set(&call.need("name")?)?;
    data(set.entries.iter().map(|entry| entry_row(entry, &digest)).collect::<Vec<_>>())
}

/// An address as it is kept.
fn kept(config: &Config, text: &str) -> Fallible<String> {
    match address::read(text) {
        Some(Address::Network(cidr)) => Ok(cidr),
        Some(Address::Everything) => {
            Err(Refusal::param("cidr", "a zero prefix is not allowed in ipset entries"))
        }
        Some(Address::Alias(name)) if config.aliases.contains_key(&name) => Ok(name),
        Some(Address::Alias(name)) => Err(Refusal::die(format!("no such alias '{name}'"))),
        None => Err(Refusal::param(
            "cidr",
            "invalid format - value does not look like a valid IP address or CIDR network\n",
        )),
    }
}

fn add_entry(call: &Call<'_>) -> Reply {
    let (name, cidr) = (call.need("name")?, call.need("cidr")?);
    change(call, |config| {
        config.set(&name)?;
        let cidr = kept(config, &cidr)?;
        let comment = call.text("comment").unwrap_or_default();
        config.set(&name)?.add(Entry { cidr, nomatch: call.flag("nomatch"), comment })
    })
}

/// How an entry is found: as it is kept, however it is written.
fn wanted(call: &Call<'_>) -> Fallible<String> {
    let cidr = call.need("cidr")?;
    Ok(match address::read(&cidr) {
        Some(Address::Network(kept)) => kept,
        _ => cidr,
    })
}

fn entry(call: &Call<'_>) -> Reply {
    let (mut config, digest) = read(call);
    let cidr = wanted(call)?;
    let set = config.set(&call.need("name")?)?;
    let found = set.entries.iter().find(|entry| entry.cidr == cidr);
    found.map_or_else(
        || Err(Refusal::param("cidr", "no such IP/Network")),
        |entry| data(entry_row(entry, &digest)),
    )
}

fn change_entry(call: &Call<'_>) -> Reply {
    let (name, cidr) = (call.need("name")?, wanted(call)?);
    change(call, |config| {
        let held = config.set(&name)?.entries.iter_mut().find(|entry| entry.cidr == cidr);
        let held = held.ok_or_else(|| Refusal::param("cidr", "no such IP/Network"))?;
        held.comment = call.text("comment").unwrap_or_default();
        held.nomatch = call.flag("nomatch");
        Ok(())
    })
}

fn drop_entry(call: &Call<'_>) -> Reply {
    let (name, cidr) = (call.need("name")?, wanted(call)?);
    change(call, |config| {
        config.set(&name)?.entries.retain(|entry| entry.cidr != cidr);
        Ok(())
    })
}

fn rule_row(call: &Call<'_>, rule: &Rule, digest: &str) -> Map<String, Value> {
    let at = "POST /nodes/{node}/lxc/{vmid}/firewall/rules";
    let mut out: Map<String, Value> =
        rule.iter().map(|(key, value)| (key.clone(), shown(call, at, key, value))).collect();
    out.insert("digest".to_owned(), json!(digest));
    let version = ["source", "dest"].iter().find_map(|key| address::version(rule.get(*key)?));
    out.extend(version.map(|version| ("ipversion".to_owned(), json!(version))));
    out
}

fn rules(call: &Call<'_>) -> Reply {
    let (config, digest) = read(call);
    let rows = config.rules.iter().enumerate().map(|(at, rule)| {
        let mut out = rule_row(call, rule, &digest);
        out.insert("pos".to_owned(), json!(at));
        Value::Object(out)
    });
    data(rows.collect::<Vec<_>>())
}

fn rule(call: &Call<'_>) -> Reply {
    let (config, digest) = read(call);
    let pos = call.need("pos")?;
    let at = config.position(&pos)?;
    let mut out = config.rules.get(at).map(|rule| rule_row(call, rule, &digest)).unwrap_or_default();
    out.insert("pos".to_owned(), json!(pos));
    data(out)
}

/// Rejects a rule that is not valid.
fn check(config: &Config, rule: &Rule) -> Fallible<()> {
    for key in ["source", "dest"] {
        let Some(text) = rule.get(key) else { continue };
        if let Some(name) = text.strip_prefix('+').filter(|name| !config.sets.contains_key(*name)) {
            return Err(Refusal::param(key, format!("no such ipset '{name}'")));
        }
    }
    if rule.get("iface").is_some_and(|iface| !is_interface(iface)) {
        return Err(Refusal::param("iface", "value does not match the regex pattern 'net\\d+'"));
    }
    let ports = ["dport", "sport"].into_iter().find(|key| rule.contains_key(*key));
    match ports.filter(|_| !rule.contains_key("proto") && !rule.contains_key("macro")) {
        Some(key) => {
            Err(Refusal::param("proto", format!("missing property - '{key}' requires this property")))
        }
        None => Ok(()),
    }
}

fn is_interface(name: &str) -> bool {
    name.strip_prefix("net").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// A new rule comes first, and is off unless the call enables it.
fn add_rule(call: &Call<'_>) -> Reply {
    let mut rule = fields(call);
    rule.entry("enable".to_owned()).or_insert_with(|| "0".to_owned());
    change(call, |config| {
        check(config, &rule)?;
        let at = call.number("pos").and_then(|pos| usize::try_from(pos).ok()).unwrap_or_default();
        config.rules.insert(at.min(config.rules.len()), rule);
        Ok(())
    })
}

fn change_rule(call: &Call<'_>) -> Reply {
    let (pos, given, deleted) = (call.need("pos")?, fields(call), call.text("delete").unwrap_or_default());
    change(call, |config| {
        let at = config.position(&pos)?;
        if let Some(to) = call.number("moveto").and_then(|to| usize::try_from(to).ok()) {
            config.reorder(at, to);
            return Ok(());
        }
        let mut rule = config.rules.get(at).cloned().unwrap_or_default();
        split_list(&deleted).for_each(|name| drop(rule.remove(name)));
        rule.extend(given);
        check(config, &rule)?;
        config.rules.get_mut(at).into_iter().for_each(|held| rule.clone_into(held));
        Ok(())
    })
}

fn drop_rule(call: &Call<'_>) -> Reply {
    let pos = call.need("pos")?;
    change(call, |config| {
        let at = config.position(&pos)?;
        config.rules.remove(at);
        Ok(())
    })
}

fn aliases(call: &Call<'_>) -> Reply {
    let (config, digest) = read(call);
    let rows = config.aliases.iter().map(|(name, alias)| {
        let mut out = json!({"name": name, "cidr": alias.cidr, "digest": digest, "ipversion": address::version(&alias.cidr)});
        add(&mut out, "comment", &alias.comment);
        out
    });
    data(rows.collect::<Vec<_>>())
}

fn add_alias(call: &Call<'_>) -> Reply {
    let (name, cidr) = (call.need("name")?, call.need("cidr")?);
    change(call, |config| {
        if config.aliases.contains_key(&name) {
            return Err(Refusal::param("name", format!("alias '{name}' already exists")));
        }
        let comment = call.text("comment").unwrap_or_default();
        config.aliases.insert(name, Alias { cidr, comment });
        Ok(())
    })
}

fn drop_alias(call: &Call<'_>) -> Reply {
    let name = call.need("name")?;
    change(call, |config| {
        config.aliases.remove(&name);
        Ok(())
    })
}

/// What rules can name: sets and aliases.
fn refs(call: &Call<'_>) -> Reply {
    let (config, _) = read(call);
    let kind = call.text("type");
    let scope = if call.text("vmid").is_some() { "guest" } else { "dc" };
    let wanted = |held: &str| kind.as_deref().is_none_or(|kind| kind == held);
    let mut rows = Vec::new();
    for (name, set) in config.sets.iter().filter(|_| wanted("ipset")) {
        let mut row = json!({"type": "ipset", "name": name, "ref": format!("+{name}"), "scope": scope});
        add(&mut row, "comment", &set.comment);
        rows.push(row);
    }
    for (name, alias) in config.aliases.iter().filter(|_| wanted("alias")) {
        let mut row = json!({"type": "alias", "name": name, "ref": name, "scope": scope});
        add(&mut row, "comment", &alias.comment);
        rows.push(row);
    }
    data(rows)
}
