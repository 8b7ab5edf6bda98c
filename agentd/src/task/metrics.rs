//! The page of metrics of this host.
//!
//! In: the last report, the newest sample of use, the contact with the hub, the slots of heavy work. Out: Prometheus' text
//! format, at the admin socket and, where the settings name one, at a port of the loopback. It has no secrets, but names of
//! guests and customers: who may log in on this host can read that port.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use axum::routing::get;
use holdfast_protocol::json::chain;
use holdfast_protocol::report::Sections;
use metrics::{Exposition, Labels, Metric, Value};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::stop::Stop;
use super::usage::UsageQueue;
use crate::model::view::HeavyView;
use crate::port::clock::Clock;
use crate::port::hub::Contact;

/// Scrapes at a time. A scraper that waits behind them has others before it, or a hostile user of this host.
const AT_ONCE: usize = 4;

/// A page is made within milliseconds.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// What a page is made of.
#[derive(Clone)]
pub struct MetricsSource {
    pub sections: watch::Receiver<Arc<Sections>>,
    pub usage: UsageQueue,
    pub contact: watch::Receiver<Contact>,
    pub heavy: watch::Receiver<HeavyView>,
    pub clock: Arc<dyn Clock>,
}

impl MetricsSource {
    /// The page of now.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = Exposition::default();
        let (sections, sample) = (Arc::clone(&self.sections.borrow()), self.usage.newest());
        metrics::host::add(&mut page, &Labels::default(), (&sections, sample.as_ref()), self.clock.now());
        let contact = self.contact.borrow().clone();
        let none = Labels::default();
        if let Some(at) = contact.reached_at {
            page.add(Metric::HubContact, &none, Value::at(at));
        }
        page.add(Metric::CertificateEnd, &none, Value::at(contact.certificate_ends_at));
        let heavy = self.heavy.borrow();
        page.add(Metric::HeavyRunning, &none, heavy.holding.len().into());
        page.add(Metric::HeavyWaiting, &none, heavy.waiting.len().into());
        drop(heavy);
        page.page()
    }
}

/// Serves `/metrics` until the agent stops.
pub async fn run(listener: TcpListener, source: MetricsSource, mut stop: Stop) {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let page = move || {
        let (source, turns) = (source.clone(), Arc::clone(&turns));
        async move {
            let turn = tokio::time::timeout(ANSWER_MAX, turns.acquire()).await;
            match turn {
                Ok(Ok(_turn)) => {
                    ([(CONTENT_TYPE, metrics::exposition::CONTENT_TYPE)], source.page()).into_response()
                }
                Ok(Err(_)) | Err(_) => axum::http::StatusCode::SERVICE_UNAVAILABLE.into_response(),
            }
        }
    };
    let router = Router::new().route("/metrics", get(page));
    let served = axum::serve(listener, router).with_graceful_shutdown(async move { stop.requested().await });
    if let Err(error) = served.await {
        tracing::error!(error = chain(&error), "the page of metrics is not served any more");
    }
}
