//! Announcement of commits to this hub's tasks and to other hubs.
//!
//! In: that the writer committed something with an event. Out: a count that tasks of this hub watch, and one `NOTIFY` for
//! all commits of a fifth of a second, in a session of its own. A commit that notifies takes a lock of the whole server, so
//! none of the writer's does. Deliberately absent: what changed. Other hubs read that (`follower`), and a notice that is
//! lost costs them a second.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use super::server::Server;
use super::sql;

/// The channel that hubs listen to.
pub(super) const CHANNEL: &str = "hub_changes";

/// One notice of a hub at most in this time.
const PAUSE: Duration = Duration::from_millis(200);

/// Where the writer says that it committed something.
pub(super) struct Announcer {
    /// Counts commits with an event.
    pub here: Arc<watch::Sender<u64>>,
    /// None for a command, after which hubs look within a second.
    pub others: Option<SyncSender<()>>,
}

impl Announcer {
    pub(super) fn committed(&self) {
        self.here.send_modify(|count| *count += 1);
        if let Some(others) = &self.others {
            // Where one waits already, it stands for this commit, too.
            let _waits_already = others.try_send(()).is_err();
        }
    }
}

/// It ends when the writer has ended.
pub(super) fn start(server: Server, due: Receiver<()>) -> std::io::Result<JoinHandle<()>> {
    let run = move || {
        let mut session = None;
        while due.recv().is_ok() {
            let notified = server.renewed(session.take()).and_then(|connection| {
                connection.execute_batch(&format!("NOTIFY {CHANNEL}"))?;
                session = Some(connection);
                Ok::<_, sql::Error>(())
            });
            if let Err(error) = notified {
                tracing::warn!(action = "notify_hubs", result = "failed", error = %error.sentence());
            }
            std::thread::sleep(PAUSE);
        }
    };
    std::thread::Builder::new().name("store-announce".to_owned()).spawn(run)
}
