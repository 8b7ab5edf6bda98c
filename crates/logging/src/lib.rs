//! The log of agent, hub and guest agent: closed fields, three forms.
//!
//! In: events of `tracing`, with the fields of their spans. Out: one entry each, on standard error or in systemd's
//! journal. The fields are a closed set ([`entry::Entry`]); every other one is a text in `detail`. A field of the closed
//! set has a type: what does not parse as it goes into `detail`, so that text from elsewhere can pretend nothing there.
//! Deliberately absent: redaction by names of fields. A secret has a type that prints nothing.
#![forbid(unsafe_code)]

mod entry;
mod journal;
mod layer;
mod origin;
mod output;
mod text;

pub use entry::{Entry, Word};
pub use layer::Entries;
pub use origin::{Service, set_guest, set_host};
pub use output::{Form, Output};
use tracing_subscriber::Layer as _;
pub use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts the log of this process, once, before its first event.
pub fn start(service: Service, filter: Targets, form: Form) {
    let entries = Entries::new(service, Output::of(form));
    tracing_subscriber::registry().with(entries.with_filter(filter)).init();
}

/// The filter of an environment variable, or `info` where there is none that can be read.
#[must_use]
pub fn filter_of(variable: &str) -> Targets {
    let given = std::env::var(variable).ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| Targets::new().with_default(tracing::Level::INFO))
}
