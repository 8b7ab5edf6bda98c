//! The build of a golden image: one fixed program with fixed arguments, into the folder that root's policy names.
//!
//! In: nothing of the caller's but the wish. Out: the builder's own lines, straight to the caller, each a JSON object
//! without `ok`; the reply is ours. It has no environment, the powers of its verb and no others, and a bounded time.

use std::process::{Command, Stdio};

use crate::powers::Powers;
use crate::reply::{Outcome, Reply, refusal};
use crate::{descend, sanitize};

const BUILDER: &str = "/usr/lib/holdfast/holdfast-golden";
/// A slow line fetches Debian in a fifth of it. Whatever still runs then is ended, children and all.
const SECONDS_MAX: &str = "3000";

/// Builds one, and waits for its end. The builder itself sees to it that there is one at a time.
pub fn build(dump: &str, _laid_down: &Powers) -> Outcome {
    // A relative one has an empty name, and no folder has that.
    descend::roots_folder(&dump.strip_prefix('/').unwrap_or_default().split('/').collect::<Vec<_>>())
        .map_err(|error| refusal!(Path, "`golden_dump` {dump} is no folder of root's alone: {error}"))?;
    sanitize::roots_program(BUILDER)?;
    #[expect(clippy::disallowed_methods, reason = "the one program that the verb stands for")]
    let mut builder = Command::new("/usr/bin/timeout");
    builder.args(["--kill-after=30", SECONDS_MAX, BUILDER, "build", "--output", "json", "--out", dump]);
    match builder.env_clear().stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(Reply::GoldenBuild),
        Ok(status) => {
            Err(refusal!(Failed, "no golden was built ({status}): the builder's last line says why"))
        }
        Err(error) => Err(refusal!(Failed, "the builder cannot be started: {error}")),
    }
}
