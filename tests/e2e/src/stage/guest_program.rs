//! A customer's program in a guest of a stage.
//!
//! In: a guest that runs. Out: a program `orders` in it, which writes a line every fifth of a second and which stops
//! for backups. A booted guest runs it by its own systemd. A guest that is a folder has a script in place of systemd,
//! which starts and stops that one program.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Runtime, Stage};
use crate::booted_guest::BootedGuest;
use crate::place::{Place, User};

/// Where it writes.
const JOURNAL: &str = "srv/orders/journal";
/// The files of every guest with it: content, place, mode.
const FILES: [(&str, &str, u32); 2] = [
    (include_str!("../../guest-program/orders.sh"), "usr/bin/orders", 0o755),
    (include_str!("../../guest-program/stacks.toml"), "etc/holdfast/stacks.toml", 0o644),
];
/// What a booted guest has, too.
const UNIT: (&str, &str, u32) =
    (include_str!("../../guest-program/orders.service"), "etc/systemd/system/orders.service", 0o644);
/// What a guest has that is a folder.
const STAND_IN: &str = include_str!("../../guest-program/systemctl.sh");

/// What the program wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Orders {
    /// How many lines.
    pub count: usize,
    /// The longest time between two of them.
    pub longest_pause: Duration,
}

impl Stage {
    /// The root folder of a guest, on the simulator's storage.
    #[must_use]
    pub fn guest_root(&self, vmid: &str) -> PathBuf {
        self.part("sim").join(format!("root/mnt/tank/images/{vmid}/vm-{vmid}-disk-0/tree"))
    }

    /// Installs the program in a guest that runs, and starts it.
    ///
    /// # Errors
    /// When the disk refuses, or it does not start.
    pub fn install_program(&self, vmid: &str) -> Result<()> {
        let root = self.guest_root(vmid);
        let own = match self.options.runtime {
            Runtime::Nspawn => vec![UNIT],
            Runtime::Process | Runtime::Inert => {
                vec![(STAND_IN, "usr/bin/systemctl", 0o755), (STAND_IN, "usr/bin/systemd-run", 0o755)]
            }
        };
        FILES.into_iter().chain(own).try_for_each(|(text, at, mode)| write(&root.join(at), text, mode))?;
        match self.options.runtime {
            Runtime::Nspawn => {
                let guest = BootedGuest { root };
                guest.run(&["systemctl", "daemon-reload"])?;
                guest.run(&["systemctl", "enable", "--now", "orders.service"]).map(drop)
            }
            Runtime::Process | Runtime::Inert => {
                let mut start = Place::default().command(root.join("usr/bin/systemctl"), User::Same);
                self.to_end(start.args(["start", "--", "orders.service"])).map(drop)
            }
        }
    }

    /// `guestd backup`, as a person in the guest types it: a backup for which the guest's programs stop.
    ///
    /// # Errors
    /// When it fails.
    pub fn back_up_in_guest(&self, vmid: &str) -> Result<()> {
        let root = self.guest_root(vmid);
        match self.options.runtime {
            Runtime::Nspawn => BootedGuest { root }.run(&["guestd", "backup"]).map(drop),
            Runtime::Process | Runtime::Inert => {
                // The guest's programs and none of this machine's.
                let folders = ["usr/bin", "bin"].map(|folder| root.join(folder).display().to_string());
                let mut backup = Place::default().command("env", User::Same);
                backup.arg(format!("PATH={}", folders.join(":"))).arg(root.join("usr/bin/guestd"));
                backup
                    .arg("backup")
                    .arg("--root")
                    .arg(&root)
                    .args(["--source-address", &self.address(vmid)?]);
                self.to_end(&mut backup).map(drop)
            }
        }
    }

    /// A guest's address, as Proxmox has it.
    fn address(&self, vmid: &str) -> Result<String> {
        let number: u32 = vmid.parse().context("a VMID is a number")?;
        let configurations = self.configurations()?;
        let text = configurations.get(&number).with_context(|| format!("guest {vmid} is gone"))?;
        let address =
            text.split([',', '\n']).find_map(|option| option.strip_prefix("ip=")?.split('/').next());
        address.map(str::to_owned).with_context(|| format!("guest {vmid} has no address"))
    }

    /// What the program of a guest wrote since its line of that number.
    ///
    /// # Errors
    /// When there is no such file, or a line that the program did not write whole.
    pub fn orders(&self, vmid: &str, since: usize) -> Result<Orders> {
        let file = self.guest_root(vmid).join(JOURNAL);
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        // The line that is being written has no end yet.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        orders(whole, since)
    }
}

fn orders(text: &str, since: usize) -> Result<Orders> {
    let mut times = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (number, time) = line.split_once(' ').with_context(|| format!("half an order: {line}"))?;
        ensure!(number == (index + 1).to_string(), "order {} is missing before: {line}", index + 1);
        times.push(time.parse::<f64>().with_context(|| format!("half an order: {line}"))?);
    }
    let counted = times.get(since.saturating_sub(1)..).unwrap_or_default();
    let pauses = counted.iter().zip(counted.iter().skip(1)).map(|(before, after)| after - before);
    let longest = pauses.fold(0.0, f64::max);
    Ok(Orders { count: times.len(), longest_pause: Duration::from_secs_f64(longest) })
}

fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    let folder = path.parent().context("a file lies in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pause_is_counted_from_a_line_on_and_a_missing_order_is_an_error() {
        let text = "1 10.00\n2 15.00\n3 15.20\n4 16.70\n5 16.90";
        let from = |since| orders(text, since).map(|orders| orders.longest_pause).unwrap();
        assert_eq!((from(0), from(2)), (Duration::from_secs(5), Duration::from_millis(1_500)));
        assert!(orders("1 10.00\n3 10.20", 0).is_err());
        assert!(orders("1 10.00\n2", 0).is_err());
    }
}
