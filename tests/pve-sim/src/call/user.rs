//! Users.
use serde_json::{Map, Value, json};

use super::{Call, Handler, NOTHING, Reply, data};
use crate::access::config::User;
use crate::die;
use crate::schema::format::split_list;

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    Some(match at {
        "GET /access/users" => list,
        "POST /access/users" => create,
        "GET /access/users/{userid}" => show,
        "PUT /access/users/{userid}" => change,
        "DELETE /access/users/{userid}" => delete,
        _ => return None,
    })
}

fn list(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    let judge = world.judge(&call.who);
    let all = judge.has_any("/access/groups", &["User.Modify", "Sys.Audit"]);
    let visible = |id: &str| all || id == call.who.id;
    let wanted = call.maybe("enabled");
    let mut rows = Vec::new();
    for (id, user) in world
        .access
        .users
        .iter()
        .filter(|(id, user)| visible(id) && wanted.is_none_or(|on| on == user.enabled))
    {
        let mut row = shown(user, true);
        row.insert("userid".into(), json!(id));
        // Of a realm that is not there nothing is known.
        let realm =
            id.rsplit_once('@').map(|(_, realm)| realm).filter(|realm| ["pam", "pve"].contains(realm));
        row.extend(realm.map(|realm| ("realm-type".to_owned(), json!(realm))));
        if call.flag("full") {
            let tokens: Vec<Value> =
                user.tokens.iter().map(|(name, token)| super::token::shown(token, Some(name))).collect();
            row.insert("tokens".into(), if tokens.is_empty() { Value::Null } else { json!(tokens) });
            row.insert("groups".into(), json!(groups_of(&world.access, id).join(",")));
        }
        rows.push(Value::Object(row));
    }
    data(rows)
}

fn groups_of<'a>(access: &'a crate::access::config::AccessConfig, id: &str) -> Vec<&'a str> {
    access
        .groups
        .iter()
        .filter(|(_, group)| group.users.contains(id))
        .map(|(name, _)| name.as_str())
        .collect()
}

fn shown(user: &User, brief: bool) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("enable".into(), json!(u8::from(user.enabled)));
    out.insert("expire".into(), json!(user.expire));
    for (key, value) in [
        ("firstname", &user.firstname),
        ("lastname", &user.lastname),
        ("email", &user.email),
        ("comment", &user.comment),
        ("keys", &user.keys),
    ] {
        if !value.is_empty() {
            out.insert(key.into(), json!(value));
        }
    }
    if !brief && !user.tokens.is_empty() {
        let tokens: Map<String, Value> = user
            .tokens
            .iter()
            .map(|(name, token)| (name.clone(), super::token::shown(token, None)))
            .collect();
        out.insert("tokens".into(), Value::Object(tokens));
    }
    out
}

fn fill(call: &Call<'_>, user: &mut User) {
    let text = |name: &str, target: &mut String| {
        if let Some(value) = call.text(name) {
            *target = value;
        }
    };
    text("firstname", &mut user.firstname);
    text("lastname", &mut user.lastname);
    text("email", &mut user.email);
    text("comment", &mut user.comment);
    text("keys", &mut user.keys);
    user.enabled = call.maybe("enable").unwrap_or(user.enabled);
    user.expire = call.number("expire").unwrap_or(user.expire);
}

fn create(call: &Call<'_>) -> Reply {
    let id = call.need("userid")?;
    let salt = super::token::fresh_uuid(call.node);
    let mut world = call.node.world();
    if world.access.users.contains_key(&id) {
        die!("create user failed: user '{id}' already exists");
    }
    let groups: Vec<String> =
        split_list(&call.text("groups").unwrap_or_default()).map(str::to_owned).collect();
    if let Some(missing) = groups.iter().find(|group| !world.access.groups.contains_key(*group)) {
        die!("create user failed: no such group '{missing}'");
    }
    let mut user = User { enabled: true, ..User::default() };
    fill(call, &mut user);
    world.access.users.insert(id.clone(), user);
    for group in &groups {
        if let Some(held) = world.access.groups.get_mut(group) {
            held.users.insert(id.clone());
        }
    }
    if let Some(password) = call.text("password") {
        world.secrets.set_password(&id, &salt, &password);
    }
    world.save_access()?;
    NOTHING
}

fn show(call: &Call<'_>) -> Reply {
    let id = call.need("userid")?;
    let world = call.node.world();
    let Some(user) = world.access.users.get(&id) else { die!("no such user ('{id}')") };
    let mut out = shown(user, false);
    out.insert("groups".into(), json!(groups_of(&world.access, &id)));
    data(out)
}

fn change(call: &Call<'_>) -> Reply {
    let id = call.need("userid")?;
    let mut world = call.node.world();
    let Some(user) = world.access.users.get_mut(&id) else {
        die!("update user failed: no such user ('{id}')")
    };
    fill(call, user);
    if let Some(groups) = call.text("groups") {
        let wanted: Vec<&str> = split_list(&groups).collect();
        let append = call.flag("append");
        for (name, group) in &mut world.access.groups {
            if wanted.contains(&name.as_str()) {
                group.users.insert(id.clone());
            } else if !append {
                group.users.remove(&id);
            }
        }
    }
    world.save_access()?;
    NOTHING
}

fn delete(call: &Call<'_>) -> Reply {
    let id = call.need("userid")?;
    let mut world = call.node.world();
    let Some(user) = world.access.users.remove(&id) else {
        die!("delete user failed: no such user ('{id}')")
    };
    for group in world.access.groups.values_mut() {
        group.users.remove(&id);
    }
    let tokens: Vec<String> = user.tokens.keys().map(|name| format!("{id}!{name}")).collect();
    for node in world.access.acl.values_mut() {
        node.users.remove(&id);
        node.tokens.retain(|token, _| !tokens.contains(token));
    }
    for token in &tokens {
        world.secrets.tokens.remove(token);
    }
    world.secrets.passwords.remove(&id);
    world.save_access()?;
    NOTHING
}
