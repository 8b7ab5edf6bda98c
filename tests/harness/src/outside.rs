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
}

impl Outside {
    /// Every one.
    pub const ALL: [Self; 1] = [Self::ForgetStandstill];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ForgetStandstill => "forget_standstill",
        }
    }

    /// What it does.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ForgetStandstill => "how long programs stood still is forgotten",
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
    match PLANTED.get() {
        Some(Outside::ForgetStandstill) => {
            let books = Connection::open(agent.join("agent.db")).unwrap();
            books.execute("DELETE FROM quiesce_window WHERE released_at IS NOT NULL", []).unwrap();
        }
        None => {}
    }
}
