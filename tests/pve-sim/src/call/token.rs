//! API tokens.
use serde_json::{Value, json};

use super::{Call, Handler, NOTHING, Reply, data};
use crate::access::config::Token;
use crate::access::credential::hex;
use crate::die;
use crate::fail::{Fallible, Refusal};
use crate::node::{Node, World};
use crate::schema::format::split_list;

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    Some(match at {
        "GET /access/users/{userid}/token" => list,
        "POST /access/users/{userid}/token/{tokenid}" => create,
        "GET /access/users/{userid}/token/{tokenid}" => show,
        "PUT /access/users/{userid}/token/{tokenid}" => change,
        "DELETE /access/users/{userid}/token/{tokenid}" => delete,
        _ => return None,
    })
}

/// A token as the API shows it.
#[must_use]
pub fn shown(token: &Token, id: Option<&str>) -> Value {
    let mut out = json!({"expire": token.expire, "privsep": u8::from(token.privsep)});
    if let Some(map) = out.as_object_mut() {
        if !token.comment.is_empty() {
            map.insert("comment".into(), json!(token.comment));
        }
        if let Some(id) = id {
            map.insert("tokenid".into(), json!(id));
        }
    }
    out
}

/// A fresh random UUID.
#[must_use]
pub fn fresh_uuid(node: &Node) -> String {
    let mut bytes = [0_u8; 16];
    node.clock.random(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex(&bytes);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

fn known<'a>(world: &'a World, user: &str, token: &str) -> Fallible<&'a Token> {
    let Some(held) = world.access.users.get(user) else { die!("no such user ('{user}')") };
    held.tokens.get(token).ok_or_else(|| Refusal::die(format!("no such token '{token}' for user '{user}'")))
}

fn list(call: &Call<'_>) -> Reply {
    let user = call.need("userid")?;
    let world = call.node.world();
    let Some(held) = world.access.users.get(&user) else { die!("no such user ('{user}')") };
    data(held.tokens.iter().map(|(id, token)| shown(token, Some(id))).collect::<Vec<_>>())
}

fn create(call: &Call<'_>) -> Reply {
    let (user, id) = (call.need("userid")?, call.need("tokenid")?);
    let secret = fresh_uuid(call.node);
    let mut world = call.node.world();
    let Some(held) = world.access.users.get_mut(&user) else { die!("no such user ('{user}')") };
    if held.tokens.contains_key(&id) {
        return Err(Refusal::param("tokenid", "Token already exists."));
    }
    let token = Token {
        expire: call.number("expire").unwrap_or_default(),
        privsep: call.maybe("privsep").unwrap_or(true),
        comment: call.text("comment").unwrap_or_default(),
    };
    let mut info = json!({"privsep": u8::from(token.privsep)});
    as_given(call, &mut info);
    held.tokens.insert(id.clone(), token);
    let full = format!("{user}!{id}");
    world.secrets.tokens.insert(full.clone(), secret.clone());
    world.save_access()?;
    data(json!({"full-tokenid": full, "info": info, "value": secret}))
}

/// Shows each given value in the form in which it was sent: a value from a form is text.
fn as_given(call: &Call<'_>, shown: &mut Value) {
    let given = ["privsep", "expire", "comment"].into_iter().filter_map(|name| {
        let value = call.params.get(name).filter(|value| value.as_str() != Some(""))?;
        Some((name.to_owned(), value.clone()))
    });
    shown.as_object_mut().into_iter().for_each(|map| map.extend(given.clone()));
}

fn show(call: &Call<'_>) -> Reply {
    let world = call.node.world();
    data(shown(known(&world, &call.need("userid")?, &call.need("tokenid")?)?, None))
}

fn change(call: &Call<'_>) -> Reply {
    let (user, id) = (call.need("userid")?, call.need("tokenid")?);
    let fresh = fresh_uuid(call.node);
    let mut world = call.node.world();
    known(&world, &user, &id)?;
    let deleted = call.text("delete").unwrap_or_default();
    if let Some(unknown) = split_list(&deleted).find(|name| *name != "comment") {
        let refusal = Refusal::param("delete", format!("unknown option '{unknown}'"));
        die!("updating token info failed: {}", refusal.in_task());
    }
    let mut answer = json!({});
    if let Some(token) = world.access.users.get_mut(&user).and_then(|held| held.tokens.get_mut(&id)) {
        token.expire = call.number("expire").unwrap_or(token.expire);
        token.privsep = call.maybe("privsep").unwrap_or(token.privsep);
        if let Some(comment) = call.text("comment") {
            token.comment = comment;
        }
        if split_list(&deleted).any(|name| name == "comment") {
            token.comment.clear();
        }
        answer = shown(token, None);
        as_given(call, &mut answer);
    }
    if call.flag("regenerate") {
        let full = format!("{user}!{id}");
        world.secrets.tokens.insert(full.clone(), fresh.clone());
        if let Some(map) = answer.as_object_mut() {
            map.extend([("value".to_owned(), json!(fresh)), ("full-tokenid".to_owned(), json!(full))]);
        }
    }
    world.save_access()?;
    data(answer)
}

fn delete(call: &Call<'_>) -> Reply {
    let (user, id) = (call.need("userid")?, call.need("tokenid")?);
    let mut world = call.node.world();
    known(&world, &user, &id)?;
    if let Some(held) = world.access.users.get_mut(&user) {
        held.tokens.remove(&id);
    }
    let full = format!("{user}!{id}");
    world.secrets.tokens.remove(&full);
    for node in world.access.acl.values_mut() {
        node.tokens.remove(&full);
    }
    world.save_access()?;
    NOTHING
}
