//! Bugs planted around the agent, by the harness alone.
//!
//! In: a bug, chosen by a test on its own thread. Out: changed records of the agent, and changed requests on their way to
//! Proxmox. The agent's code knows nothing of them. Deliberately absent: bugs within the agent (`planted::Bug`).

use std::cell::Cell;
use std::path::Path;

use agentd::port::pve::transport::Request;
use holdfast_protocol::secret::Secret;
use rusqlite::Connection;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outside {
    /// The time that programs were stopped is forgotten.
    ForgetStandstill,
    /// A guest gets eight times the requested memory.
    MoreMemory,
    /// A rollback returns to the day before the snapshot that was signed.
    OtherSnapshot,
    /// A backup counts for the points of the day that comes after it.
    SettlePoints,
    /// Signed jobs that wait are stopped.
    StopJobs,
}

impl Outside {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::ForgetStandstill, Self::MoreMemory, Self::OtherSnapshot, Self::SettlePoints, Self::StopJobs];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ForgetStandstill => "forget_standstill",
            Self::MoreMemory => "more_memory",
            Self::OtherSnapshot => "other_snapshot",
            Self::SettlePoints => "settle_points",
            Self::StopJobs => "stop_jobs",
        }
    }

    /// What it does.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ForgetStandstill => "how long programs stood still is forgotten",
            Self::MoreMemory => "a guest gets eight times the memory that was asked for",
            Self::OtherSnapshot => "a rollback goes to the day before the snapshot that was signed",
            Self::SettlePoints => "a backup stands for the points of the day that comes after it",
            Self::StopJobs => "signed jobs that wait are stopped",
        }
    }
}

thread_local! {
    static PLANTED: Cell<Option<Outside>> = const { Cell::new(None) };
}

/// Plants a bug on this thread, or removes it.
pub fn plant(bug: Option<Outside>) {
    PLANTED.set(bug);
}

/// Changes the agent's records, each hour.
pub fn meddle(agent: &Path) {
    let sql = match PLANTED.get() {
        None | Some(Outside::MoreMemory | Outside::OtherSnapshot) => return,
        Some(Outside::ForgetStandstill) => "DELETE FROM quiesce_window WHERE released_at IS NOT NULL",
        Some(Outside::SettlePoints) => {
            "UPDATE backup SET point = taken_at + 86400000000 WHERE point < taken_at + 86400000000"
        }
        Some(Outside::StopJobs) => "UPDATE job SET state = 'cancelled' WHERE state = 'waiting'",
    };
    Connection::open(agent.join("agent.db")).unwrap().execute(sql, []).unwrap();
}

/// Changes a request on its way to Proxmox.
#[must_use]
pub fn alter(request: Request) -> Request {
    match PLANTED.get() {
        Some(Outside::MoreMemory) => more_memory(request),
        Some(Outside::OtherSnapshot) => Request { path: day_before(&request.path), ..request },
        None | Some(Outside::ForgetStandstill | Outside::SettlePoints | Outside::StopJobs) => request,
    }
}

fn more_memory(mut request: Request) -> Request {
    for (name, value) in &mut request.params {
        let mib = value.expose().parse::<u64>().ok().filter(|_| name == "memory");
        if let Some(mib) = mib {
            *value = Secret::new((mib * 8).to_string());
        }
    }
    request
}

/// `…/snapshot/d7/rollback` becomes `d6`.
fn day_before(path: &str) -> String {
    let parts = path.strip_suffix("/rollback").and_then(|head| head.rsplit_once("/d"));
    let day = parts.and_then(|(head, day)| Some((head, day.parse::<u64>().ok()?.checked_sub(1)?)));
    day.map_or_else(|| path.to_owned(), |(head, day)| format!("{head}/d{day}/rollback"))
}
