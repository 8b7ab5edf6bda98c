//! The text of the helper's policy.

use std::path::Path;

/// The policy to install: a new one without disks, or the old one with the right user and the right folder of goldens.
/// Without such a folder root's own entry for one stays.
#[must_use]
pub fn fitted(there: Option<&str>, uid: u32, dump: Option<&Path>) -> String {
    let Some(there) = there else { return text(uid, dump) };
    let is = |line: &str, key: &str| line.split_once('=').is_some_and(|(left, _)| left.trim() == key);
    let mut fitted = String::new();
    for line in there.lines() {
        if is(line, "caller_uid") {
            fitted.push_str(&own(uid, dump));
        } else if !(dump.is_some() && is(line, "golden_dump")) {
            fitted.push_str(line);
            fitted.push('\n');
        }
    }
    fitted
}

/// The lines that are `setup`'s to put right.
fn own(uid: u32, dump: Option<&Path>) -> String {
    format!("caller_uid = {uid}\n{}", dump.map(golden_line).unwrap_or_default())
}

/// The line that names the folder of goldens.
#[must_use]
pub fn golden_line(dump: &Path) -> String {
    format!("golden_dump = {}\n", toml::Value::String(dump.display().to_string()))
}

/// A policy without disks.
#[must_use]
pub fn text(uid: u32, dump: Option<&Path>) -> String {
    format!(
        "# What the root helper may do on this box. Root adds the disks that it may mount, one [[target]] each:\n\
         # /usr/share/doc/holdfast-agent/examples/helper.toml shows how. Changes count from the next call on.\n\
         {}transports = [\"usb\", \"sata\"]\n",
        own(uid, dump)
    )
}
