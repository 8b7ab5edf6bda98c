//! The transport of requests: HTTPS, or a simulator in tests.
//!
//! Input: one complete request as text. Output: status, reason phrase and body as text, or why there is none.
//! Deliberately absent: interpretation. The meaning of parameters and answers stays on our side of this interface, so
//! that only text crosses it.

use std::future::Future;
use std::pin::Pin;

use holdfast_protocol::secret::Secret;

use super::error::PveError;

/// The group of limited slots that a request uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Read,
    /// A read of one storage, which may be away.
    StorageRead,
    Write,
}

pub struct Request {
    /// As errors and traces name the call.
    pub call: &'static str,
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub method: &'static str,
    /// From `/api2/json` on, percent-encoded.
    pub path: String,
    /// In their order: the query of a GET or DELETE, the form of a POST or PUT.
    pub params: Vec<(String, Secret)>,
    /// The value of the header `Authorization`.
    pub authorization: Secret,
    /// Its group of slots.
    pub place: Place,
    /// The longest body that is read.
    pub body_max: usize,
}

/// One answer, whatever its status.
pub struct Response {
    pub status: u16,
    /// The reason phrase, which is where Proxmox puts its message.
    pub reason: String,
    /// The body, at most [`Request::body_max`] long.
    pub body: Vec<u8>,
}

/// An answer that is on its way.
pub type Carried<'a> = Pin<Box<dyn Future<Output = Result<Response, PveError>> + Send + 'a>>;

/// Carries requests, each once.
pub trait Transport: Send + Sync {
    /// Carries one.
    ///
    /// The error is [`PveError::Unreachable`], [`PveError::TimedOut`], [`PveError::TooLarge`] or a refused server:
    /// these errors say whether the request may have arrived.
    fn carry(&self, request: Request) -> Carried<'_>;
}
