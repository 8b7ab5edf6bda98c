//! Table of operators.

use holdfast_protocol::grant_change::GrantChanged;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::oidc::{ProviderLink, ProviderPerson};
use holdfast_protocol::operator::{OperatorMade, OperatorView};
use holdfast_protocol::sign_in::SignInLink;
use jiff::Timestamp;

use super::table::{Field, plain, table};
use super::time::when;
use crate::screen::Style;

const HEADER: [&str; 4] = ["NAME", "ROLE", "SCOPE", "TOKEN"];

/// Who there is, and was.
pub fn operators(all: &[OperatorView], now: Timestamp, style: Style) -> String {
    table(&HEADER, all.iter().map(|one| row(one, now)), style)
}

fn row(one: &OperatorView, now: Timestamp) -> Vec<Field> {
    let token = match (one.revoked_at, one.expires_at) {
        (Some(at), _) => format!("let go {}", when(at, now)),
        (None, Some(at)) if at > now => format!("until {}", when(at, now)),
        (None, Some(at)) => format!("ended {}", when(at, now)),
        (None, None) => "none".to_owned(),
    };
    vec![plain(one.name.to_string()), plain(one.role.as_str()), plain(one.scope.to_string()), plain(token)]
}

/// What a person is now, and which machine tokens of theirs ended.
pub fn changed(changed: &GrantChanged, now: Timestamp, style: Style) -> String {
    let mut text = operators(std::slice::from_ref(&changed.operator), now, style);
    if !changed.ended_tokens.is_empty() {
        let names: Vec<&str> = changed.ended_tokens.iter().map(OperatorName::as_str).collect();
        text += &format!("Ended, since they were more than that: {}\n", names.join(", "));
    }
    text
}

/// A token, this once.
pub fn made(made: &OperatorMade, now: Timestamp) -> String {
    format!(
        "{}\n\nThe token of {} ({} of {}), shown this once; it ends {}. They run `holdfast login URL --token-file FILE`.\n",
        made.token.expose(),
        made.name,
        made.role.as_str(),
        made.scope,
        when(made.expires_at, now)
    )
}

/// A sign-in link, this once.
pub fn sign_in_link(link: &SignInLink, now: Timestamp) -> String {
    format!(
        "{}\n\nThe sign-in link of {}, shown this once; it works once and ends {}. It sets a password and an authenticator, and does nothing else.\n",
        link.url.expose(),
        link.name,
        when(link.expires_at, now)
    )
}

/// An operator may sign in by the provider.
pub fn linked(link: &ProviderLink) -> String {
    let who = match &link.person {
        ProviderPerson::Subject { subject } => format!("as its subject {subject}"),
        ProviderPerson::Claim { value } => {
            format!(
                "as {value}, at the first sign-in; from then on as the subject that the provider gives them"
            )
        }
    };
    format!("{} may sign in by {}, {who}.\n", link.operator, link.issuer)
}

/// And no more.
pub fn unlinked(link: &ProviderLink) -> String {
    format!("{} may not sign in by {} any more; their sessions ended.\n", link.operator, link.issuer)
}
