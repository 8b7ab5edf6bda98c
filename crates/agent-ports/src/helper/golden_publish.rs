//! Requests to put a fetched image into the dump folder.
//!
//! Input: nothing; root's program looks into the agent's folder by itself. Output: the image that is in the dump folder now,
//! or root's reason why not. The answer is one line of a closed form, bounded in length and time.

use std::time::Duration;

use holdfast_protocol::id::GoldenVersion;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::{Helper, HelperError, HelperRefusal};

/// The publisher's socket, next to the one for mounting.
const SOCKET: &str = "holdfast-golden-publish.sock";
const ANSWER_BYTES_MAX: u64 = 16 * 1024;
/// Its unit is ended after half an hour.
const PUBLISH_MAX: Duration = Duration::from_secs(1_860);

/// An image in the dump folder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedGolden {
    pub version: GoldenVersion,
    /// Its archive's file name there.
    pub archive: String,
    pub sha256: String,
    pub size_bytes: u64,
    /// Whether it is new.
    pub how: PublishedHow,
}

/// Whether publishing changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedHow {
    /// It was put there.
    Published,
    /// The same bytes were there.
    Already,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Published(PublishedGolden),
    Refused(HelperRefusal),
}

impl Helper {
    /// Has the image in the agent's folder published, which takes as long as copying it.
    ///
    /// # Errors
    /// [`HelperError`]; [`HelperError::Refused`] with root's own reason.
    pub async fn golden_publish(&self) -> Result<PublishedGolden, HelperError> {
        let socket = self.socket.with_file_name(SOCKET);
        let asked = async {
            let connected = UnixStream::connect(&socket).await;
            let mut connection = connected.map_err(|source| match source.kind() {
                std::io::ErrorKind::NotFound => HelperError::NoPublisher(socket.clone()),
                _ => HelperError::Closed { socket: socket.clone(), source },
            })?;
            // Nothing is asked for but by connecting.
            let _ended_early = connection.shutdown().await;
            answer(connection).await
        };
        tokio::time::timeout(PUBLISH_MAX, asked).await.map_err(|_| HelperError::Silent)?
    }
}

async fn answer(from: impl AsyncRead + Unpin) -> Result<PublishedGolden, HelperError> {
    let mut text = String::new();
    from.take(ANSWER_BYTES_MAX + 1).read_to_string(&mut text).await.map_err(HelperError::Broken)?;
    if text.len() as u64 > ANSWER_BYTES_MAX {
        return Err(HelperError::TooLong);
    }
    if text.is_empty() {
        return Err(HelperError::Nothing);
    }
    match serde_json::from_str(&text).map_err(HelperError::Form)? {
        Answer::Published(published) => Ok(published),
        Answer::Refused(refusal) => Err(refusal.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_line_says_what_became_of_it() {
        let done = r#"{"published":{"version":"2026.11.1","archive":"a","sha256":"ab","size_bytes":7,"how":"published"}}"#;
        assert_eq!(answer(done.as_bytes()).await.unwrap().version.as_str(), "2026.11.1");
        let refused = r#"{"refused":{"code":"FULL","message":"free room"}}"#;
        let error = answer(refused.as_bytes()).await.unwrap_err();
        assert!(matches!(&error, HelperError::Refused { code, .. } if code == "FULL"), "{error}");
        assert!(matches!(answer(&b""[..]).await, Err(HelperError::Nothing)));
        for line in ["{}", "[]", &done.replace("ab", "ab\",\"more\":\"x"), &format!("{done}{refused}")] {
            assert!(matches!(answer(line.as_bytes()).await, Err(HelperError::Form(_))), "{line}");
        }
    }
}
