//! The hub's settings for a day: routes and waits.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::arrival::Receivers;

/// All waits are a few seconds. `HOST_LATE` is no notice, only a line of the log.
const RULES: &str = r#"
[alerts]
group_wait_s = 1
group_interval_s = 10

[[alerts.grace]]
matchers = ["code!=HOST_LATE"]
fire_after_s = 2
clear_after_s = 2

[[alerts.grace]]
matchers = ["code=HOST_LATE"]
clear_after_s = 2

[[alerts.route]]
name = "hub"
matchers = ["cause=hub"]
receivers = ["ops", "pager"]

[[alerts.route]]
name = "tokens"
matchers = ["code=TOKEN_EXPIRING"]
receivers = ["ops", "pager"]

[[alerts.route]]
name = "acme"
matchers = ["customer=acme"]
severity = "warning"
receivers = ["ops", "acme"]

[[alerts.route]]
name = "urgent"
severity = "critical"
receivers = ["ops", "security"]

[alerts.default_route]
receivers = ["ops"]
"#;

/// Signs what is sent to the receivers.
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Whether the hub has a backup when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubBackup {
    Missing,
    Taken,
}

/// As far as the age of a backup is looked at.
pub fn take_backup(folder: &Path) {
    std::fs::write(backups(folder).join("today"), "x").unwrap();
}

/// Where the hub's backups would be.
fn backups(folder: &Path) -> PathBuf {
    folder.join("hub-backups")
}

/// The text of `hub.toml`. Writes the files that it names.
pub fn hub(receivers: &Receivers, backup: HubBackup, folder: &Path) -> String {
    std::fs::create_dir(backups(folder)).unwrap();
    match backup {
        HubBackup::Missing => {}
        HubBackup::Taken => take_backup(folder),
    }
    let named = receivers.all().map(|(name, notices)| {
        let file = folder.join(format!("receiver-{name}.toml"));
        let text = format!("kind = \"webhook\"\nurl = \"{}\"\nkey = \"{KEY}\"\n", notices.url());
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        format!("[[receiver]]\nname = \"{name}\"\nfile = \"{}\"\n", file.display())
    });
    let named = named.collect::<Vec<_>>().concat();
    // A host whose clock is a day off is not to have a certificate that ends on that day.
    let first = "deliver_to = \"loopback\"\nhost_certificate_hours = 720\n";
    format!("{first}{named}[backup]\npath = \"{}\"\n{RULES}", backups(folder).display())
}
