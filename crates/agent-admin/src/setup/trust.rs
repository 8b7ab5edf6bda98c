//! The operators file, policy and release keys, installed by `setup`.
//!
//! Input: their checked texts, and the files on the host with the ones in use there. Output: steps, or the refusal to
//! replace who may sign jobs. A signed `policy_update` exists for that: anyone who could replace them here by running a
//! command again would need no signature. No job changes the release keys: root alone replaces them, here too.
//! Deliberately absent: putting them into use; the agent and the gate do that at their start.

use std::path::{Path, PathBuf};

use holdfast_protocol::audit::hex;
use sha2::{Digest, Sha256};

use super::diff::StepState;
use super::local::{LocalAct, LocalError, LocalStep, file_state};
use super::plan::Choices;
use super::signer_files::{ReleaseKeysFile, Trust};
use crate::port::admin_socket;
use crate::port::atomic_file;

/// Larger than either may be.
const BYTES_MAX: u64 = 128 * 1024;

/// The files next to the settings: operators, policy, release keys.
#[must_use]
pub fn files(config: &Path) -> [PathBuf; 3] {
    ["operators", "policy.toml", "release-keys"].map(|name| config.with_file_name(name))
}

/// The steps that install them, where they were named.
///
/// # Errors
/// When other files are there, or other texts are in use.
pub fn steps(choices: &Choices) -> Result<Vec<LocalStep>, LocalError> {
    let [operators, policy, release_keys] = files(&choices.config);
    let keys = choices.release_keys.as_ref().map(|keys| replaceable(&release_keys, keys)).transpose()?;
    let Some(trust) = &choices.trust else { return Ok(keys.into_iter().collect()) };
    let mut steps = vec![step(&operators, &trust.operators, &names(trust))?];
    if let Some(text) = &trust.policy {
        steps.push(step(&policy, text, "policy")?);
    } else if let Some(there) = there(&policy)? {
        return Err(LocalError::OtherTrust { path: policy, why: said(&there) });
    }
    if steps.iter().any(|step| step.status != StepState::Done) {
        in_use(choices, trust)?;
    }
    steps.extend(keys);
    Ok(steps)
}

/// Installs the release keys, also in the place of others.
fn replaceable(path: &Path, keys: &ReleaseKeysFile) -> Result<LocalStep, LocalError> {
    let differs = StepState::Differs("other release keys are there, and will be replaced");
    let status = file_state(path, &keys.text, differs)?;
    let names = keys.names.join(", ");
    Ok(installed(path, &keys.text, &format!("release keys ({names})"), status))
}

fn names(trust: &Trust) -> String {
    format!("operators ({})", trust.names.join(", "))
}

fn step(path: &Path, text: &str, what: &str) -> Result<LocalStep, LocalError> {
    let status = match there(path)? {
        None => StepState::Missing,
        Some(old) if old == text => StepState::Done,
        Some(old) => return Err(LocalError::OtherTrust { path: path.to_owned(), why: said(&old) }),
    };
    Ok(installed(path, text, what, status))
}

fn installed(path: &Path, text: &str, what: &str, status: StepState) -> LocalStep {
    let sha = hex(&Sha256::digest(text.as_bytes()));
    let what = format!("{what}, sha256 {}…, in {}", sha.get(..12).unwrap_or_default(), path.display());
    let act = LocalAct::TrustFile { path: path.to_owned(), text: text.to_owned() };
    LocalStep { what, status, act }
}

fn there(path: &Path) -> Result<Option<String>, LocalError> {
    let bytes = atomic_file::read(path, BYTES_MAX)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn said(text: &str) -> String {
    format!("other ones lie there already (sha256 {})", hex(&Sha256::digest(text.as_bytes())))
}

/// Checks the texts that a running agent uses. A stopped agent compares the files with its own records when it starts.
fn in_use(choices: &Choices, trust: &Trust) -> Result<(), LocalError> {
    let Ok(status) = admin_socket::ask(&choices.state_dir) else { return Ok(()) };
    let Some(used) = status.sections.trust.and_then(|section| section.operators) else { return Ok(()) };
    if used == hex(&Sha256::digest(trust.operators.as_bytes())) {
        return Ok(());
    }
    let [path, ..] = files(&choices.config);
    Err(LocalError::OtherTrust { path, why: format!("the running agent goes by others (sha256 {used})") })
}
