//! `holdfast token`: tokens of machines.

use holdfast_protocol::machine_token::{TokenMade, TokenRequest, TokenRotation, TokenView};
use holdfast_protocol::size::{OverlapHours, TokenDays};
use serde_json::json;

use crate::args::TokenCommand;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::screen::Screen;
use crate::{clock, prompt, render};

pub async fn run(command: TokenCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        TokenCommand::List => {
            let all: Vec<TokenView> = hub.list(&["v1", "tokens"], &[], WHOLE).await?;
            screen.show(&all, |all, style| render::token::tokens(all, clock::now(), style))
        }
        TokenCommand::Create { name, role, scope, days } => {
            // The argument has the same bounds.
            let days = TokenDays::try_from(days).unwrap_or(TokenDays::MIN);
            let request = TokenRequest { name, role: role.into(), scope: scope.into(), days };
            let made: TokenMade = hub.post(&["v1", "tokens"], &request).await?;
            screen.show(&made, |made, _| render::token::made(made, clock::now()))
        }
        TokenCommand::Rotate { name, days, overlap_hours } => {
            let days = TokenDays::try_from(days).unwrap_or(TokenDays::MIN);
            let overlap_hours = OverlapHours::try_from(overlap_hours).unwrap_or(OverlapHours::MIN);
            let path = ["v1", "tokens", name.as_str(), "rotate"];
            let made: TokenMade = hub.post(&path, &TokenRotation { days, overlap_hours }).await?;
            screen.show(&made, |made, _| render::token::made(made, clock::now()))
        }
        TokenCommand::Revoke { name, assume_yes } => {
            prompt::confirm(&format!("Revoke {name}? All its secrets end at once."), assume_yes)?;
            let path = ["v1", "tokens", name.as_str(), "revoke"];
            let gone: TokenView = hub.post(&path, &json!({})).await?;
            screen.show(&gone, |gone, style| {
                render::token::tokens(std::slice::from_ref(gone), clock::now(), style)
            })
        }
    }
}
