//! The hub's pages as HTML.
//!
//! In: what the API answers, and who looks at it. Out: whole documents that need no script, and the files that they
//! refer to, by digest. All text of hosts and guests is escaped by the template engine. Deliberately absent: requests,
//! the store, and every decision about who may see what.
//!
//! | module | contents |
//! | --- | --- |
//! | [`frame`] | what all pages have: title, navigation, the person, the time |
//! | [`look`] | the theme, and the page to come back to |
//! | [`words`] | a state as a word, a sign and a tone |
//! | [`assets`] | style sheet, script and icon, by their digest |
//! | others | one page each |
#![forbid(unsafe_code)]

pub mod account;
pub mod assets;
pub mod events;
pub mod frame;
pub mod guest;
pub mod guests;
pub mod host;
pub mod hosts;
pub mod look;
pub mod problem;
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
