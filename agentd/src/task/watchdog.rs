//! Notifications to systemd: readiness, status and watchdog.
//!
//! In: the reconcile loop's view, which is published anew in every cycle, and the report. Out: `READY`, `STATUS`, and
//! `WATCHDOG` only when the loop completed a cycle since the last time. A loop that hangs is killed by systemd and
//! started again. Without systemd nothing is sent. What systemd does not take at once is sent again later. Deliberately
//! absent: a timer that triggers the watchdog by itself.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::report::{Running, Sections};
use systemd_notices::{NotifyState, Sent, send};
use tokio::sync::watch;

use super::stop::Stop;
use crate::model::view::HostSnapshot;
use crate::port::clock::Clock;
use crate::port::hub::Contact;

/// The status line is refreshed at least this often: it is what a person sees first.
const LINE_EVERY: Duration = Duration::from_secs(20);

pub struct WatchdogTask {
    /// Published in every cycle.
    pub view: watch::Receiver<Arc<HostSnapshot>>,
    pub sections: watch::Receiver<Arc<Sections>>,
    /// The state of the contact with the hub.
    pub contact: watch::Receiver<Contact>,
    pub clock: Arc<dyn Clock>,
}

impl WatchdogTask {
    /// Notifies systemd until the agent stops.
    pub async fn run(mut self, mut stop: Stop) {
        // A third of the bound, so that one late cycle is forgiven.
        let every = systemd_notices::watchdog_enabled().map_or(LINE_EVERY, |bound| LINE_EVERY.min(bound / 3));
        let mut ready = Sent::Later;
        loop {
            if ready == Sent::Later {
                ready = send(&[NotifyState::Ready]);
            }
            if self.view.has_changed().unwrap_or(false) && send(&[NotifyState::Watchdog]) == Sent::Now {
                self.view.mark_unchanged();
            }
            let line = self.line();
            send(&[NotifyState::Status(&line)]);
            tokio::select! {
                () = stop.requested() => break,
                () = self.clock.sleep(every) => {}
            }
        }
        send(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
    }

    fn line(&self) -> String {
        let contact = self.contact.borrow();
        let hub = match (&contact.problem, contact.reached_at) {
            (None, Some(_)) => "hub reached".to_owned(),
            (None, None) => "hub not reached yet".to_owned(),
            (Some(problem), _) => format!("hub: {}", problem.code),
        };
        line(&self.sections.borrow(), &hub)
    }
}

fn line(sections: &Sections, hub: &str) -> String {
    let guests = sections.guests.as_deref().unwrap_or_default();
    let ours = guests.iter().filter(|guest| guest.uid.is_some()).count();
    let run = guests.iter().filter(|guest| guest.uid.is_some() && guest.run == Running::Running).count();
    let operations = sections.operations.iter().flatten().filter(|op| !op.status.is_end()).count();
    let held = sections.desired.as_ref().map_or(0, |desired| desired.held.number());
    format!("generation {held}; {run} of {ours} guests run; {operations} operations under way; {hub}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_in_words_how_it_is() {
        let text = line(&Sections::default(), "hub reached");
        assert_eq!(text, "generation 0; 0 of 0 guests run; 0 operations under way; hub reached");
    }
}
