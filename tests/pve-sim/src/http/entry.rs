//! The handling of one request, from method to call.
//!
//! The order is the real daemon's and decides which of several faults is named. In: a [`Request`]. Out: a [`Response`]; nothing here
//! panics or refuses to answer.
use std::sync::Arc;

use serde_json::{Value, json};

use super::params::{self, BodyError, Params};
use crate::access::credential::{Caller, Presented, authenticate};
use crate::access::evaluate::Judge;
use crate::call::{Answer, Call, handler};
use crate::fail::Refusal;
use crate::fault::Strike;
use crate::node::Node;
use crate::schema::check;
use crate::schema::table::{CallSpec, Check};
use crate::wire::{JSON, Request, Response, Spoil};

/// The path prefix of the JSON interface.
const PREFIX: &str = "/api2/json";

/// Serves one request.
#[must_use]
pub fn serve(node: &Arc<Node>, request: &Request) -> Response {
    if let Some(response) = node.guard.judge(request) {
        return response;
    }
    let struck = node.faults.strike(&request.method, &request.target);
    if let Some(Strike::Instead(response)) = struck {
        return *response;
    }
    let response = respond(node, request);
    match struck {
        Some(Strike::Afterwards(other)) => *other,
        Some(Strike::Spoil(spoil)) => Response { spoil, ..response },
        Some(Strike::Instead(_)) | None => response,
    }
}

fn respond(node: &Arc<Node>, request: &Request) -> Response {
    let method = request.method.as_str();
    if !matches!(method, "GET" | "POST" | "PUT" | "DELETE") {
        return Response::empty(501, &format!("method '{method}' not available"));
    }
    let path = request.target.split('?').next().unwrap_or_default();
    if path != PREFIX && !path.starts_with("/api2/json/") {
        return Response::text(404, "not found", None, "not found");
    }
    let who = match login(node, request, path) {
        Ok(who) => who,
        Err(reason) => {
            let delay_ms = u64::try_from(node.settings.login_delay.as_millis()).unwrap_or(u64::MAX);
            return Response { delay_ms, ..Response::empty(401, reason) };
        }
    };
    let (segments, params) = match params::read(request) {
        Ok(read) => read,
        Err(error) => return body_refused(&error),
    };
    match dispatch(node, method, &segments, params, who) {
        Ok(Answer::Data(data)) => Response::text(200, "OK", Some(JSON), json!({ "data": data }).to_string()),
        Ok(Answer::Counted(data, total)) => {
            Response::text(200, "OK", Some(JSON), json!({ "data": data, "total": total }).to_string())
        }
        Ok(Answer::Download { name, text }) => {
            let disposition = Some(format!("attachment; filename=\"{name}\""));
            Response { disposition, ..Response::text(200, "OK", Some("text/plain"), text) }
        }
        Err(Denied::LoginFailed) => {
            let body = json!({ "data": Value::Null, "message": "authentication failure\n" });
            let delay_ms = u64::try_from(node.settings.login_delay.as_millis()).unwrap_or(u64::MAX);
            Response {
                delay_ms,
                ..Response::text(401, "authentication failure", Some(JSON), body.to_string())
            }
        }
        Err(Denied::NoMethod(text)) => Response::text(
            501,
            &text,
            Some(JSON),
            json!({ "data": Value::Null, "message": text }).to_string(),
        ),
        Err(Denied::Refused(refusal)) => refused(&refusal),
    }
}

/// Logins themselves need no login.
fn login(node: &Node, request: &Request, path: &str) -> Result<Option<Caller>, &'static str> {
    let open =
        path == "/api2/json/access/ticket" && request.method != "PUT" || path == "/api2/json/access/domains";
    if open && request.header("authorization").is_none() {
        return Ok(None);
    }
    let cookie = request
        .header("cookie")
        .and_then(|all| all.split(';').find_map(|part| part.trim().strip_prefix("PVEAuthCookie=")));
    let shown = Presented {
        authorization: request.header("authorization"),
        cookie,
        csrf: request.header("csrfpreventiontoken"),
        reads_only: request.method == "GET",
    };
    let world = node.world();
    authenticate(&world.access, &world.secrets, &shown, node.clock.now_s()).map(Some)
}

fn body_refused(error: &BodyError) -> Response {
    match error {
        BodyError::TooLarge => Response::text(501, "for data too large", None, "for data too large"),
        BodyError::ContentType(kind) => {
            let text = format!("upload 'Content-Type '{kind}' not implemented");
            Response::text(506, &text, None, text.clone())
        }
        BodyError::Json(at) => {
            let text = format!(
                "malformed JSON string, neither tag, array, object, number, string or atom, at character offset {at} (before \"(end of string)\") at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 934."
            );
            Response::text(500, &text, None, format!("{text}\n"))
        }
    }
}

fn refused(refusal: &Refusal) -> Response {
    let mut body = json!({ "data": Value::Null, "message": format!("{}\n", refusal.message) });
    if !refusal.errors.is_empty()
        && let Some(map) = body.as_object_mut()
    {
        map.insert("errors".to_owned(), json!(refusal.errors));
    }
    // A reason phrase is one line.
    let reason = refusal.message.lines().next().unwrap_or_default();
    Response { spoil: Spoil::Nothing, ..Response::text(refusal.status, reason, Some(JSON), body.to_string()) }
}

enum Denied {
    NoMethod(String),
    LoginFailed,
    Refused(Refusal),
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Self {
        if refusal.status == 401 { Self::LoginFailed } else { Self::Refused(refusal) }
    }
}

fn dispatch(
    node: &Arc<Node>,
    method: &str,
    segments: &[String],
    mut params: Params,
    who: Option<Caller>,
) -> Result<Answer, Denied> {
    let missing = || Denied::NoMethod(format!("Method '{method} /{}' not implemented", segments.join("/")));
    let (spec, taken) = match segments {
        [] if method == "GET" => return Ok(Answer::Data(root_index())),
        _ => node.table.find(method, segments).ok_or_else(missing)?,
    };
    let run = handler(&spec.at).ok_or_else(missing)?;
    for (name, value) in taken {
        if params.get(&name).is_some_and(|held| held.as_str() != Some(&value)) {
            return Err(Refusal::param(
                &name,
                "duplicate parameter (already defined in URI) with conflicting values!",
            )
            .into());
        }
        params.insert(name, Value::from(value));
    }
    let who = match who {
        Some(who) => who,
        None if spec.user.as_deref() == Some("world") => Caller { id: String::new(), ticket: false },
        None => return Err(Refusal::denied("user != null").into()),
    };
    if !spec.token && who.token().is_some() {
        let uri = format!("/{}", segments.join("/"));
        return Err(Refusal::denied(&format!(
            "URI '{uri}' not available with API token, need proper ticket.\n"
        ))
        .into());
    }
    permitted(node, spec, &params, &who)?;
    if spec.proxied
        && params
            .get("node")
            .and_then(Value::as_str)
            .is_some_and(|name| name != node.name && name != "localhost")
    {
        return Err(unknown_node(params.get("node").and_then(Value::as_str).unwrap_or_default()).into());
    }
    let errors = check::params(&node.table, &spec.params, &params);
    if !errors.is_empty() {
        return Err(Refusal::params(errors).into());
    }
    let call = Call { node, who, params };
    Ok(run(&call)?)
}

fn unknown_node(name: &str) -> Refusal {
    let plausible =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    let why = if plausible { "Temporary failure in name resolution" } else { "Name or service not known" };
    Refusal::die(format!("hostname lookup '{name}' failed - failed to get address info for: {name}: {why}"))
}

fn root_index() -> Value {
    json!([{"subdir": "version"}, {"subdir": "cluster"}, {"subdir": "nodes"}, {"subdir": "storage"}, {"subdir": "access"}, {"subdir": "pools"}])
}

fn permitted(node: &Node, spec: &CallSpec, params: &Params, who: &Caller) -> Result<(), Refusal> {
    if who.is_root() || matches!(spec.user.as_deref(), Some("all" | "world")) {
        return Ok(());
    }
    let Some(check) = &spec.check else { return Err(Refusal::denied("user != root@pam")) };
    let world = node.world();
    Rights { judge: world.judge(who), params }.check(check)
}

/// Evaluates the permission expressions of the call table.
struct Rights<'a> {
    judge: Judge<'a>,
    params: &'a Params,
}

impl Rights<'_> {
    fn check(&self, check: &Check) -> Result<(), Refusal> {
        let Check::List(parts) = check else { return Err(Refusal::denied_bare()) };
        let words: Vec<&str> =
            parts.iter().map(|part| if let Check::Word(word) = part { word.as_str() } else { "" }).collect();
        match words.first().copied().unwrap_or_default() {
            "and" => parts.iter().skip(1).try_for_each(|part| self.check(part)),
            "or" if parts.iter().skip(1).any(|part| self.check(part).is_ok()) => Ok(()),
            "perm" => self.perm(parts, &words),
            "perm-modify" => self.perm_modify(words.get(1).copied().unwrap_or_default()),
            "userid-param" => self.user_param(words.get(1).copied().unwrap_or_default()),
            "userid-group" => self.user_group(parts, &words),
            _ => Err(Refusal::denied_bare()),
        }
    }

    fn perm(&self, parts: &[Check], words: &[&str]) -> Result<(), Refusal> {
        let option = |name: &str| {
            words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1)).copied()
        };
        if option("require_param").is_some_and(|needed| !self.params.contains_key(needed)) {
            return Err(Refusal::denied_bare());
        }
        let path = self.fill(words.get(1).copied().unwrap_or_default());
        let path = crate::access::config::normalize_path(&path).unwrap_or(path);
        let privs: Vec<&str> = privileges(parts.get(2));
        if option("any").is_some() {
            self.judge.need_any(&path, &privs)
        } else {
            self.judge.need(&path, &privs)
        }
    }

    fn perm_modify(&self, template: &str) -> Result<(), Refusal> {
        let path = crate::access::config::normalize_path(&self.fill(template)).unwrap_or_default();
        let also =
            [("/storage/", "Datastore.Allocate"), ("/vms/", "VM.Allocate"), ("/pool/", "Pool.Allocate")];
        let mut wanted = vec!["Permissions.Modify"];
        wanted.extend(
            also.iter()
                .filter(|(prefix, _)| path.len() > prefix.len() && path.starts_with(prefix))
                .map(|(_, name)| *name),
        );
        self.judge.need_any(&path, &wanted)
    }

    fn user_param(&self, test: &str) -> Result<(), Refusal> {
        let user = self.text("userid");
        match test {
            "self" if self.judge.config.users.contains_key(&user) && self.judge.who == user => Ok(()),
            "Realm.AllocateUser" => {
                // The name is parsed before any parameter is checked.
                let Some((_, realm)) = user.rsplit_once('@') else {
                    return Err(Refusal::die(format!("value '{user}' does not look like a valid user name")));
                };
                self.judge.need(&format!("/access/realm/{realm}"), &["Realm.AllocateUser"])
            }
            _ => Err(Refusal::denied_bare()),
        }
    }

    fn user_group(&self, parts: &[Check], words: &[&str]) -> Result<(), Refusal> {
        let creating = words.last() == Some(&"create");
        let user = self.text("userid");
        if !creating && !self.judge.config.users.contains_key(&user) {
            return Err(Refusal::die(format!("no such user ('{user}')")));
        }
        let wanted = privileges(parts.get(1));
        if self.judge.has_any("/access/groups", &wanted) {
            return Ok(());
        }
        if words.contains(&"groups_param") {
            return Err(Refusal::denied(&format!("/access/groups, {}", wanted.join("|"))));
        }
        let groups = &self.judge.config.groups;
        let mut member_of = groups.iter().filter(|(_, group)| group.users.contains(&user));
        if member_of.any(|(name, _)| self.judge.has_any(&format!("/access/groups/{name}"), &wanted)) {
            Ok(())
        } else {
            Err(Refusal::denied_bare())
        }
    }

    fn text(&self, name: &str) -> String {
        match self.params.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        }
    }

    /// Puts parameters into `/vms/{vmid}`.
    fn fill(&self, template: &str) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, tail) = after.split_once('}').unwrap_or((after, ""));
            out.push_str(before);
            out.push_str(&self.text(name));
            rest = tail;
        }
        out + rest
    }
}

fn privileges(part: Option<&Check>) -> Vec<&str> {
    let Some(Check::List(list)) = part else { return Vec::new() };
    list.iter()
        .filter_map(|word| if let Check::Word(word) = word { Some(word.as_str()) } else { None })
        .collect()
}
