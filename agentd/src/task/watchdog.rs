//! Notifications to systemd: readiness, status and watchdog.
//!
//! In: the reconcile loop's view, which is published anew in every cycle, and the report. Out: `READY`, `STATUS`, and
//! `WATCHDOG` only when the loop completed a cycle since the last time. A loop that hangs is killed by systemd and
//! started again. Without systemd nothing is sent. What systemd does not take at once is sent again later: its queue is
//! short, and waiting for it would hold the one thread of all loops. Deliberately absent: a timer that triggers the
//! watchdog by itself.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::report::{Running, Sections};
use sd_notify::NotifyState;
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
        let every = sd_notify::watchdog_enabled().map_or(LINE_EVERY, |bound| LINE_EVERY.min(bound / 3));
        let mut ready = Sent::Later;
        loop {
            if ready == Sent::Later {
                ready = report(&[NotifyState::Ready]);
            }
            if self.view.has_changed().unwrap_or(false) && report(&[NotifyState::Watchdog]) == Sent::Now {
                self.view.mark_unchanged();
            }
            let line = self.line();
            report(&[NotifyState::Status(&line)]);
            tokio::select! {
                () = stop.requested() => break,
                () = self.clock.sleep(every) => {}
            }
        }
        report(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
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

/// What became of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// It is with systemd, or there is none.
    Now,
    Later,
}

fn report(state: &[NotifyState<'_>]) -> Sent {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return Sent::Now };
    let text: String = state.iter().map(|state| format!("{state}\n")).collect();
    match send(&socket, &text) {
        Ok(()) => Sent::Now,
        Err(error) => {
            tracing::debug!(%error, "systemd was not notified");
            Sent::Later
        }
    }
}

/// Sends without waiting. A name that begins with `@` is one without a file.
fn send(socket: &OsStr, text: &str) -> io::Result<()> {
    let to = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let from = UnixDatagram::unbound()?;
    from.set_nonblocking(true)?;
    from.send_to_addr(text.as_bytes(), &to).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_in_words_how_it_is() {
        let text = line(&Sections::default(), "hub reached");
        assert_eq!(text, "generation 0; 0 of 0 guests run; 0 operations under way; hub reached");
    }

    #[test]
    fn a_queue_that_is_full_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        let mut taken = 0;
        while send(path.as_os_str(), "STATUS=x\n").is_ok() {
            taken += 1;
        }
        let full = send(path.as_os_str(), "WATCHDOG=1\n").unwrap_err();
        assert!(taken > 0 && full.kind() == io::ErrorKind::WouldBlock, "{full}");
        let mut bytes = [0; 64];
        let length = systemd.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"STATUS=x\n");
        send(path.as_os_str(), "WATCHDOG=1\n").unwrap();
    }

    #[test]
    fn a_name_without_a_file_is_reached() {
        let name = format!("holdfast-test-{}", std::process::id());
        let at = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let systemd = UnixDatagram::bind_addr(&at).unwrap();
        send(OsStr::new(&format!("@{name}")), "READY=1\n").unwrap();
        let mut bytes = [0; 64];
        let length = systemd.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"READY=1\n");
    }
}
