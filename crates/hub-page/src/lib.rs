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
//! | [`sheet`] | the page of facts, tables, lines and forms that most views are |
//! | [`form`] | forms for the parts of a document |
//! | [`json_text`] | a document's text with its lines and colours |
//! | [`assets`] | style sheet, scripts and icon, by their digest |
//! | [`chart`] | use over time as pictures with tables |
//! | [`qr`] | a text as a QR code |
//! | others | one page each |
#![forbid(unsafe_code)]

pub mod account;
pub mod alerts;
pub mod assets;
pub mod audit;
pub mod chart;
pub mod conflict;
pub mod customers;
pub mod document;
pub mod edit;
pub mod enrollment;
pub mod events;
pub mod first_start;
pub mod form;
pub mod frame;
pub mod guest;
pub mod guests;
pub mod host;
pub mod hosts;
pub mod images;
pub mod jobs;
pub mod json_text;
pub mod look;
pub mod operators;
pub mod orders;
pub mod own;
pub mod parts;
pub mod problem;
pub mod qr;
pub mod releases;
pub mod removal;
pub mod restore_certificate;
pub mod review;
pub mod rollouts;
pub mod settings;
pub mod sheet;
pub mod sign_in;
pub mod silences;
pub mod start;
pub mod storage;
mod table;
pub mod tokens;
pub mod words;

#[cfg(test)]
mod form_page_tests;
#[cfg(test)]
mod tests;

/// The policy that each page is sent with: nothing inline, nothing from elsewhere.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// A page that cannot be written: the template engine reports it, and nothing was sent.
pub use askama::Error as RenderError;
