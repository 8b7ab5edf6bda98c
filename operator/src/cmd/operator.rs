//! `holdfast operator`: operators and their tokens.

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
        OperatorCommand::SignInLink { name } => {
            let path = ["v1", "operators", name.as_str(), "sign-in-link"];
            let link: SignInLink = hub.post(&path, &json!({})).await?;
            screen.show(&link, |link, _| render::operator::sign_in_link(link, clock::now()))
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
