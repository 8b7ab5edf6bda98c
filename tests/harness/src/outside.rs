//! Bugs planted around the agent, by the harness alone.
//!
//! In: a bug, chosen by a test on its own thread. Out: somebody who writes into the agent's records. The agent's code knows
//! nothing of them. Deliberately absent: bugs within the agent (`agentd::model::planted`).

use std::cell::Cell;
use std::path::Path;

use rusqlite::Connection;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outside {
    /// How long programs stood still is forgotten.
    ForgetStandstill,
    /// A backup stands for the points of the day that comes after it.
    SettlePoints,
}

impl Outside {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::ForgetStandstill, Self::SettlePoints];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ForgetStandstill => "forget_standstill",
            Self::SettlePoints => "settle_points",
        }
    }

    /// What it does.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ForgetStandstill => "how long programs stood still is forgotten",
            Self::SettlePoints => "a backup stands for the points of the day that comes after it",
        }
    }
}

thread_local! {
    static PLANTED: Cell<Option<Outside>> = const { Cell::new(None) };
}

/// Plants a bug on this thread, or digs it out.
pub fn plant(bug: Option<Outside>) {
    PLANTED.set(bug);
}

/// Beside the agent, each hour: somebody writes into its records.
pub fn meddle(agent: &Path) {
    let sql = match PLANTED.get() {
        None => return,
        Some(Outside::ForgetStandstill) => "DELETE FROM quiesce_window WHERE released_at IS NOT NULL",
        Some(Outside::SettlePoints) => {
            "UPDATE backup SET point = taken_at + 86400000000 WHERE point < taken_at + 86400000000"
        }
    };
    Connection::open(agent.join("agent.db")).unwrap().execute(sql, []).unwrap();
}
