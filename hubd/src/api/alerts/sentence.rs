//! Entries of the log as sentences.

use alerts::log::LogKind;
use alerts::{HostState, Suppression};
use holdfast_protocol::alert::LogKindView;
use holdfast_protocol::id::ReceiverName;

/// What happened, for programs.
pub(super) const fn kind(what: &LogKind) -> LogKindView {
    match what {
        LogKind::Opened {} => LogKindView::Opened,
        LogKind::Fired {} => LogKindView::Fired,
        LogKind::Reopened {} => LogKindView::Reopened,
        LogKind::Withdrawn {} => LogKindView::Withdrawn,
        LogKind::Resolved {} => LogKindView::Resolved,
        LogKind::FlappingBegan { .. } => LogKindView::FlappingBegan,
        LogKind::FlappingEnded {} => LogKindView::FlappingEnded,
        LogKind::Stale { .. } => LogKindView::Stale,
        LogKind::Fresh {} => LogKindView::Fresh,
        LogKind::SeverityChanged { .. } => LogKindView::SeverityChanged,
        LogKind::Acknowledged { .. } => LogKindView::Acknowledged,
        LogKind::Unacknowledged { .. } => LogKindView::Unacknowledged,
        LogKind::AckExpired {} => LogKindView::AckExpired,
        LogKind::AckOutgrown {} => LogKindView::AckOutgrown,
        LogKind::UnknownIncident {} => LogKindView::UnknownIncident,
        LogKind::Escalated { .. } => LogKindView::Escalated,
        LogKind::Suppressed { .. } => LogKindView::Suppressed,
        LogKind::Queued { .. } => LogKindView::Queued,
        LogKind::Closed { .. } => LogKindView::Closed,
        LogKind::HostChanged { .. } => LogKindView::HostChanged,
        LogKind::Overflow { .. } => LogKindView::Overflow,
        LogKind::SilenceAdded { .. } => LogKindView::SilenceAdded,
        LogKind::SilenceEnded { .. } => LogKindView::SilenceEnded,
        LogKind::MaintenanceChanged { .. } => LogKindView::MaintenanceChanged,
    }
}

/// The receiver that an entry is about, and why it was not sent to.
pub(super) const fn concerned(what: &LogKind) -> (Option<&ReceiverName>, Option<&Suppression>) {
    match what {
        LogKind::Suppressed { receiver, why } => (receiver.as_ref(), Some(why)),
        LogKind::Queued { receiver, .. } => (Some(receiver), None),
        LogKind::Opened {}
        | LogKind::Fired {}
        | LogKind::Reopened {}
        | LogKind::Withdrawn {}
        | LogKind::Resolved {}
        | LogKind::FlappingBegan { .. }
        | LogKind::FlappingEnded {}
        | LogKind::Stale { .. }
        | LogKind::Fresh {}
        | LogKind::SeverityChanged { .. }
        | LogKind::Acknowledged { .. }
        | LogKind::Unacknowledged { .. }
        | LogKind::AckExpired {}
        | LogKind::AckOutgrown {}
        | LogKind::UnknownIncident {}
        | LogKind::Escalated { .. }
        | LogKind::Closed { .. }
        | LogKind::HostChanged { .. }
        | LogKind::Overflow { .. }
        | LogKind::SilenceAdded { .. }
        | LogKind::SilenceEnded { .. }
        | LogKind::MaintenanceChanged { .. } => (None, None),
    }
}

/// One sentence, without a full stop.
pub(super) fn text(what: &LogKind) -> String {
    let fixed = match what {
        LogKind::Opened {} => "the condition came, and its grace runs",
        LogKind::Fired {} => "it fires: the condition lasted for its grace",
        LogKind::Reopened {} => "the condition came back after it was over",
        LogKind::Withdrawn {} => "the condition went within its grace: no receiver hears of it",
        LogKind::Resolved {} => "it is over",
        LogKind::FlappingEnded {} => "it does not come and go any more",
        LogKind::Fresh {} => "it is known again",
        LogKind::AckExpired {} => "the acknowledgement ended by its time",
        LogKind::AckOutgrown {} => "the acknowledgement ended, because it got worse",
        LogKind::UnknownIncident {} => "a request had no effect on it",
        LogKind::Closed { why: None } => "closed: its guest was deleted, or its host was revoked",
        LogKind::Closed { why: Some(why) } => return format!("closed: {why}"),
        LogKind::FlappingBegan { flips } => return format!("it came and went {flips} times within an hour"),
        LogKind::Stale { since } => return format!("nothing newer is known of it since {since:.0}"),
        LogKind::SeverityChanged { from, to } => return format!("it is {to} now; it was {from}"),
        LogKind::Acknowledged { by, until: None } => return format!("acknowledged by {by}"),
        LogKind::Acknowledged { by, until: Some(until) } => {
            return format!("acknowledged by {by} until {until:.0}");
        }
        LogKind::Unacknowledged { by } => return format!("{by} took the acknowledgement back"),
        LogKind::Escalated { to } => {
            let names: Vec<&str> = to.iter().map(ReceiverName::as_str).collect();
            return format!("it lasts, so it is escalated to {}", names.join(", "));
        }
        LogKind::Suppressed { receiver: Some(receiver), why } => {
            return format!("not sent to {receiver}: {why}");
        }
        LogKind::Suppressed { receiver: None, why } => return format!("not sent: {why}"),
        LogKind::Queued { receiver, notice, reason } => {
            return format!("put into the outbox for {receiver} ({reason}): {notice}");
        }
        LogKind::HostChanged { from: None, to } => return format!("the host is {}", state(*to)),
        LogKind::HostChanged { from: Some(from), to } => {
            return format!("the host is {} now; it was {}", state(*to), state(*from));
        }
        LogKind::Overflow { conditions } => {
            return format!("{conditions} conditions have no alert, because the host has too many");
        }
        LogKind::SilenceAdded { id } => return format!("silence {id} began"),
        LogKind::SilenceEnded { id } => return format!("silence {id} ended"),
        LogKind::MaintenanceChanged { windows: 0 } => "the host is not in maintenance any more",
        LogKind::MaintenanceChanged { windows } => {
            return format!("the host has {windows} windows of maintenance");
        }
    };
    fixed.to_owned()
}

const fn state(state: HostState) -> &'static str {
    match state {
        HostState::NeverSeen => "never seen",
        HostState::Online => "online",
        HostState::Degraded => "degraded",
        HostState::Late => "late",
        HostState::Offline => "offline",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_protocol::condition::ConditionCode;

    #[test]
    fn a_suppression_names_the_receiver_and_the_reason() {
        let why = || Suppression::Inhibited { by: ConditionCode::HostOffline };
        let ops: ReceiverName = "ops".parse().unwrap();
        let what = LogKind::Suppressed { receiver: Some(ops.clone()), why: why() };
        assert_eq!(text(&what), "not sent to ops: inhibited by HOST_OFFLINE");
        assert_eq!(concerned(&what), (Some(&ops), Some(&why())));
        let unrouted = LogKind::Suppressed { receiver: None, why: Suppression::Unrouted {} };
        assert_eq!(text(&unrouted), "not sent: no route takes it");
        let changed = LogKind::HostChanged { from: Some(HostState::Online), to: HostState::NeverSeen };
        assert_eq!(text(&changed), "the host is never seen now; it was online");
    }
}
