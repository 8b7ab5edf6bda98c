//! Command-line tools of this machine, required to succeed.

use std::process::{Command, Stdio};

/// A program by name or path.
pub fn command(program: &str) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the programs under test, and the tools around them")]
    Command::new(program)
}

/// Runs it to its end; gives what it said.
pub fn run(program: &str, words: &[&str]) -> String {
    let output = command(program).args(words).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {}: {said}{errors}", output.status);
    said
}

/// systemd needs the unified control groups at their usual place, and a group of its own in them. Where the machine has the
/// old ones, the container gets both in a mount namespace of its own; the machine's view stays as it is.
pub const CONTAINED: &str = r#"set -e
if [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
    umount -l /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
group="/sys/fs/cgroup/holdfast-golden-$$"
mkdir "$group"
( echo 0 >"$group/cgroup.procs"; exec timeout --kill-after=10 "$@" )
status=$?
# What outlived its init is ended with it, and its groups go from the innermost out.
echo 1 >"$group/cgroup.kill" 2>/dev/null || true
for again in 1 2 3 4 5; do find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null && break; sleep 1; done
exit $status"#;

/// A container's whole life, bounded in seconds; gives what was said outside it.
pub fn contained(seconds: &str, words: &[&str]) -> String {
    let mut command = command("unshare");
    command.args(["--mount", "--", "sh", "-c", CONTAINED, "sh", seconds, "systemd-nspawn"]).args(words);
    let output = command
        .stdin(Stdio::null())
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
