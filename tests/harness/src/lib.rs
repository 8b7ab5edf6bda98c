//! Agent, simulator, controllers and hub in one process under virtual time: every operation killed at every point.
//!
//! ```text
//! story ──▶ ground (copied) ──▶ world: simulator, agent's folder, one clock
//!                                 │
//!   points: where to die ──▶ life: the agent until its end or death ──▶ scene, tasks, journal, audit
//!                                                                          │
//!                                              matrix: cases ◀── invariant: what must hold afterwards
//! ```
//! In: a [`story`] per kind of operation, by an exhaustive match. Out: a table, and for each case that does not hold how to
//! run just it again. Time is virtual, so a wait of an hour costs nothing, and one seed gives one story; only which of two
//! guests moves first at one and the same moment is the runtime's choice. Deliberately absent: TLS and sockets (`agentd/tests/it/against_simulator`, `tests/e2e`), real processes and real disks (`tests/e2e`).
//!
//! | module | what |
//! | --- | --- |
//! | [`clock`], [`turns`] | virtual time for both sides, and turns for the simulator's tasks |
//! | [`world`], [`ground`], [`kit`] | a node with an agent, and how it stands before a story |
//! | [`points`], [`carrier`] | where the agent can be killed, and how its requests fail |
//! | [`life`], [`controllers`] | the agent from start to end or death, and who speaks meanwhile |
//! | [`whole`] | the same of the whole agent: a document, and guests that ask |
//! | [`windows`] | controllers in quiesce windows, and when their programs stood still |
//! | [`daemon`], [`hub`] | the agent's loops, and a hub, from a document to the report |
//! | [`story`] | the register of operations |
//! | [`scene`], [`book`], [`log`] | what there is, what is written, and what happened |
//! | [`invariant`] | what must hold |
//! | [`matrix`] | all cases, and the table |
//! | [`power`] | a disk that forgets what was not synced, and stories that lose their power |
//! | [`planted`], [`outside`] | bugs that must be found: within the agent, and around it |
//! | [`schedule`] | a whole agent, and a seed that chooses what goes wrong |
//! | [`pen`], [`mailbox`] | operators who sign, and what the hub passes on in a story |
//! | [`line`] | a hub at the end of a line of bytes |
//! | [`nights`] | a guest under a policy, for weeks |
//! | [`hostile`] | a stolen hub, for weeks |
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a harness fails by panicking"
)]

pub mod book;
pub mod carrier;
pub mod clock;
pub mod controllers;
pub mod daemon;
pub mod ground;
pub mod hostile;
pub mod hub;
pub mod invariant;
pub mod kit;
pub mod life;
pub mod line;
pub mod log;
pub mod mailbox;
pub mod matrix;
pub mod nights;
pub mod outside;
pub mod pen;
pub mod planted;
pub mod points;
pub mod power;
pub mod scene;
pub mod schedule;
pub mod story;
pub mod turns;
pub mod whole;
pub mod windows;
pub mod world;

/// Runs a story on this thread, in time that jumps ahead whenever nothing can run.
pub fn virtual_time<F: Future>(story: impl FnOnce() -> F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async { story().await })
}
