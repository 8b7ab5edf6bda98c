//! `holdfast operator`: operators and their tokens.

use holdfast_protocol::access::{AccessScope, Role};
use holdfast_protocol::grant_change::{GrantChanged, GrantPut, grant_tag};
use holdfast_protocol::oidc::{ProviderLink, ProviderPerson};
use holdfast_protocol::operator::{OperatorMade, OperatorRequest, OperatorView};
use holdfast_protocol::sign_in::SignInLink;
use holdfast_protocol::size::TokenDays;
use serde_json::json;

use crate::args::OperatorCommand;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::screen::Screen;
use crate::{clock, prompt, render};

pub async fn run(command: OperatorCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        OperatorCommand::List => {
            let all: Vec<OperatorView> = hub.list(&["v1", "operators"], &[], WHOLE).await?;
            screen.show(&all, |all, style| render::operator::operators(all, clock::now(), style))
        }
        OperatorCommand::Add { name, role, scope, days } => {
            // The argument has the same bounds.
            let days = TokenDays::try_from(days).unwrap_or(TokenDays::MIN);
            let request = OperatorRequest { name, role: role.into(), scope: scope.into(), days };
            let made: OperatorMade = hub.post(&["v1", "operators"], &request).await?;
            screen.show(&made, |made, _| render::operator::made(made, clock::now()))
        }
        OperatorCommand::Set { name, role, scope, assume_yes } => {
            let path = ["v1", "operators", name.as_str()];
            let before: OperatorView = hub.get(&path).await?;
            let role = role.map_or(before.role, Into::into);
            let scope = scope.given().unwrap_or_else(|| before.scope.clone());
            let (was, now) = (words(before.role, &before.scope), words(role, &scope));
            prompt::confirm(
                &format!("{name} is {was}. Make them {now}, from their next request on?"),
                assume_yes,
            )?;
            let path = ["v1", "operators", name.as_str(), "grant"];
            let seen = grant_tag(before.role, &before.scope);
            let changed: GrantChanged = hub.put_seen(&path, &seen, &GrantPut { role, scope }).await?;
            screen.show(&changed, |changed, style| render::operator::changed(changed, clock::now(), style))
        }
        OperatorCommand::SignInLink { name } => {
            let path = ["v1", "operators", name.as_str(), "sign-in-link"];
            let link: SignInLink = hub.post(&path, &json!({})).await?;
            screen.show(&link, |link, _| render::operator::sign_in_link(link, clock::now()))
        }
        OperatorCommand::LinkOidc { name, person } => {
            let path = ["v1", "operators", name.as_str(), "oidc"];
            let body = serde_json::to_vec(&ProviderPerson::from(person)).map_err(CliError::Unwritable)?;
            let link: ProviderLink = hub.put(&path, body).await?;
            screen.show(&link, |link, _| render::operator::linked(link))
        }
        OperatorCommand::UnlinkOidc { name } => {
            let path = ["v1", "operators", name.as_str(), "oidc"];
            let link: ProviderLink = hub.delete(&path).await?;
            screen.show(&link, |link, _| render::operator::unlinked(link))
        }
        OperatorCommand::Revoke { name, assume_yes } => {
            prompt::confirm(
                &format!(
                    "Let {name} go? Every token of theirs ends at once, and those of machines that they made."
                ),
                assume_yes,
            )?;
            let path = ["v1", "operators", name.as_str(), "revoke"];
            let gone: OperatorView = hub.post(&path, &json!({})).await?;
            screen.show(&gone, |gone, style| {
                render::operator::operators(std::slice::from_ref(gone), clock::now(), style)
            })
        }
    }
}

/// A role with its scope, for a question.
fn words(role: Role, scope: &AccessScope) -> String {
    format!("{} of {scope}", role.as_str())
}
