//! `holdfast storage seal`: credentials sealed for one host.
//!
//! In: the document that names the target, a password that is read from a prompt, and the host's public key. Out: the
//! text for the target's `creds`. The owner of that key matters most: the hub passes the key on and could show its own.
//! So the key is either given by the operator or compared by them. Deliberately absent: changing the document.

use std::io::Read as _;
use std::path::Path;

use holdfast_protocol::desired::DOCUMENT_BYTES_MAX;
use holdfast_protocol::id::{HostName, TargetName};
use holdfast_protocol::operator::HostDetail;
use holdfast_protocol::storage::draft::{self, NoMedium};
use holdfast_protocol::storage::{Backend, HostRecipient, Sealed};
use holdfast_seal::backup_key::{BackupKey, KEY_FILE_BYTES_MAX};
use holdfast_seal::{Creds, SealContext};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::args::SealArgs;
use crate::cmd_errors::SealCommandError;
use crate::error::CliError;
use crate::hub::Hub;
use crate::prompt;
use crate::screen::Screen;

#[derive(Serialize)]
struct Outcome {
    host: HostName,
    target: TargetName,
    recipient: HostRecipient,
    creds: Sealed,
}

pub async fn run(args: SealArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let backend = backend(&args.document, &args.target)?;
    let key = match &args.key_file {
        Some(path) => {
            let bytes = Zeroizing::new(read(path, KEY_FILE_BYTES_MAX)?);
            Some(BackupKey::parse(&bytes).map_err(SealCommandError::Content)?)
        }
        None => None,
    };
    let detail: HostDetail = hub.get(&["v1", "hosts", &args.host]).await?;
    let host = detail.host.name;
    let recipient =
        recipient(&host, args.recipient, detail.sections.agent.and_then(|agent| agent.recipient))?;
    let password = prompt::password()?;
    let meant = SealContext { target: &args.target, backend: &backend };
    let creds = Creds::new(meant, args.user, password, key).map_err(SealCommandError::Content)?;
    let creds = creds.seal(&recipient).map_err(SealCommandError::Seal)?;
    let outcome = Outcome { host, target: args.target, recipient, creds };
    screen.show(&outcome, |outcome, _| format!("{}\n", outcome.creds.as_str()))
}

/// The host's key. A key that only the hub reported is never accepted.
pub(super) fn recipient(
    host: &HostName,
    given: Option<HostRecipient>,
    shown: Option<HostRecipient>,
) -> Result<HostRecipient, CliError> {
    match (given, shown) {
        (Some(given), Some(shown)) if given != shown => {
            Err(SealCommandError::OtherRecipient { host: host.clone(), shown, given }.into())
        }
        (Some(given), _) => Ok(given),
        (None, Some(shown)) => {
            prompt::confirm_comparison(
                &format!(
                    "The hub says that {host} has this key:\n  {shown}\nDoes `agentd storage key` on {host} print the same?"
                ),
                "--recipient with what `agentd storage key` prints on the box",
            )?;
            Ok(shown)
        }
        (None, None) => Err(SealCommandError::NoRecipient { host: host.clone() }.into()),
    }
}

fn backend(document: &Path, target: &TargetName) -> Result<Backend, CliError> {
    let none =
        |source| SealCommandError::NoTarget { path: document.to_owned(), target: target.clone(), source };
    let written = draft::backend(&read(document, DOCUMENT_BYTES_MAX)?, target).map_err(|why| match why {
        NoMedium::Form(source) => none(Some(source)),
        NoMedium::Unnamed => none(None),
    })?;
    Ok(Backend::deserialize(written).map_err(|source| none(Some(source)))?)
}

fn read(path: &Path, max: usize) -> Result<Vec<u8>, SealCommandError> {
    let failed = |source| SealCommandError::Read { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::with_capacity(max.min(64 * 1024) + 1);
    file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > max {
        return Err(failed(std::io::ErrorKind::FileTooLarge.into()));
    }
    Ok(bytes)
}
