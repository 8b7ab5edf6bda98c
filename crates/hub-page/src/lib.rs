//! The hub's pages as HTML.
//!
//! In: what the API answers, and who looks at it. Out: whole documents that need no script, and the files that they
//! refer to, by digest. All text of hosts and guests is escaped by the template engine. Deliberately absent: requests,
//! the store, and every decision about who may see what.
//!
//! | module | contents |
//! | --- | --- |
//! | [`frame`] | what all pages have: title, navigation, the person, the time |
//! | [`words`] | a state as a word, a sign and a tone |
//! | [`assets`] | style sheet and script, by their digest |
//! | [`chart`] | use over time as pictures with tables |
//! | [`qr`] | a text as a QR code |
//! | others | one page each |
#![forbid(unsafe_code)]

pub mod account;
pub mod assets;
pub mod chart;
pub mod events;
pub mod frame;
pub mod guest;
pub mod guests;
pub mod host;
pub mod hosts;
pub mod orders;
pub mod problem;
pub mod qr;
pub mod sign_in;
pub mod start;
pub mod words;

#[cfg(test)]
mod tests;

/// The policy that each page is sent with: nothing inline, nothing from elsewhere.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// A page that cannot be written: the template engine reports it, and nothing was sent.
pub use askama::Error as RenderError;
