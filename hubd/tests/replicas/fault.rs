//! Faults of hubs, of their sessions and of the database.

use std::time::Duration;

use hubd::postgres::Server;

use crate::hubs::Site;
use crate::judge::patiently;
use crate::postgres_server::{programs, server_folder, session_at, supervised, wait};

/// Longer than a lease lasts.
const PAST_THE_LEASE: Duration = Duration::from_secs(11);

/// How long a hub or the database stays away.
const AWAY: Duration = Duration::from_secs(3);

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `kill -9` of a hub, which is started again.
    Kill(usize),
    /// A hub is stopped past its lease, and continued.
    Pause(usize),
    /// The server ends all sessions of hubs.
    EndSessions,
    /// Sessions of the last hub are cut after their COMMIT was passed on.
    CutCommits(u32),
    /// The server ends as in a crash, and starts again.
    CrashDatabase,
}

impl Fault {
    pub fn name(self) -> String {
        match self {
            Self::Kill(hub) => format!("kill -9 of hub{hub}"),
            Self::Pause(hub) => format!("hub{hub} stopped for {} s", PAST_THE_LEASE.as_secs()),
            Self::EndSessions => "all sessions ended by the server".to_owned(),
            Self::CutCommits(count) => format!("{count} sessions cut after COMMIT"),
            Self::CrashDatabase => "the database crashed".to_owned(),
        }
    }

    /// Makes it happen, and waits until it is over.
    pub async fn happen(self, site: &mut Site) {
        match self {
            Self::Kill(hub) => {
                site.hubs[hub].kill().await;
                tokio::time::sleep(AWAY).await;
                site.hubs[hub].restart().await;
            }
            Self::Pause(hub) => {
                site.hubs[hub].signal("-STOP").await;
                tokio::time::sleep(PAST_THE_LEASE).await;
                site.hubs[hub].signal("-CONT").await;
            }
            Self::EndSessions => {
                let server = site.server.clone();
                tokio::task::spawn_blocking(move || end_sessions(&server)).await.unwrap();
            }
            Self::CutCommits(count) => {
                site.proxy.cut(count);
                patiently("so many were cut", || site.proxy.left() == 0).await;
            }
            Self::CrashDatabase => {
                let server = site.server.clone();
                tokio::task::spawn_blocking(move || crash(&server)).await.unwrap();
            }
        }
    }
}

fn end_sessions(server: &Server) {
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'hubd' AND datname = current_database()";
    assert!(!session_at(server).query(sql, &[]).unwrap().is_empty());
}

/// The server's processes end without a word (`pg_ctl stop -m immediate`), and it recovers from its log.
fn crash(server: &Server) {
    let folder = server_folder(server);
    let pid_file = folder.join("data/postmaster.pid");
    let pid = std::fs::read_to_string(&pid_file).unwrap().lines().next().unwrap().to_owned();
    #[expect(clippy::disallowed_methods, reason = "a signal, as pg_ctl sends it")]
    let sent = std::process::Command::new("kill").args(["-QUIT", &pid]).status().unwrap();
    assert!(sent.success());
    while pid_file.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(AWAY);
    // The new server ends with this program, as the first one would have: its input is open until then.
    std::mem::forget(supervised(&programs(), &folder));
    wait(&folder);
}
