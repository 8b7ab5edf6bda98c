//! Roles, access lists, effective permissions, logins.
use serde_json::{Map, Value, json};

use super::{Answer, Call, Handler, NOTHING, Reply, data};
use crate::access::config::normalize_path;
use crate::access::credential::active;
use crate::access::evaluate::Judge;
use crate::access::privileges;
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::schema::format::split_list;

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    Some(match at {
        "GET /access" => |_| {
            data(
                ["users", "groups", "roles", "acl", "domains", "openid", "tfa", "ticket", "password"]
                    .map(|name| json!({"subdir": name}))
                    .to_vec(),
            )
        },
        "GET /access/acl" => acl_list,
        "PUT /access/acl" => acl_change,
        "GET /access/permissions" => permissions,
        "GET /access/roles" => roles,
        "POST /access/roles" => role_create,
        "GET /access/roles/{roleid}" => role_show,
        "PUT /access/roles/{roleid}" => role_change,
        "DELETE /access/roles/{roleid}" => role_delete,
        "POST /access/ticket" => ticket,
        "PUT /access/password" => password,
        _ => return None,
    })
}

fn acl_list(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    let judge = world.judge(&call.who);
    let whole = judge.has("/access", &["Sys.Audit"]);
    let mut rows = Vec::new();
    for (path, node) in &world.access.acl {
        if !whole && !may_modify(&judge, path) {
            continue;
        }
        for (kind, list) in [("user", &node.users), ("group", &node.groups), ("token", &node.tokens)] {
            for (member, granted) in list {
                rows.extend(granted.iter().map(|(role, reach)| json!({"path": path, "type": kind, "ugid": member, "roleid": role, "propagate": u8::from(*reach)})));
            }
        }
    }
    data(rows)
}

fn may_modify(judge: &Judge<'_>, path: &str) -> bool {
    let also = [("/storage/", "Datastore.Allocate"), ("/vms/", "VM.Allocate"), ("/pool/", "Pool.Allocate")];
    let mut wanted = vec!["Permissions.Modify"];
    wanted.extend(also.iter().filter(|(prefix, _)| path.starts_with(prefix)).map(|(_, name)| *name));
    judge.has_any(path, &wanted)
}

fn known_path(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let number =
        |text: &str| text.len() >= 3 && !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    match parts.as_slice() {
        []
        | ["access" | "nodes" | "pool" | "sdn" | "storage" | "vms" | "mapping"]
        | ["access", "groups" | "realm"]
        | ["access", "groups" | "realm", _] => true,
        ["nodes" | "storage", _] | ["mapping", _] | ["mapping", _, _] => true,
        ["pool", rest @ ..] => rest.len() <= 3,
        ["vms", id] => number(id),
        ["sdn", "controllers" | "dns" | "fabrics" | "ipams" | "prefix-lists" | "route-maps" | "zones"] => {
            true
        }
        ["sdn", "controllers" | "dns" | "fabrics" | "ipams" | "prefix-lists" | "route-maps", _]
        | ["sdn", "zones", _]
        | ["sdn", "zones", _, _] => true,
        ["sdn", "zones", _, _, tag] => {
            (1..=4).contains(&tag.len()) && !tag.starts_with('0') && tag.bytes().all(|b| b.is_ascii_digit())
        }
        _ => false,
    }
}

fn acl_change(call: &Call<'_>) -> Reply {
    let text = |name: &str| call.text(name).unwrap_or_default();
    if ["users", "groups", "tokens"].iter().all(|name| text(name).is_empty()) {
        let why = "either 'users', 'groups' or 'tokens' is required.".to_owned();
        return Err(Refusal::params(
            ["users", "groups", "tokens"].map(|name| (name.to_owned(), why.clone())).into(),
        ));
    }
    let (given, delete) = (text("path"), call.flag("delete"));
    let invalid = || Refusal::param("path", format!("invalid ACL path '{given}'"));
    let path = normalize_path(&given).filter(|path| delete || known_path(path)).ok_or_else(invalid)?;
    // From here on every error is reported as a failure of the whole update.
    granted(call, &path)
        .map_err(|refusal| Refusal::die(format!("ACL update failed: {}", refusal.in_task())))?;
    NOTHING
}

fn granted(call: &Call<'_>, path: &str) -> Fallible<()> {
    let text = |name: &str| call.text(name).unwrap_or_default();
    let delete = call.flag("delete");
    let propagate = call.maybe("propagate").unwrap_or(true);
    let mut world = call.node.world();
    let held = world.judge(&call.who).privileges(path);
    for role in split_list(&text("roles")) {
        if !world.access.has_role(role) {
            die!("role '{role}' does not exist");
        }
        if !held.contains_key("Permissions.Modify") {
            subset_only(role, &world.access.privileges_of(role), &held, delete, propagate)?;
        }
        let mut members: Vec<String> = Vec::new();
        for group in split_list(&text("groups")) {
            if !world.access.groups.contains_key(group) {
                die!("group '{group}' does not exist");
            }
            members.push(format!("@{group}"));
        }
        for user in split_list(&text("users")) {
            if !world.access.users.contains_key(user) {
                die!("user '{user}' does not exist");
            }
            members.push(user.to_owned());
        }
        for token in split_list(&text("tokens")) {
            let (user, short) = token.rsplit_once('!').unwrap_or((token, ""));
            if !world.access.users.contains_key(user) {
                die!("no such user ('{user}')");
            }
            if world.access.token(token).is_none() {
                die!("no such token '{short}' for user '{user}'");
            }
            members.push(token.to_owned());
        }
        for member in members {
            if delete {
                world.access.revoke(path, &member, role)
            } else {
                world.access.grant(path, &member, role, propagate)
            }
        }
    }
    world.save_access()
}

/// Without `Permissions.Modify` a caller may only grant rights that it has.
fn subset_only(
    role: &str,
    wanted: &[String],
    held: &crate::access::evaluate::Privileges,
    delete: bool,
    propagate: bool,
) -> Fallible<()> {
    let verb = if delete { "remove" } else { "add" };
    for name in wanted {
        match held.get(name) {
            None => {
                return Err(Refusal::param(
                    "role",
                    format!(
                        "Cannot {verb} role '{role}' - requires 'Permissions.Modify' or superset of privileges."
                    ),
                ));
            }
            Some(false) if propagate && !delete => {
                let text = format!(
                    "Cannot {verb} role '{role}' with propagation - requires 'Permissions.Modify' or propagated superset of privileges."
                );
                return Err(Refusal::param("role", text));
            }
            Some(_) => {}
        }
    }
    if role == "NoAccess" {
        Err(Refusal::param("role", format!("Cannot {verb} role '{role}' - requires 'Permissions.Modify'")))
    } else {
        Ok(())
    }
}

fn permissions(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    let asked = call.text("userid").unwrap_or_else(|| call.who.id.clone());
    let owned = asked.rsplit_once('!').is_some_and(|(user, _)| user == call.who.id);
    if asked != call.who.id && !owned {
        world.judge(&call.who).need("/access", &["Sys.Audit"])?;
    }
    let judge = Judge { config: &world.access, who: &asked };
    let shown = |held: crate::access::evaluate::Privileges| {
        held.into_iter().map(|(name, reach)| (name, Value::from(u8::from(reach)))).collect::<Map<_, _>>()
    };
    let mut out = Map::new();
    match call.text("path") {
        Some(path) => drop(out.insert(path.clone(), Value::Object(shown(judge.privileges(&path))))),
        None => {
            out.extend(judge.effective().into_iter().map(|(path, held)| (path, Value::Object(shown(held)))))
        }
    }
    data(out)
}

fn roles(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    let mut rows: Vec<Value> = privileges::ROLES
        .iter()
        .map(|(name, privs)| {
            let mut sorted = privs.to_vec();
            sorted.sort_unstable();
            json!({"roleid": name, "privs": sorted.join(","), "special": 1})
        })
        .collect();
    for (name, privs) in &world.access.roles {
        let privs: Vec<&str> = privs.iter().map(String::as_str).collect();
        rows.push(json!({"roleid": name, "privs": privs.join(","), "special": 0}));
    }
    data(rows)
}

fn role_create(call: &Call<'_>) -> Reply {
    let role = call.need("roleid")?;
    if role.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("pve")) {
        return Err(Refusal::param(
            "roleid",
            "cannot use role ID starting with the (case-insensitive) 'PVE' namespace",
        ));
    }
    let mut world = call.node.world();
    if world.access.has_role(&role) {
        die!("create role failed: role '{role}' already exists");
    }
    let privs = split_list(&call.text("privs").unwrap_or_default()).map(str::to_owned).collect();
    world.access.roles.insert(role, privs);
    world.save_access()?;
    NOTHING
}

fn role_show(call: &Call<'_>) -> Reply {
    let role = call.need("roleid")?;
    let world = call.node.world();
    if !world.access.has_role(&role) {
        die!("role '{role}' does not exist");
    }
    data(
        world
            .access
            .privileges_of(&role)
            .into_iter()
            .map(|name| (name, Value::from(1)))
            .collect::<Map<_, _>>(),
    )
}

fn role_change(call: &Call<'_>) -> Reply {
    let role = call.need("roleid")?;
    if privileges::is_special(&role) {
        die!("auto-generated role '{role}' cannot be modified");
    }
    let mut world = call.node.world();
    let Some(held) = world.access.roles.get_mut(&role) else {
        die!("update role failed: role '{role}' does not exist")
    };
    if !call.flag("append") {
        held.clear();
    }
    held.extend(split_list(&call.text("privs").unwrap_or_default()).map(str::to_owned));
    world.save_access()?;
    NOTHING
}

fn role_delete(call: &Call<'_>) -> Reply {
    let role = call.need("roleid")?;
    if privileges::is_special(&role) {
        die!("auto-generated role '{role}' cannot be deleted");
    }
    let mut world = call.node.world();
    if world.access.roles.remove(&role).is_none() {
        die!("delete role failed: role '{role}' does not exist");
    }
    world.save_access()?;
    NOTHING
}

fn ticket(call: &Call<'_>) -> Reply {
    let failed = || Refusal {
        status: 401,
        message: "authentication failure".to_owned(),
        errors: std::collections::BTreeMap::new(),
    };
    let mut user = call.need("username")?;
    if let Some(realm) = call.text("realm") {
        user = format!("{user}@{realm}");
    }
    let password = call.need("password")?;
    let world = call.node.world();
    let now_s = call.node.clock.now_s();
    // A valid ticket may replace the password.
    let good = world.secrets.password_fits(&user, &password);
    if !good || !active(&world.access, &user, now_s) {
        return Err(failed());
    }
    let (ticket, csrf) = world.secrets.ticket(&user, now_s);
    data(
        json!({"username": user, "ticket": ticket, "CSRFPreventionToken": csrf, "cap": capabilities(&Judge { config: &world.access, who: &user }) }),
    )
}

/// What a web interface may offer, by area.
fn capabilities(judge: &Judge<'_>) -> Value {
    let areas: [(&str, &[&str]); 7] = [
        ("vms", &["VM."]),
        ("access", &["User.", "Group."]),
        ("storage", &["Datastore."]),
        ("nodes", &["Sys."]),
        ("sdn", &["SDN."]),
        ("dc", &["Sys.Audit", "Sys.Modify", "SDN."]),
        ("mapping", &["Mapping."]),
    ];
    let mut out: Map<String, Value> = areas.iter().map(|(area, _)| ((*area).to_owned(), json!({}))).collect();
    let mut paths: Vec<String> =
        ["/", "/nodes", "/access/groups", "/vms", "/storage", "/sdn", "/mapping"].map(str::to_owned).to_vec();
    paths.extend(judge.config.acl.keys().cloned());
    for path in paths {
        let top = path.split('/').nth(1).filter(|top| !top.is_empty()).unwrap_or("dc").to_owned();
        for name in judge.privileges(&path).into_keys() {
            let wanted: Vec<&str> = match top.as_str() {
                "pool" if name.starts_with("VM.") => vec!["vms"],
                "pool" if name.starts_with("Datastore.") => vec!["storage"],
                "pool" if name == "Permissions.Modify" => vec!["storage", "vms"],
                area => areas
                    .iter()
                    .filter(|(known, starts)| {
                        *known == area
                            && (name == "Permissions.Modify" && area != "dc"
                                || starts.iter().any(|start| name.starts_with(start)))
                    })
                    .map(|(known, _)| *known)
                    .collect(),
            };
            for area in wanted {
                if let Some(Value::Object(map)) = out.get_mut(area) {
                    map.insert(name.clone(), Value::from(1));
                }
            }
        }
    }
    Value::Object(out)
}

fn password(call: &Call<'_>) -> Reply {
    let user = call.need("userid")?;
    let new = call.need("password")?;
    let salt = super::token::fresh_uuid(call.node);
    let mut world = call.node.world();
    if !world.access.users.contains_key(&user) {
        die!("no such user ('{user}')");
    }
    if !call.who.is_root() {
        let own = call
            .text("confirmation-password")
            .ok_or_else(|| Refusal::param("confirmation-password", "password is required to modify user"))?;
        if !world.secrets.password_fits(call.who.user(), &own) {
            return Err(Refusal { status: 401, ..Refusal::die("authentication failure") });
        }
    }
    world.secrets.set_password(&user, &salt, &new);
    world.save_access()?;
    Ok(Answer::Data(Value::Null))
}
