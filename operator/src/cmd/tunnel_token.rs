//! Tokens of tunnels, sealed for a host and for operators.
//!
//! In: a token from a prompt, or one that an earlier order holds sealed for operators. Out: the act that gives it to one
//! host, with copies for the operators who may carry it over. A text that the hub kept is believed only where an operator
//! signed it: who holds the hub knows every public key, and could seal a token of their own. Deliberately absent: keeping
//! a token anywhere unsealed.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use holdfast_protocol::id::TunnelName;
use holdfast_protocol::job::act::{Act, args};
use holdfast_protocol::job::{Draft, Target};
use holdfast_protocol::operator::{HostDetail, TunnelOrder};
use holdfast_protocol::storage::HostRecipient;
use holdfast_protocol::storage::sealed::COPIES_MAX;
use holdfast_seal::{HostKey, OpenError, TunnelToken};
use holdfast_trust::Operators;
use holdfast_trust::operators::SigningRight;
use holdfast_trust::signature::Namespace;
use jiff::Timestamp;
use zeroize::Zeroizing;

use super::seal;
use crate::args::SignArgs;
use crate::clock;
use crate::error::CliError;
use crate::hub::Hub;
use crate::job_file::JobFile;
use crate::prompt;
use crate::tunnel_errors::TunnelTokenError;

/// Who can open the copies, where no other file is given.
const READERS: &str = "token-recipients";

/// Some lines of 62 characters, with comments.
const BYTES_MAX: u64 = 16 * 1024;

/// What an order is made of, and what a person is shown before it is signed.
pub struct TunnelDraft {
    pub draft: Draft,
    pub notice: String,
}

/// The draft for `--tunnel-token`; none without it.
pub async fn draft(
    args: &SignArgs,
    detail: &HostDetail,
    hub: &Hub,
    folder: &Path,
) -> Result<Option<TunnelDraft>, CliError> {
    let Some(tunnel) = &args.tunnel_token else { return Ok(None) };
    let host = &detail.host.name;
    let shown = detail.sections.agent.as_ref().and_then(|agent| agent.recipient.clone());
    let recipient = seal::recipient(host, args.recipient.clone(), shown)?;
    let readers = readers(folder, args.copy_for.as_deref())?;
    let (token, origin) = match (&args.carry_over, &args.operators) {
        (Some(identity), Some(operators)) => {
            let id = detail.host.id.to_string();
            let kept: Option<TunnelOrder> =
                hub.find(&["v1", "hosts", &id, "tunnels", tunnel.as_str(), "order"]).await?;
            carried_over(kept, detail, tunnel, (identity, operators))?
        }
        _ => (
            TunnelToken::new(tunnel.clone(), prompt::token_of_tunnel()?)
                .map_err(TunnelTokenError::Content)?,
            String::new(),
        ),
    };
    let notice = origin + &copies_notice(&readers);
    Ok(Some(TunnelDraft { draft: sealed(tunnel, &token, &recipient, &readers)?, notice }))
}

/// The order, with the token sealed for its host and for its readers.
pub fn sealed(
    tunnel: &TunnelName,
    token: &TunnelToken,
    recipient: &HostRecipient,
    readers: &[HostRecipient],
) -> Result<Draft, TunnelTokenError> {
    let (sealed, copies) = (token.seal(recipient)?, token.copies(readers)?);
    let act = Act::SetTunnelToken(args::SetTunnelToken { tunnel: tunnel.clone(), sealed, copies });
    Ok(Draft { target: Target::Host {}, act })
}

/// What a person should know of the copies before signing.
pub fn copies_notice(readers: &[HostRecipient]) -> String {
    match readers {
        [] => format!(
            "No copy for operators: a host that replaces this one needs a new token. Name age recipients in {READERS} next to \
             the login, or with --copy-for.\n"
        ),
        _ => format!(
            "Copies for {} age recipients, who can carry the token over to another host.\n",
            readers.len()
        ),
    }
}

/// The recipients that a file names, one a line. Without a given file, those of the operator's own, where there is one.
pub fn readers(folder: &Path, given: Option<&Path>) -> Result<Vec<HostRecipient>, TunnelTokenError> {
    let own = folder.join(READERS);
    let path = match given {
        Some(path) => path,
        None if own.exists() => &own,
        None => return Ok(Vec::new()),
    };
    let text = read(path)?;
    let mut readers: Vec<HostRecipient> = Vec::new();
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let reader = text.parse().map_err(|_| TunnelTokenError::Reader { path: path.to_owned(), line })?;
        if !readers.contains(&reader) {
            readers.push(reader);
        }
    }
    if readers.len() > COPIES_MAX {
        return Err(TunnelTokenError::Readers { path: path.to_owned() });
    }
    Ok(readers)
}

fn read(path: &Path) -> Result<Zeroizing<String>, TunnelTokenError> {
    let failed = |source| TunnelTokenError::Read { path: path.to_owned(), source };
    let mut text = Zeroizing::new(String::with_capacity(4096));
    File::open(path).map_err(failed)?.take(BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

fn identity(path: &Path) -> Result<HostKey, TunnelTokenError> {
    let text = read(path)?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let key = line.and_then(|line| HostKey::parse(line).ok());
    key.ok_or_else(|| TunnelTokenError::Identity { path: path.to_owned() })
}

/// The token of the newest order, and where it comes from.
fn carried_over(
    kept: Option<TunnelOrder>,
    detail: &HostDetail,
    tunnel: &TunnelName,
    (identity_file, operators): (&Path, &Path),
) -> Result<(TunnelToken, String), TunnelTokenError> {
    let named = || (detail.host.name.clone(), tunnel.clone());
    let order = kept.ok_or_else(|| {
        let (host, tunnel) = named();
        TunnelTokenError::NoOrder { host, tunnel }
    })?;
    let file =
        JobFile::parse(order.blob.as_bytes(), "what the hub kept").map_err(TunnelTokenError::Unreadable)?;
    let signer = signer(&file, operators, clock::now())?;
    let args = match &file.payload.act {
        Act::SetTunnelToken(args) if args.tunnel == *tunnel && file.payload.host_id == detail.host.id => args,
        _ => {
            let (host, tunnel) = named();
            return Err(TunnelTokenError::OtherOrder { host, tunnel });
        }
    };
    if args.copies.is_empty() {
        let (host, tunnel) = named();
        return Err(TunnelTokenError::NoCopies { host, tunnel });
    }
    let token =
        TunnelToken::open_copy(&args.copies, &identity(identity_file)?, tunnel).map_err(
            |error| match error {
                OpenError::OtherKey => TunnelTokenError::NoReader { path: identity_file.to_owned() },
                error => TunnelTokenError::Open(error),
            },
        )?;
    let from = file.payload.not_before;
    let origin = format!(
        "The token is carried over from job {}, signed by {signer}, valid from {from}. The hub could have kept an older one: \
         compare that time.\nThe lost host still has it: once all works, make a new one at the tunnel's provider and sign \
         it.\n",
        file.payload.job_id
    );
    Ok((token, origin))
}

/// Who signed an order, of those who may sign jobs.
fn signer(file: &JobFile, operators: &Path, now: Timestamp) -> Result<String, TunnelTokenError> {
    let known = Operators::parse(&read(operators)?)?;
    for key in &file.keys {
        if let SigningRight::May(name) = known.right(key, Namespace::Job, now) {
            return Ok(name.to_string());
        }
    }
    let keys: Vec<String> = file.keys.iter().map(holdfast_trust::OperatorKey::fingerprint).collect();
    let signers = if keys.is_empty() { "nobody".to_owned() } else { keys.join(", ") };
    Err(TunnelTokenError::Unsigned { signers, operators: operators.to_owned() })
}
