//! The layer that makes entries of events.

use std::fmt;

use jiff::Timestamp;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::entry::Entry;
use crate::origin::Service;
use crate::output::Output;

/// Writes every event as an entry.
#[derive(Debug)]
pub struct Entries {
    service: Service,
    output: Output,
}

impl Entries {
    #[must_use]
    pub const fn new(service: Service, output: Output) -> Self {
        Self { service, output }
    }
}

/// The fields of a span, as text.
#[derive(Default)]
struct SpanFields(Vec<(&'static str, String)>);

impl Visit for SpanFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Entries {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<SpanFields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        #[expect(
            clippy::disallowed_methods,
            reason = "an entry says when it was written, and decides nothing"
        )]
        let now = Timestamp::now();
        let mut entry = Entry::new(now, *event.metadata().level(), self.service);
        // From the outermost span to the event: the nearer value of a field counts.
        for span in
            context.event_scope(event).into_iter().flat_map(tracing_subscriber::registry::Scope::from_root)
        {
            if let Some(SpanFields(fields)) = span.extensions().get() {
                fields.iter().for_each(|(name, text)| entry.set(name, text.clone()));
            }
        }
        event.record(&mut entry);
        self.output.write(&entry);
    }
}
