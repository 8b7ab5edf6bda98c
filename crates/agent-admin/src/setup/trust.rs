//! The operators file and policy, installed by `setup`.
//!
//! Input: their checked texts, and the files on the host with the ones in use there. Output: steps, or the refusal to
//! replace who may sign. A signed `policy_update` exists for that: anyone who could replace them here by running a
//! command again would need no signature. Deliberately absent: putting them into use; the agent does that at its start.

use std::path::{Path, PathBuf};

use holdfast_protocol::audit::hex;
use sha2::{Digest, Sha256};

use super::diff::StepState;
use super::local::{LocalAct, LocalError, LocalStep};
use super::plan::{Choices, Trust};
use crate::port::admin_socket;
use crate::port::atomic_file;

/// Larger than either may be.
const BYTES_MAX: u64 = 128 * 1024;

/// The two files next to the settings.
#[must_use]
pub fn files(config: &Path) -> [PathBuf; 2] {
    ["operators", "policy.toml"].map(|name| config.with_file_name(name))
}

/// The steps that install them, where they were named.
///
/// # Errors
/// When other files are there, or other texts are in use.
pub fn steps(choices: &Choices) -> Result<Vec<LocalStep>, LocalError> {
    let Some(trust) = &choices.trust else { return Ok(Vec::new()) };
    let [operators, policy] = files(&choices.config);
    let mut steps = vec![step(&operators, &trust.operators, &names(trust))?];
    if let Some(text) = &trust.policy {
        steps.push(step(&policy, text, "policy")?);
    } else if let Some(there) = there(&policy)? {
        return Err(LocalError::OtherTrust { path: policy, why: said(&there) });
    }
    if steps.iter().any(|step| step.status != StepState::Done) {
        in_use(choices, trust)?;
    }
    Ok(steps)
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
    let sha = hex(&Sha256::digest(text.as_bytes()));
    let what = format!("{what}, sha256 {}…, in {}", sha.get(..12).unwrap_or_default(), path.display());
    let act = LocalAct::TrustFile { path: path.to_owned(), text: text.to_owned() };
    Ok(LocalStep { what, status, act })
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
    let [path, _] = files(&choices.config);
    Err(LocalError::OtherTrust { path, why: format!("the running agent goes by others (sha256 {used})") })
}
