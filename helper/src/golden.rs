//! Golden image build: one fixed program with fixed arguments.
//!
//! It writes into the folder that the policy names.
//!
//! In: nothing of the caller's but the verb. Out: the builder's own lines, straight to the caller, each a JSON object
//! without `ok`; the reply is ours. It has no environment, the capabilities of its verb alone, and a bounded time.

use std::process::{Command, Stdio};

use crate::capabilities::Capabilities;
use crate::reply::{Outcome, Reply, refusal};
use crate::{openat, sanitize};

const BUILDER: &str = "/usr/lib/holdfast/holdfast-golden";
/// A slow line fetches Debian in a fifth of it. Whatever still runs then is ended, children and all.
const SECONDS_MAX: &str = "3000";

/// Builds one, and waits for its end. The builder itself sees to it that there is one at a time.
pub fn build(dump: &str, _dropped: &Capabilities) -> Outcome {
    // A relative one has an empty name, and no folder has that.
    openat::root_folder(&dump.strip_prefix('/').unwrap_or_default().split('/').collect::<Vec<_>>())
        .map_err(|error| refusal!(Path, "`golden_dump` {dump} is not writable by root alone: {error}"))?;
    sanitize::require_root_program(BUILDER)?;
    #[expect(clippy::disallowed_methods, reason = "the one program that the verb stands for")]
    let mut builder = Command::new("/usr/bin/timeout");
    builder.args(["--kill-after=30", SECONDS_MAX, BUILDER, "build", "--output", "json", "--out", dump]);
    match builder.env_clear().stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(Reply::GoldenBuild),
        Ok(status) => {
            Err(refusal!(Failed, "no golden image was built ({status}): see the last line of the builder"))
        }
        Err(error) => Err(refusal!(Failed, "the builder cannot be started: {error}")),
    }
}
