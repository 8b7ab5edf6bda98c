//! Agent, simulator and hub in one process under virtual time.
//!
//! ```text
//! story ──▶ ground (copied) ──▶ world: simulator, agent's folder, one clock
//!                                 │
//!   points: where to die ──▶ life: the agent until its end or death ──▶ scene, tasks, journal, audit
//!                                                                          │
//!                                              matrix: cases ◀── invariant: what must hold afterwards
//! ```
//! In: a [`story`] per kind of operation, by an exhaustive match. Out: a table, and for each case that does not hold
//! how to run only that case again. Time is virtual, so a wait of an hour costs nothing, and one seed gives one story.
//! One exception: which of two guests moves first at the same moment is the runtime's choice. Deliberately absent: TLS
//! and sockets (`agentd/tests/it/against_simulator`, `tests/e2e`), real processes and real disks (`tests/e2e`).
//!
//! | module | what |
//! | --- | --- |
//! | [`clock`], [`turns`] | virtual time for both sides, and slots for the simulator's tasks |
//! | [`world`], [`world_template`], [`ground`], [`fixtures`] | a node with an agent, and its state before a story |
//! | [`points`], [`transport`] | where the agent can be killed, and how its requests fail |
//! | [`agent_run`], [`controllers`] | the agent from start to end or death, and the guest agents that speak meanwhile |
//! | [`whole`] | the same of the whole agent: a document, and guests with requests |
//! | [`windows`], [`window_memory`] | controllers in quiesce windows, and when their programs were stopped |
//! | [`daemon`], [`hub`] | the agent's loops, and a hub, from a document to the report |
//! | [`story`] | the register of operations |
//! | [`scene`], [`db_reader`], [`log`] | what exists, what the database holds, and what happened |
//! | [`invariant`] | what must hold |
//! | [`matrix`] | all cases, and the table |
//! | [`power`] | agents and hubs that lose their power, with what was not synced |
//! | [`planted`], [`outside`] | bugs that must be found: within the agent, and around it |
//! | [`schedule`] | a whole agent, and a seed that chooses the faults |
//! | [`signer`], [`mailbox`] | operators who sign, and what the hub passes on in a story |
//! | [`fake_hub`] | a hub at the end of a line of bytes |
//! | [`backup_weeks`] | a guest under a policy, for weeks |
//! | [`hostile`] | a stolen hub, for weeks |
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a harness fails by panicking"
)]

pub mod agent_run;
pub mod backup_weeks;
pub mod clock;
pub mod controllers;
pub mod daemon;
pub mod db_reader;
pub mod fake_hub;
pub mod fixtures;
pub mod ground;
pub mod hostile;
pub mod hub;
pub mod invariant;
pub mod log;
pub mod mailbox;
pub mod matrix;
pub mod outside;
pub mod planted;
pub mod points;
pub mod power;
pub mod scene;
pub mod schedule;
pub mod signer;
pub mod story;
pub mod transport;
pub mod turns;
pub mod whole;
pub mod window_memory;
pub mod windows;
pub mod world;
pub mod world_template;

/// Runs a story on this thread, in time that jumps ahead whenever nothing can run.
pub fn virtual_time<F: Future>(story: impl FnOnce() -> F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async { story().await })
}
