//! The line to the hub: bytes out, bytes in, and how long that may take.
//!
//! What comes in: a path and a body. What goes out: a status and the body of the answer, bounded; or why there is none. In
//! production it is HTTPS; a test that is the hub itself has a line of its own. Deliberately absent: what the bytes mean.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use holdfast_protocol::envelope::REQUEST_ID_HEADER;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use uuid::Uuid;

use super::HubError;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// A post that is under way.
pub type Posted<'a> = Pin<Box<dyn Future<Output = Result<Answer, HubError>> + Send + 'a>>;

/// A line to one hub.
pub trait Line: fmt::Debug + Send + Sync {
    /// Posts JSON to a path below the hub's address, and waits for the answer no longer than this.
    fn post<'a>(&'a self, base: &'a str, path: &'a str, body: Vec<u8>, within: Duration) -> Posted<'a>;
}

/// HTTPS.
#[derive(Clone, Debug)]
pub(super) struct Https {
    pub http: reqwest::Client,
    pub body_max: usize,
}

impl Line for Https {
    fn post<'a>(&'a self, base: &'a str, path: &'a str, body: Vec<u8>, within: Duration) -> Posted<'a> {
        Box::pin(self.send(base, path, body, within))
    }
}

impl Https {
    async fn send(
        &self,
        base: &str,
        path: &str,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Answer, HubError> {
        let failed = |source| HubError::of_transport(base, source);
        let request = self
            .http
            .post(format!("{base}{path}"))
            .header(REQUEST_ID_HEADER, Uuid::now_v7().to_string())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .timeout(within)
            .body(body);
        let mut answer = request.send().await.map_err(failed)?;
        let (status, mut read) = (answer.status().as_u16(), Vec::new());
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if read.len() + chunk.len() > self.body_max {
                return Err(HubError::TooLong { max: self.body_max });
            }
            read.extend_from_slice(&chunk);
        }
        Ok(Answer { status, body: read })
    }
}
