//! The command `hubd operator`, also while the hub runs.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use holdfast_protocol::access::{AccessScope, Grant};
use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::oidc::ProviderPerson;
use holdfast_protocol::sign_in::SessionKind;
use uuid::Uuid;

use super::{OperatorCommand, opened_store, sign_in};
use crate::clock::{Clock as _, SystemClock};
use crate::run::{days, new_token};
use crate::settings::{Given, Settings};
use crate::store::{NewOperator, NewProviderLink, SharedStore, SignInChange, WriteError};

pub(super) async fn run(
    folder: PathBuf,
    config: Option<PathBuf>,
    command: OperatorCommand,
) -> anyhow::Result<()> {
    let given = Given { dir: folder.clone(), config: config.clone(), ..Given::default() };
    let (store, writer) = opened_store::open(&folder, config).await?;
    let outcome = command_on(&store, command, &given).await;
    drop(store);
    opened_store::close(writer).await?;
    outcome
}

async fn command_on(store: &SharedStore, command: OperatorCommand, given: &Given) -> anyhow::Result<()> {
    let now = SystemClock.now();
    let correlation = CorrelationId::new(Uuid::new_v4());
    let mut out = std::io::stdout();
    match command {
        OperatorCommand::Add { name, role, days: life } => {
            let token = new_token().context("the system gives no random bytes")?;
            let expires_at =
                now.checked_add(days(life)).context("the clock is beyond what can be written")?;
            // Scopes are given over the API, by people who have them.
            let grant = Grant::new(role.into(), AccessScope::Everything {})?;
            let new = NewOperator { name, grant, token: token.hash(), expires_at, at: now, correlation };
            store.add_operator(new).await.map_err(explain)?;
            // The one place where a token is shown, this once.
            writeln!(out, "{}", token.expose())?;
        }
        OperatorCommand::Revoke { name } => {
            store.revoke_operator(name, now, correlation).await.map_err(explain)?;
        }
        OperatorCommand::Password { name } => sign_in::password(store, name, (now, correlation)).await?,
        OperatorCommand::SignInLink { name, full, public_url } => {
            let given = &Given { public_url, ..given.clone() };
            let kind = if full { SessionKind::Full } else { SessionKind::Setup };
            let link = sign_in::link(store, name, kind, (now, correlation), given).await?;
            // The one place where a link is shown, this once.
            writeln!(out, "{}", link.expose())?;
        }
        OperatorCommand::LinkOidc { name, person } => {
            let issuer = Settings::issuer(given)?;
            let issuer = issuer.context("hub.toml has no [oidc]: set the provider first")?;
            let person = match (person.subject, person.person) {
                (Some(subject), _) => ProviderPerson::Subject { subject },
                (None, value) => ProviderPerson::Claim { value: value.unwrap_or_default() },
            };
            let by = SignInChange { operator: name.clone(), actor: None, at: now, correlation };
            let new = NewProviderLink { operator: name.clone(), issuer, person };
            let link = store.add_provider_link(by, new).await.map_err(explain)?;
            writeln!(out, "{name} may sign in by {}", link.issuer)?;
        }
        OperatorCommand::List => {
            for operator in store.operators().await? {
                let state = match (operator.revoked_at, operator.expires_at) {
                    (Some(at), _) => format!("removed at {at}"),
                    (None, Some(at)) if at > now => format!("token until {at}"),
                    (None, _) => "no token".to_owned(),
                };
                writeln!(out, "{}\t{}\t{state}", operator.name, operator.grant)?;
            }
        }
    }
    Ok(())
}

fn explain<E: std::error::Error + Send + Sync + 'static>(error: WriteError<E>) -> anyhow::Error {
    match error {
        WriteError::Refused(refusal) => refusal.into(),
        WriteError::KeyReused => anyhow::anyhow!("the database is busy"),
        WriteError::Store(error) => error.into(),
    }
}
