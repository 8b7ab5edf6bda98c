//! The connection to the hub, with its timeouts.
//!
//! What comes in: a path and a body. What goes out: a status and the body of the answer, bounded; or why there is none. In
//! production it is HTTPS; a test that is the hub itself has a line of its own. Deliberately absent: what the bytes mean.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use holdfast_protocol::envelope::REQUEST_ID_HEADER;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use uuid::Uuid;

use super::HubError;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    pub body: Vec<u8>,
}

/// What is asked of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// To tell; the body is empty.
    Get,
    Put,
    Post,
}

/// A request that is under way.
pub type Posted<'a> = Pin<Box<dyn Future<Output = Result<Answer, HubError>> + Send + 'a>>;

/// A line to one hub.
pub trait Line: fmt::Debug + Send + Sync {
    /// Sends JSON to the hub's address and a path below it, and waits for the answer no longer than this.
    fn send<'a>(
        &'a self,
        verb: Verb,
        base_and_path: (&'a str, &'a str),
        body: Vec<u8>,
        within: Duration,
    ) -> Posted<'a>;
}

#[derive(Clone, Debug)]
pub(super) struct Https {
    pub http: reqwest::Client,
    pub body_max: usize,
}

impl Line for Https {
    fn send<'a>(
        &'a self,
        verb: Verb,
        (base, path): (&'a str, &'a str),
        body: Vec<u8>,
        within: Duration,
    ) -> Posted<'a> {
        Box::pin(self.carry(verb, (base, path), body, within))
    }
}

impl Https {
    async fn carry(
        &self,
        verb: Verb,
        (base, path): (&str, &str),
        body: Vec<u8>,
        within: Duration,
    ) -> Result<Answer, HubError> {
        let failed = |source| HubError::of_transport(base, source);
        let method = match verb {
            Verb::Get => Method::GET,
            Verb::Put => Method::PUT,
            Verb::Post => Method::POST,
        };
        let request = self
            .http
            .request(method, format!("{base}{path}"))
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
