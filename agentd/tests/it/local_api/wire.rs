//! A client that sends any bytes over TLS.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::Envelope;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Longer than every bound of the agent.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Wire {
    stream: TlsStream<TcpStream>,
    read: Vec<u8>,
}

/// One answer, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Without the date, in small letters.
    pub head: Vec<String>,
    pub body: Vec<u8>,
}

impl Answer {
    /// What this header says.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The code, where there is an envelope around it.
    pub fn code(&self) -> Option<ErrorCode> {
        let envelope: Envelope<serde_json::Value> = serde_json::from_slice(&self.body).ok()?;
        envelope.error.map(|problem| problem.code)
    }
}

impl Wire {
    pub fn new(stream: TlsStream<TcpStream>) -> Self {
        Self { stream, read: Vec::new() }
    }

    pub const fn stream(&self) -> &TlsStream<TcpStream> {
        &self.stream
    }

    /// Sends it. A client that is cut off while sending notices this when it reads.
    pub async fn say(&mut self, bytes: &[u8]) {
        let said = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        drop(tokio::time::timeout(PATIENCE, said).await.expect_said());
    }

    /// The next answer; none when the connection ends without one. A HEAD's answer has no body whatever its head says.
    pub async fn answer(&mut self, head_alone: HeadAlone) -> Option<Answer> {
        tokio::time::timeout(PATIENCE, self.next(head_alone)).await.unwrap_or_else(|_| {
            panic!("neither answered nor closed: {:?}", String::from_utf8_lossy(&self.read))
        })
    }

    async fn next(&mut self, head_alone: HeadAlone) -> Option<Answer> {
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            self.more().await?;
        };
        let head: Vec<String> = String::from_utf8(self.read.drain(..end).collect())
            .unwrap()
            .lines()
            .map(str::to_ascii_lowercase)
            .filter(|line| !line.is_empty() && !line.starts_with("date:"))
            .collect();
        let status = head[0].split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.filter(|_| head_alone == HeadAlone::No).map_or(0, |text| text.parse().unwrap());
        while self.read.len() < length {
            self.more().await?;
        }
        let body = self.read.drain(..length).collect();
        Some(Answer { status, head, body })
    }

    async fn more(&mut self) -> Option<()> {
        let mut bytes = [0; 4096];
        // A reset is an end, too.
        let count = self.stream.read(&mut bytes).await.ok().filter(|count| *count > 0)?;
        self.read.extend_from_slice(&bytes[..count]);
        Some(())
    }

    /// Whether the agent ends the connection, and sends nothing more.
    pub async fn ends(&mut self) -> bool {
        let end = tokio::time::timeout(PATIENCE, self.more()).await;
        matches!(end, Ok(None)) && self.read.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadAlone {
    Yes,
    No,
}

trait ReplyText {
    fn expect_said(self) -> Option<std::io::Error>;
}

impl ReplyText for Result<std::io::Result<()>, tokio::time::error::Elapsed> {
    fn expect_said(self) -> Option<std::io::Error> {
        self.unwrap_or_else(|_| panic!("the agent neither reads nor closes")).err()
    }
}
