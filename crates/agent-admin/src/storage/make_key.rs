//! `agentd storage make-key`: the key for a backup server.
//!
//! The output ([`super::sealing`]) goes into the document; an operator signs for the fingerprint as for any other.
//! Nothing is kept here. Until the document carries the key, it encrypts nothing, so losing the text does no harm.
//! Deliberately absent: showing the key, and changing the key of a target that is in use.

use holdfast_protocol::id::KeyFingerprint;
use holdfast_protocol::storage::Backend;
use holdfast_seal::backup_key::BackupKey;
use serde_json::Value;

use super::StorageCommandError;
use super::sealing::{self, ForDocument, SealingArguments};
use crate::now;
use crate::settings::Settings;

/// The arguments. The present value of the target's `key` is ignored.
#[derive(Debug, clap::Args)]
pub struct MakeKeyArguments {
    #[command(flatten)]
    sealing: SealingArguments,
}

/// Makes it.
///
/// # Errors
/// [`StorageCommandError`]; there is no key then.
pub fn run(arguments: &MakeKeyArguments) -> Result<(), StorageCommandError> {
    let arguments = &arguments.sealing;
    let settings = Settings::load(&arguments.config)?;
    let recipient = sealing::recipient(&settings.state.dir)?;
    let written = arguments.written()?;
    let login = arguments.login(&mut sealing::terminal()?)?;
    let key = BackupKey::generate(now())?;
    let backend = with_key(written, key.fingerprint()).map_err(|why| arguments.no_target(Some(why)))?;
    let made = arguments.seal(("holdfast.made-key/v1", &recipient), backend, login, key)?;
    arguments.report(&made, words);
    Ok(())
}

fn words(made: &ForDocument) {
    println!(
        "A key was made for {}, which nobody has but this box. Put into its place in the document:",
        made.target
    );
    println!("  \"key\" of its backend: \"{}\"", made.fingerprint);
    println!("  \"creds\": \"{}\"", made.creds.as_str());
    println!(
        "An operator signs for it. Then make its recovery code here at once: `agentd escrow create`. Without one its"
    );
    println!("backups are lost with this box, for everyone.");
}

fn with_key(mut backend: Value, fingerprint: &KeyFingerprint) -> Result<Backend, serde_json::Error> {
    if let Some(pbs) = backend.get_mut("pbs").and_then(Value::as_object_mut) {
        pbs.insert("key".to_owned(), fingerprint.as_str().into());
    }
    serde_json::from_value(backend)
}
