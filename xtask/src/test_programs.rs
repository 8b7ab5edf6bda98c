//! Our programs as tests have them.

use anyhow::Result;
use e2e::programs::Programs;

use crate::ci;
use crate::workspace::target;

/// The programs as tests have them, which can be killed at a point that the environment names.
pub fn for_tests() -> Result<Programs> {
    ci::build()?;
    Programs::in_folder(&target().join("debug"))
}
