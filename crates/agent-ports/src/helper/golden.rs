//! Requests for an image build.
//!
//! Input: nothing but the request. Output: each stage as it begins, then the built image or why there is none. The
//! answer is lines of closed forms, bounded in number, length and time.

use std::time::Duration;

use holdfast_protocol::id::GoldenVersion;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::{Helper, HelperError, HelperRefusal, sudo};

/// The socket next to the one for mounting.
const SOCKET: &str = "holdfast-golden.sock";
const REQUEST: &str = r#"{"verb":"golden-build"}"#;
/// A dozen lines, one of which may hold the last output of mmdebstrap.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;
/// The helper ends a build after fifty minutes, and its unit five minutes later.
const BUILD_MAX: Duration = Duration::from_secs(3_400);

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoldenStage {
    /// Debian is fetched and unpacked.
    Debian,
    /// The image is put together.
    Image,
    /// It is packed.
    Pack,
    /// It is searched for secrets.
    Scan,
}

/// The built image.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltGolden {
    pub version: GoldenVersion,
    /// Its archive's file name in the dump folder.
    pub archive: String,
    /// The hash of the archive.
    pub sha256: String,
    /// How large it is.
    pub size_bytes: u64,
    /// Whether it is new.
    pub how: BuiltHow,
}

/// Whether a build gave something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BuiltHow {
    /// A new version.
    Built,
    /// Identical bytes existed already.
    Already,
}

/// One line of the answer.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Line {
    Stage { stage: GoldenStage },
    Built { built: BuiltGolden },
    ErrorBody { problem: String },
    Done { ok: bool, verb: String },
    Refused { ok: bool, code: String, message: String },
}

impl Helper {
    /// Has a golden built, which takes minutes.
    ///
    /// # Errors
    /// [`HelperError`]; [`HelperError::Unbuilt`] with the builder's own message.
    pub async fn golden_build(&self, at: impl FnMut(GoldenStage)) -> Result<BuiltGolden, HelperError> {
        let socket = self.socket.with_file_name(SOCKET);
        let asked = async {
            match UnixStream::connect(&socket).await {
                Ok(mut connection) => {
                    // A refusal may be on its way already.
                    let _refused_early = connection.write_all(REQUEST.as_bytes()).await;
                    let _refused_early = connection.shutdown().await;
                    answer(connection, at).await
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.golden_by_sudo(at).await,
                Err(source) => Err(HelperError::Closed { socket: socket.clone(), source }),
            }
        };
        tokio::time::timeout(BUILD_MAX, asked).await.map_err(|_| HelperError::Silent)?
    }

    async fn golden_by_sudo(&self, at: impl FnMut(GoldenStage)) -> Result<BuiltGolden, HelperError> {
        if !self.program.exists() {
            let (socket, program) = (self.socket.with_file_name(SOCKET), self.program.clone());
            return Err(HelperError::NotInstalled { socket, program });
        }
        let started = sudo(&self.sudo, &self.program, "golden-build").spawn();
        let mut child = started.map_err(|error| HelperError::Sudo(error.to_string()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut input), Some(output), Some(errors)) = pipes else { return Err(HelperError::Silent) };
        let _refused_early = input.write_all(REQUEST.as_bytes()).await;
        drop(input);
        let mut words = String::new();
        let (outcome, _) = tokio::join!(answer(output, at), async {
            errors.take(ANSWER_BYTES_MAX).read_to_string(&mut words).await
        });
        child.wait().await.map_err(HelperError::Broken)?;
        match outcome {
            Err(HelperError::Nothing) => Err(HelperError::Sudo(words.trim().chars().take(200).collect())),
            outcome => outcome,
        }
    }
}

async fn answer(
    from: impl AsyncRead + Unpin,
    mut at: impl FnMut(GoldenStage),
) -> Result<BuiltGolden, HelperError> {
    let mut lines = BufReader::new(from.take(ANSWER_BYTES_MAX)).lines();
    let (mut built, mut problem) = (None, None);
    while let Some(line) = lines.next_line().await.map_err(HelperError::Broken)? {
        match serde_json::from_str(&line).map_err(HelperError::Form)? {
            Line::Stage { stage } => at(stage),
            Line::Built { built: done } => built = Some(done),
            Line::ErrorBody { problem: why } => problem = Some(why),
            Line::Done { ok: true, verb } if verb == "golden-build" => {
                return built.ok_or(HelperError::Nothing);
            }
            Line::Refused { ok: false, code, message } => {
                return Err(match problem {
                    Some(problem) => HelperError::Unbuilt(problem),
                    None => HelperError::from(HelperRefusal { code, message }),
                });
            }
            Line::Done { .. } | Line::Refused { .. } => return Err(HelperError::Nothing),
        }
    }
    Err(HelperError::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn heard(lines: &[&str]) -> (Result<BuiltGolden, HelperError>, Vec<GoldenStage>) {
        let mut stages = Vec::new();
        let text = lines.join("\n");
        let outcome = answer(text.as_bytes(), |stage| stages.push(stage)).await;
        (outcome, stages)
    }

    const BUILT: &str =
        r#"{"built":{"version":"2026.11.1","archive":"a","sha256":"ab","size_bytes":7,"how":"built"}}"#;

    #[tokio::test]
    async fn stages_then_what_was_built() {
        let (outcome, stages) = heard(&[
            r#"{"stage":"debian"}"#,
            r#"{"stage":"pack"}"#,
            BUILT,
            r#"{"ok":true,"verb":"golden-build"}"#,
        ])
        .await;
        assert_eq!(outcome.unwrap().version.as_str(), "2026.11.1");
        assert_eq!(stages, [GoldenStage::Debian, GoldenStage::Pack]);
    }

    #[tokio::test]
    async fn what_went_wrong_is_reported_in_the_builders_words() {
        let refused = r#"{"ok":false,"code":"E_FAILED","message":"no golden was built"}"#;
        let (outcome, _) = heard(&[r#"{"problem":"mmdebstrap made no Debian"}"#, refused]).await;
        assert!(
            matches!(&outcome, Err(HelperError::Unbuilt(why)) if why.contains("mmdebstrap")),
            "{outcome:?}"
        );
        let (outcome, _) = heard(&[refused]).await;
        assert!(
            matches!(&outcome, Err(HelperError::Refused { code, .. }) if code == "E_FAILED"),
            "{outcome:?}"
        );
    }

    #[tokio::test]
    async fn every_other_answer_is_none() {
        for lines in [
            &[][..],
            &[BUILT],
            &[r#"{"ok":true,"verb":"golden-build"}"#],
            &[BUILT, r#"{"ok":true,"verb":"status"}"#],
        ] {
            let (outcome, _) = heard(lines).await;
            assert!(matches!(outcome, Err(HelperError::Nothing)), "{lines:?}: {outcome:?}");
        }
        for line in ["{", "[]", r#"{"stage":"lunch"}"#, r#"{"stage":"pack","more":1}"#] {
            let (outcome, _) = heard(&[line]).await;
            assert!(matches!(outcome, Err(HelperError::Form(_))), "{line}: {outcome:?}");
        }
    }
}
