//! The connection to the hub: HTTPS, or a test's own hub.
//!
//! Input: a method, a path and a body. Output: a status and the body of the answer, bounded; or why there is none.
//! Deliberately absent: what the bytes mean.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use net::client::header::{HeaderValue, RANGE};
use net::client::{Answer, CallError, Client, Method};

/// A request that is under way.
pub type Posted<'a> = Pin<Box<dyn Future<Output = Result<Answer, CallError>> + Send + 'a>>;

/// A line to one hub.
pub trait Line: fmt::Debug + Send + Sync {
    /// Sends JSON to a path of the hub, and waits for the answer no longer than this.
    fn send<'a>(&'a self, method: Method, path: &'a str, body: Vec<u8>, within: Duration) -> Posted<'a>;

    /// Gets a part of a file of the hub: the bytes of an HTTP range. A hub of a test has no files unless it says so.
    fn part<'a>(&'a self, path: &'a str, range: String, within: Duration) -> Posted<'a> {
        let _ = (path, range, within);
        Box::pin(async { Ok(Answer::new(404, b"this hub has no files".to_vec())) })
    }
}

impl Line for Client {
    fn send<'a>(&'a self, method: Method, path: &'a str, body: Vec<u8>, within: Duration) -> Posted<'a> {
        Box::pin(self.call(method, path).body(body).within(within).send_raw())
    }

    fn part<'a>(&'a self, path: &'a str, range: String, within: Duration) -> Posted<'a> {
        let call = self.call(Method::GET, path).within(within);
        Box::pin(async move {
            // Digits and two marks are always a header.
            let Ok(range) = HeaderValue::from_str(&range) else {
                return Err(CallError::Contradiction { status: 0 });
            };
            call.header(RANGE, range).send_raw().await
        })
    }
}
