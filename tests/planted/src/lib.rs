//! Which planted bug misbehaves on this thread.
//!
//! In: the name of a bug, chosen by a test. Out: whether the code that asks shall misbehave. No shipped code asks: the
//! edits of `tests/harness/bugs.toml` do, in a copy of the tree that `cargo xtask planted` makes.
#![forbid(unsafe_code)]

use std::cell::Cell;

/// Whether this tree is the copy with the edits.
pub const IN_COPY: bool = false;

thread_local! {
    static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Whether this bug is planted on this thread.
#[must_use]
pub fn is(bug: &str) -> bool {
    PLANTED.get() == Some(bug)
}

/// Plants a bug on this thread, or takes it away.
pub fn plant(bug: Option<&'static str>) {
    PLANTED.set(bug);
}
