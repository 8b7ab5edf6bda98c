//! The transport of requests: HTTPS, or a simulator in tests.
//!
//! What comes in: one request as text, complete. What goes out: status, reason phrase and body as text, or why there is
//! none. Deliberately absent: meaning. What the parameters say and how an answer is read stays on our side of this door,
//! so that nothing but text crosses it.

use std::future::Future;
use std::pin::Pin;

use holdfast_protocol::secret::Secret;

use super::error::PveError;

/// Which of the bounded places a request takes.
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
    /// The place it takes.
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
    /// The error is [`PveError::Unreachable`], [`PveError::TimedOut`], [`PveError::TooLarge`] or a refused server: those
    /// that say whether the request may have arrived.
    fn carry(&self, request: Request) -> Carried<'_>;
}
