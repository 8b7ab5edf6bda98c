//! Ends of break-glass jobs by the status of root's program.
//!
//! In: the status that `holdfast-break-glass` wrote, a signed job, the guests. Out: the end of the job, customers that
//! the order leaves out, and lines for the audit. The agent opens nothing and judges no order: root's program does, by its
//! own copy of keys and settings. Pure.

use std::collections::BTreeSet;

use holdfast_protocol::break_glass::{BreakGlassStatus, OpenedOrder};
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{CustomerId, JobId};
use holdfast_protocol::job::act::{Sha256Text, args};
use holdfast_protocol::report::GuestReport;
use jiff::{SignedDuration, Timestamp};

/// Changes of ways are written to the audit for so long: those of earlier files of the audit are in there already.
const NOTED_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);

/// What root's program says of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderAnswer {
    /// It opened a way, which may be closed again.
    Opened,
    Refused(ErrorBody),
    /// It did not see the order yet.
    Pending,
}

/// The answer to an order with these bytes. One that opened is no longer a refused one.
#[must_use]
pub fn answer(status: Option<&BreakGlassStatus>, order: &Sha256Text) -> OrderAnswer {
    let Some(status) = status else { return OrderAnswer::Pending };
    if status.opened.iter().any(|opened| opened.order == *order) {
        return OrderAnswer::Opened;
    }
    match status.refused.iter().rev().find(|refused| refused.order == *order) {
        Some(refused) => OrderAnswer::Refused(ErrorBody::new(refused.code, refused.message.clone())),
        None => OrderAnswer::Pending,
    }
}

/// Customers with guests here that an order does not name. A way into the host reaches all of them.
#[must_use]
pub fn left_out(args: &args::BreakGlass, guests: &[GuestReport]) -> BTreeSet<CustomerId> {
    let customers = guests.iter().filter_map(|guest| guest.customer.as_ref());
    customers.filter(|customer| !args.customers.contains(*customer)).cloned().collect()
}

/// A line for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WayLine {
    pub job: JobId,
    pub change: WayChange,
    pub detail: String,
}

/// What happened to a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayChange {
    Opened,
    Closed,
}

impl WayChange {
    /// As the audit names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "break_glass_opened",
            Self::Closed => "break_glass_closed",
        }
    }
}

/// The lines of a status, oldest first. One that the audit has already is written once all the same.
#[must_use]
pub fn lines(status: &BreakGlassStatus, now: Timestamp) -> Vec<WayLine> {
    let is_recent = |order: &&OpenedOrder| now.duration_since(order.opened_at.at()) < NOTED_FOR;
    let mut lines = Vec::new();
    for order in status.opened.iter().filter(is_recent) {
        let (job, change) = (order.job, WayChange::Opened);
        lines.push(WayLine { job, change, detail: opened(order) });
        lines.extend(order.closed.map(|closed| {
            let detail = format!(
                "way {} closed at {} after {} sessions: {}",
                order.way,
                closed.at,
                order.sessions,
                closed.cause.as_str()
            );
            WayLine { job, change: WayChange::Closed, detail }
        }));
    }
    lines
}

fn opened(order: &OpenedOrder) -> String {
    let names = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!(
        "way {} opened at {} until {}, signed by {}, consents {}: {}",
        order.way,
        order.opened_at,
        order.closes_at,
        names(order.signers.iter().map(|name| name.as_str()).collect()),
        names(order.consents.iter().map(|name| name.as_str()).collect()),
        order.reason.as_str()
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use holdfast_protocol::code::ErrorCode;
    use serde_json::{Value, json};

    use super::*;

    fn digest(n: u8) -> Sha256Text {
        Sha256Text::of(&[n])
    }

    pub(crate) fn status(closed: Option<Value>) -> BreakGlassStatus {
        let mut order = json!({ "order": digest(1), "job": "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01", "way": "tunnel",
            "customers": ["acme"], "consents": ["acme"], "signers": ["ada"], "reason": "the agent hangs",
            "opened_at": "2026-11-21T14:00:00Z", "closes_at": "2026-11-21T14:30:00Z", "sessions": 2 });
        if let (Some(closed), Some(fields)) = (closed, order.as_object_mut()) {
            fields.insert("closed".to_owned(), closed);
        }
        let refused = json!({ "order": digest(2), "at": "2026-11-21T13:00:00Z", "code": "CONSENT_MISSING", "message": "acme did not consent" });
        let text = json!({ "schema": "holdfast.break-glass/v1", "written_at": "2026-11-21T14:00:00Z", "opened": [order], "refused": [refused] });
        BreakGlassStatus::parse(text.to_string().as_bytes()).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_job_ends_by_what_root_says_of_its_bytes() {
        let status = status(None);
        assert_eq!(answer(None, &digest(1)), OrderAnswer::Pending);
        assert_eq!(answer(Some(&status), &digest(1)), OrderAnswer::Opened);
        assert_eq!(answer(Some(&status), &digest(3)), OrderAnswer::Pending);
        let OrderAnswer::Refused(problem) = answer(Some(&status), &digest(2)) else { panic!("refused") };
        assert_eq!(problem.code, ErrorCode::ConsentMissing);
    }

    #[test]
    fn openings_and_ends_are_lines_of_the_audit() {
        let now = at("2026-11-21T15:00:00Z");
        let of =
            |status: &BreakGlassStatus| lines(status, now).iter().map(|line| line.change).collect::<Vec<_>>();
        assert_eq!(of(&status(None)), [WayChange::Opened]);
        let closed = status(Some(json!({ "at": "2026-11-21T14:30:00Z", "cause": "expired" })));
        assert_eq!(of(&closed), [WayChange::Opened, WayChange::Closed]);
        assert!(lines(&closed, now)[1].detail.contains("after 2 sessions: its time is over"));
        assert!(lines(&closed, at("2026-11-28T14:00:00Z")).is_empty(), "a week later");
    }

    #[test]
    fn a_customer_with_guests_is_named() {
        let guest = |customer: &str| {
            serde_json::from_value::<GuestReport>(json!({
                "name": "web-1", "vmid": 300, "status": "managed", "run": "running", "wanted": "running",
                "customer": customer
            }))
            .unwrap()
        };
        let args = args::BreakGlass {
            way: "tunnel".to_owned().try_into().unwrap(),
            minutes: 30.try_into().unwrap(),
            key: None,
            customers: BTreeSet::from(["acme".parse().unwrap()]),
        };
        assert!(left_out(&args, &[guest("acme")]).is_empty());
        assert_eq!(
            left_out(&args, &[guest("acme"), guest("byte")]),
            BTreeSet::from(["byte".parse().unwrap()])
        );
    }
}
