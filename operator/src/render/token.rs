//! Table of machine tokens.

use holdfast_protocol::machine_token::{TokenMade, TokenView};
use jiff::Timestamp;

use super::table::{Field, plain, table};
use super::time::when;
use crate::screen::Style;

const HEADER: [&str; 6] = ["NAME", "MAKER", "ROLE", "SCOPE", "TOKEN", "LAST USE"];

pub fn tokens(all: &[TokenView], now: Timestamp, style: Style) -> String {
    if all.is_empty() {
        return "No machine tokens. `holdfast token create NAME --role ROLE` makes one.\n".to_owned();
    }
    table(&HEADER, all.iter().map(|one| row(one, now)), style)
}

fn row(one: &TokenView, now: Timestamp) -> Vec<Field> {
    let token = match (one.revoked_at, one.expires_at) {
        (Some(at), _) => format!("revoked {}", when(at, now)),
        (None, Some(at)) if at > now => format!("until {}", when(at, now)),
        (None, Some(at)) => format!("ended {}", when(at, now)),
        (None, None) => "none".to_owned(),
    };
    let used = one.used_at.map_or_else(|| "never".to_owned(), |at| when(at, now));
    let (name, maker) = (one.name.to_string(), one.maker.to_string());
    vec![
        plain(name),
        plain(maker),
        plain(one.role.as_str()),
        plain(one.scope.to_string()),
        plain(token),
        plain(used),
    ]
}

/// A secret, this once.
pub fn made(made: &TokenMade, now: Timestamp) -> String {
    let earlier = made
        .earlier_until
        .map_or_else(String::new, |until| format!(" The secrets before it end {}.", when(until, now)));
    format!(
        "{}\n\nThe token of {} ({} of {}), shown this once; it ends {}.{earlier} A machine sends it as `Authorization: Bearer TOKEN`.\n",
        made.token.expose(),
        made.name,
        made.role.as_str(),
        made.scope,
        when(made.expires_at, now)
    )
}
