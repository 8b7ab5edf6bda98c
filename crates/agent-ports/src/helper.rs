//! The client of the root helper.
//!
//! Input: the name and UUID of a target that an operator approved, and nothing else. Output: the state of the disks
//! that root's own policy names, and the mounts and unmounts done. The answer is bounded in size and time and read
//! strictly. Deliberately absent: options, paths and devices; only root's policy sets them.

mod golden;
mod golden_publish;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use holdfast_protocol::id::TargetName;
use holdfast_protocol::storage::backend::FsUuid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

pub use golden::{BuiltGolden, BuiltHow, GoldenStage};
pub use golden_publish::PublishedGolden;

/// Sixty-four targets with their refusals are a tenth of it.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;
/// The helper's service is ended after a minute.
const ANSWER_MAX: Duration = Duration::from_secs(65);
/// The most of sudo's output that is shown to a person.
const WORDS_MAX: usize = 200;
const STATUS: Request<'static> = Request { verb: "status", target: None, uuid: None };

/// Where the helper is.
#[derive(Clone, Debug)]
pub struct Helper {
    socket: PathBuf,
    program: PathBuf,
    sudo: PathBuf,
    patience: Duration,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Request<'a> {
    verb: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uuid: Option<&'a str>,
}

/// The target that is mounted now.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelperMounted {
    /// The target, as it was asked for.
    pub target: String,
    /// The file system, as it was asked for.
    pub uuid: String,
    /// The device that wears it.
    pub device: String,
    /// Where it is mounted.
    pub at: String,
    /// `mounted` now, or `already`.
    pub how: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unmounted {
    #[serde(rename = "target")]
    _target: String,
    #[serde(rename = "at")]
    _at: String,
}

/// The state of the policy's disks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelperStatus {
    /// Each target of the policy.
    pub targets: Vec<HelperTarget>,
    /// Mount points beneath `/mnt/holdfast` that the helper did not make.
    pub foreign: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelperTarget {
    /// Its name in the policy.
    pub target: String,
    /// Whether the helper has it mounted.
    pub mounted: bool,
    /// The one device that is meant, where it is attached.
    #[serde(default)]
    pub device: Option<String>,
    /// Why there is none.
    #[serde(default)]
    pub refusal: Option<HelperRefusal>,
}

/// The helper's own refusal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelperRefusal {
    /// Stable, such as `E_DEVICE_ABSENT`.
    pub code: String,
    pub message: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    #[error("there is neither {} nor {}: the helper is not installed", socket.display(), program.display())]
    NotInstalled {
        /// The socket, which is tried first.
        socket: PathBuf,
        /// The program that sudo would start.
        program: PathBuf,
    },
    /// The socket is there and closed to this user.
    #[error("{} does not let this user in (group `holdfast` may)", socket.display())]
    Closed {
        socket: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// An older package, or a unit that was switched off.
    #[error("{} is not there: `systemctl enable --now holdfast-golden-publish.socket`", .0.display())]
    NoPublisher(PathBuf),
    /// The connection or the pipe broke.
    #[error("the helper broke off: its journal says why (`journalctl -t holdfast-helper`)")]
    Broken(#[source] std::io::Error),
    /// No answer in time.
    #[error("the helper gave no answer in time: a disk may hang (`journalctl -t holdfast-helper`)")]
    Silent,
    /// sudo did not start it.
    #[error(
        "sudo does not start the helper ({0}): lay down its sudoers file, or start holdfast-helper.socket"
    )]
    Sudo(String),
    /// Another version, or not the helper.
    #[error("the helper's answer has another form than this version's: reinstall both")]
    Form(#[source] serde_json::Error),
    /// Too much of it.
    #[error("the helper's answer is longer than {ANSWER_BYTES_MAX} bytes: reinstall it")]
    TooLong,
    /// It ended without a result.
    #[error("the helper's answer has no end: its journal says why (`journalctl -t holdfast-helper`)")]
    Nothing,
    /// The builder's own message.
    #[error("no golden was built: {0}")]
    Unbuilt(String),
    /// The helper refused.
    #[error("the helper refuses ({code}): {message}")]
    Refused { code: String, message: String },
}

impl From<HelperRefusal> for HelperError {
    fn from(HelperRefusal { code, message }: HelperRefusal) -> Self {
        Self::Refused { code, message }
    }
}

impl Helper {
    /// As the package installs it.
    #[must_use]
    pub fn shipped() -> Self {
        Self {
            socket: "/run/holdfast-helper.sock".into(),
            program: "/usr/lib/holdfast/holdfast-helper".into(),
            sudo: "/usr/bin/sudo".into(),
            patience: ANSWER_MAX,
        }
    }

    /// The helper at this socket only, without sudo.
    #[must_use]
    pub fn at_socket(socket: PathBuf) -> Self {
        Self { socket, program: "/nonexistent".into(), ..Self::shipped() }
    }

    /// Asks for the state of the disks. It changes nothing.
    ///
    /// # Errors
    /// [`HelperError`].
    pub async fn status(&self) -> Result<HelperStatus, HelperError> {
        self.ask(STATUS).await
    }

    /// Has a target mounted; one that is mounted already stays.
    ///
    /// # Errors
    /// [`HelperError`].
    pub async fn mount(&self, target: &TargetName, uuid: &FsUuid) -> Result<HelperMounted, HelperError> {
        let (target, uuid) = (Some(target.as_str()), Some(uuid.as_str()));
        self.ask(Request { verb: "mount", target, uuid }).await
    }

    /// Has a target unmounted, where the helper mounted it.
    ///
    /// # Errors
    /// [`HelperError`].
    pub async fn unmount(&self, target: &TargetName) -> Result<(), HelperError> {
        let request = Request { verb: "unmount", target: Some(target.as_str()), uuid: None };
        let _said: Unmounted = self.ask(request).await?;
        Ok(())
    }

    async fn ask<T: DeserializeOwned>(&self, request: Request<'_>) -> Result<T, HelperError> {
        let text = serde_json::to_string(&request).map_err(HelperError::Form)?;
        let asked = async {
            match UnixStream::connect(&self.socket).await {
                Ok(connection) => by_socket(connection, &text).await,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    self.by_sudo(request.verb, &text).await
                }
                Err(source) => Err(HelperError::Closed { socket: self.socket.clone(), source }),
            }
        };
        let answer = tokio::time::timeout(self.patience, asked).await.map_err(|_| HelperError::Silent)??;
        parse(request.verb, &answer)
    }

    async fn by_sudo(&self, verb: &str, request: &str) -> Result<Vec<u8>, HelperError> {
        if !self.program.exists() {
            let (socket, program) = (self.socket.clone(), self.program.clone());
            return Err(HelperError::NotInstalled { socket, program });
        }
        let unstarted = |error: &std::io::Error| HelperError::Sudo(error.to_string());
        let mut child = sudo(&self.sudo, &self.program, verb).spawn().map_err(|error| unstarted(&error))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut input), Some(output), Some(errors)) = pipes else { return Err(HelperError::Silent) };
        // A helper that refuses before reading has closed its end. Its answer counts, not the write error.
        let _refused_early = input.write_all(request.as_bytes()).await;
        drop(input);
        let (answer, words) = tokio::join!(bounded(output), bounded(errors));
        child.wait().await.map_err(HelperError::Broken)?;
        let answer = answer?;
        if answer.is_empty() {
            let words = String::from_utf8_lossy(&words?).trim().chars().take(WORDS_MAX).collect();
            return Err(HelperError::Sudo(words));
        }
        Ok(answer)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "sudo, where the helper has no socket: the one exact line of its sudoers file"
)]
fn sudo(sudo: &Path, program: &Path, verb: &str) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(sudo);
    command.arg("-n").arg(program).arg(verb).env_clear().kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

async fn by_socket(mut connection: UnixStream, request: &str) -> Result<Vec<u8>, HelperError> {
    // The same as above: a refusal may be on its way already.
    let _refused_early = connection.write_all(request.as_bytes()).await;
    let _refused_early = connection.shutdown().await;
    bounded(connection).await
}

async fn bounded(from: impl AsyncRead + Unpin) -> Result<Vec<u8>, HelperError> {
    let mut bytes = Vec::new();
    from.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut bytes).await.map_err(HelperError::Broken)?;
    if bytes.len() as u64 > ANSWER_BYTES_MAX { Err(HelperError::TooLong) } else { Ok(bytes) }
}

/// Checks `ok` and `verb`, and parses the rest of the answer.
fn parse<T: DeserializeOwned>(verb: &str, answer: &[u8]) -> Result<T, HelperError> {
    let mut fields: Map<String, Value> = serde_json::from_slice(answer).map_err(HelperError::Form)?;
    let ok = fields.remove("ok") == Some(Value::Bool(true));
    let same = fields.remove("verb") == Some(Value::String(verb.to_owned()));
    let rest = Value::Object(fields);
    if ok && same {
        return serde_json::from_value(rest).map_err(HelperError::Form);
    }
    let HelperRefusal { code, message } = serde_json::from_value(rest).map_err(HelperError::Form)?;
    Err(HelperError::Refused { code, message })
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;

    fn helper(place: &Path) -> Helper {
        Helper {
            socket: place.join("door.sock"),
            program: place.join("none"),
            sudo: "/bin/false".into(),
            patience: Duration::from_secs(20),
        }
    }

    /// The effect of this answer, and the request.
    async fn answered(answer: Vec<u8>) -> (Result<HelperStatus, HelperError>, String) {
        let place = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(place.path().join("door.sock")).unwrap();
        let other = async {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut asked = String::new();
            connection.read_to_string(&mut asked).await.unwrap();
            // A peer may close the connection before the end of an endless answer.
            let _closed = connection.write_all(&answer).await;
            asked
        };
        let helper = helper(place.path());
        tokio::join!(helper.status(), other)
    }

    #[tokio::test]
    async fn an_answer_is_read_as_it_is_meant() {
        let answer = br#"{"ok":true,"verb":"status","targets":[
            {"target":"usb1","mounted":true,"device":"/dev/sdb1"},
            {"target":"usb2","mounted":false,"refusal":{"code":"E_DEVICE_ABSENT","message":"gone"}}],"foreign":["/mnt/holdfast/x"]}"#;
        let (status, asked) = answered(answer.to_vec()).await;
        let status = status.unwrap();
        assert_eq!(asked, r#"{"verb":"status"}"#);
        assert_eq!(
            (status.targets.len(), status.foreign.as_slice()),
            (2, &["/mnt/holdfast/x".to_owned()][..])
        );
        assert!(status.targets[0].mounted);
        assert_eq!(status.targets[1].refusal.as_ref().unwrap().code, "E_DEVICE_ABSENT");
        let (refused, _) = answered(br#"{"ok":false,"code":"E_PEER","message":"not you"}"#.to_vec()).await;
        assert!(matches!(refused, Err(HelperError::Refused { code, .. }) if code == "E_PEER"));
    }

    #[tokio::test]
    async fn every_other_answer_is_none() {
        for other in [
            "",
            "{",
            "[]",
            r#"{"ok":true}"#,
            r#"{"ok":true,"verb":"mount","targets":[],"foreign":[]}"#,
            r#"{"ok":true,"verb":"status","targets":[],"foreign":[],"more":1}"#,
            r#"{"ok":"true","verb":"status","targets":[],"foreign":[]}"#,
        ] {
            let (outcome, _) = answered(other.as_bytes().to_vec()).await;
            assert!(matches!(outcome, Err(HelperError::Form(_))), "{other}: {outcome:?}");
        }
        let (outcome, _) = answered(vec![b' '; 300_000]).await;
        assert!(matches!(outcome, Err(HelperError::TooLong)), "{outcome:?}");
    }

    #[tokio::test]
    async fn a_missing_or_silent_helper_is_reported_apart() {
        let place = tempfile::tempdir().unwrap();
        let none = helper(place.path()).status().await;
        assert!(matches!(none, Err(HelperError::NotInstalled { .. })), "{none:?}");
        let unwilling = Helper { program: "/bin/sh".into(), ..helper(place.path()) };
        let outcome = unwilling.status().await;
        assert!(matches!(outcome, Err(HelperError::Sudo(_))), "{outcome:?}");
        let no_sudo = Helper { sudo: place.path().join("none"), ..unwilling };
        let outcome = no_sudo.status().await;
        assert!(matches!(outcome, Err(HelperError::Sudo(_))), "{outcome:?}");
        let _listening = UnixListener::bind(place.path().join("door.sock")).unwrap();
        let silent = Helper { patience: Duration::from_millis(50), ..helper(place.path()) };
        assert!(matches!(silent.status().await, Err(HelperError::Silent)));
    }
}
