//! Guests that were there before the recording.
//!
//! In: everything that a recording later shows of a guest: its configuration, backups, status reads, moved volumes. Out: the text of a
//! configuration with which all of that can be true, else that of a small guest.
use std::collections::BTreeSet;

use serde_json::Value;

use super::precondition::Premises;
use super::recording::{Call, Content, Line, Task};
use crate::fault::admin::Edit;
use crate::schema::format::parse_size;

/// The size that the node reports for a disk without a size, in bytes.
const USUAL_BYTES: u64 = 4 << 30;

impl Premises<'_> {
    /// A guest that was there before the recording: as its next shown configuration says, else a small one.
    pub(super) fn make(&mut self, number: usize, vmid: u32) {
        let path = format!("/lxc/{vmid}/config");
        let shown = self.calls().filter(|(at, call, _)| {
            *at >= number
                && call.method == "GET"
                && call.path.split('?').next().is_some_and(|plain| plain.ends_with(&path))
        });
        let first_of = |fits: &dyn Fn(&Call) -> bool| {
            let failed = |task: Option<&Task>| {
                task.is_some_and(|task| task.last.get("exitstatus").and_then(Value::as_str) != Some("OK"))
            };
            let found = self
                .calls()
                .find(|(at, call, task)| *at >= number && fits(call) && !(*at == number && failed(*task)));
            found.map_or(usize::MAX, |(at, ..)| at)
        };
        let changed = first_of(&|call| call.method == "PUT" && call.path.ends_with(&path));
        let own = format!("/lxc/{vmid}");
        let reborn = first_of(&|call| {
            let created = call.method == "POST"
                && call.path.ends_with("/lxc")
                && call.param("vmid") == Some(vmid.to_string());
            call.answer.status == 200 && (created || call.method == "DELETE" && call.path.ends_with(&own))
        });
        let first = shown
            .filter(|(at, call, _)| call.answer.status == 200 && *at < reborn)
            .map(|(at, call, _)| (at, call.answer.body.clone()))
            .next();
        let parent = first.as_ref().and_then(|(_, body)| body.as_ref()?.pointer("/data/parent")?.as_str());
        let parent = parent.map(str::to_owned);
        let config = match first {
            Some((at, Some(body))) => {
                let shown = self.config_of(&body, &self.changed_between(vmid, number, at));
                let shown = self.before_changes(shown, vmid, number, at);
                self.with_moved(self.before_growth(shown, vmid, number, at), vmid, number, at)
            }
            _ => self
                .backed_up(vmid, number, changed.min(reborn))
                .or_else(|| self.in_a_snapshot(vmid, number, reborn))
                .unwrap_or_else(|| self.seen_running(vmid, number, reborn)),
        };
        self.edit(number, &Edit::Place { vmid, config });
        if let Some(parent) = parent {
            self.shot_before(number, vmid, &parent);
        }
    }

    /// A configuration with the mount points that backups between two lines show, and that are gone at the second.
    fn with_moved(&self, text: String, vmid: u32, from: usize, to: usize) -> String {
        let of_job = format!(":vzdump:{vmid}:");
        let jobs = self.calls().filter(|(at, ..)| (from..to).contains(at)).filter_map(|(_, _, task)| task);
        let reported: Vec<&String> =
            jobs.filter(|task| task.upid.contains(&of_job)).flat_map(|task| &task.log).collect();
        let storage = text
            .lines()
            .find_map(|line| line.strip_prefix("rootfs: ")?.split_once(':'))
            .map_or("labdir".to_owned(), |(storage, _)| storage.to_owned());
        let further = self.further(vmid, &storage);
        let gone = further.lines().filter(|line| {
            let key = line.split(": ").next().unwrap_or_default();
            let shown = text.lines().any(|held| held.starts_with(&format!("{key}: ")));
            !shown && reported.iter().any(|line| line.contains(&format!(" mount point {key} (")))
        });
        let gone: String = gone.map(|line| format!("{line}\n")).collect();
        text + &gone
    }

    /// The configuration as a recorded backup of the guest carried it, when that is shown later.
    pub(super) fn backed_up(&self, vmid: u32, from: usize, to: usize) -> Option<String> {
        self.calls().find_map(|(_, call, _)| {
            let volid = call
                .param("volume")
                .filter(|_| call.path.ends_with("/extractconfig") && call.answer.status == 200)?;
            let own = crate::storage::volume::backup_owner(volid.split(":backup/").nth(1)?) == Some(vmid);
            let in_time = self.is_made_by_backup(&volid, to) && !self.is_made_by_backup(&volid, from);
            (own && in_time)
                .then(|| call.answer.body.as_ref()?.get("data")?.as_str().map(str::to_owned))
                .flatten()
        })
    }

    /// A small guest with the configuration that its recorded status, or its row in a list, shows.
    pub(super) fn seen_running(&self, vmid: u32, from: usize, to: usize) -> String {
        let path = format!("/lxc/{vmid}/status/current");
        let looks = self.calls().filter(|(at, call, _)| {
            (from..to).contains(at) && call.method == "GET" && call.answer.status == 200
        });
        let rows = looks.filter_map(|(_, call, _)| {
            let data = call.answer.body.as_ref()?.get("data")?;
            let listed = call.path.ends_with("/nodes/pve1/lxc") || call.path.ends_with("/cluster/resources");
            match data.as_array().filter(|_| listed) {
                // Of one that is new the list of everything knows nothing yet.
                Some(rows) => rows.iter().find(|row| {
                    row.get("vmid").and_then(Value::as_u64) == Some(u64::from(vmid))
                        && row.get("name").is_some()
                }),
                None => call.path.ends_with(&path).then_some(data),
            }
        });
        let text = self.small(vmid);
        let Some(data) = rows.into_iter().next() else { return text };
        let word = |key: &str| data.get(key).and_then(Value::as_str);
        let mut kept: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut set = |key: &str, value: String| {
            kept.retain(|line| !line.starts_with(&format!("{key}: ")));
            kept.push(format!("{key}: {value}"));
        };
        let bytes = |key: &str| data.get(key).and_then(Value::as_u64);
        // Of one without a name the list makes one up.
        word("name").into_iter().for_each(|name| set("hostname", name.to_owned()));
        word("tags").into_iter().for_each(|tags| set("tags", tags.to_owned()));
        bytes("maxmem").into_iter().for_each(|bytes| set("memory", (bytes >> 20).to_string()));
        bytes("maxswap").into_iter().for_each(|bytes| set("swap", (bytes >> 20).to_string()));
        let converted = format!("/lxc/{vmid}/template");
        let converted = self.calls().any(|(_, call, _)| call.path.ends_with(&converted));
        if data.get("template").and_then(Value::as_u64) == Some(1) && !converted {
            set("template", "1".to_owned());
        }
        bytes("cpus")
            .or_else(|| bytes("maxcpu"))
            .filter(|_| !text.contains("cores: "))
            .into_iter()
            .for_each(|n| set("cores", n.to_string()));
        let root = text.lines().find_map(|line| line.strip_prefix("rootfs: ")).unwrap_or_default();
        let (volid, _) = root.split_once(',').unwrap_or((root, ""));
        let down = word("status") == Some("stopped");
        match bytes("maxdisk").filter(|_| down) {
            // A disk without a size of its own is reported with the usual one.
            Some(USUAL_BYTES) => set(
                "rootfs",
                format!("{},size=0T", volid.replace("/vm-", "/subvol-").replace(".raw", ".subvol")),
            ),
            Some(size) => set("rootfs", format!("{volid},size={}M", size >> 20)),
            None => {}
        }
        kept.retain(|line| *line != format!("hostname: CT{vmid}"));
        kept.join("\n") + "\n"
    }

    pub(super) fn small(&self, vmid: u32) -> String {
        let about = |text: &str| {
            self.patterns
                .volume
                .captures_iter(text)
                .filter(|found| found.get(2).is_some_and(|id| id.as_str() == vmid.to_string()))
                .find_map(|found| found.get(1).map(|s| s.as_str().to_owned()))
        };
        let asked = self.calls().find_map(|(_, call, _)| {
            about(&percent_encoding::percent_decode_str(&call.path).decode_utf8_lossy())
        });
        let storage =
            asked.clone().or_else(|| self.calls().find_map(|(_, call, task)| about(&call.evidence(task))));
        let storage = storage.unwrap_or_else(|| {
            if self.is_snapshotted(vmid) { "labbtrfs".to_owned() } else { "labdir".to_owned() }
        });
        // The recorder's read is right only for its own time: a volume that a call names may have been elsewhere before.
        let looked_up = self.observed(vmid).filter(|(_, disks)| {
            asked.as_ref().is_none_or(|storage| disks.contains(&format!("{storage}:{vmid}/")))
        });
        let disks = looked_up.map(|(at, disks)| self.with_moved(disks, vmid, 0, at)).unwrap_or_else(|| {
            format!("rootfs: {storage}:{vmid}/vm-{vmid}-disk-0.raw,size=1G\n{}", self.further(vmid, &storage))
        });
        let called = self.calls().filter_map(|(_, _, task)| task).find_map(|task| {
            let own = task.upid.contains(&format!(":vzdump:{vmid}:"));
            task.log
                .iter()
                .filter(|_| own)
                .find_map(|line| line.strip_prefix("INFO: CT Name: ").map(str::to_owned))
        });
        let net = self.netted(vmid);
        let hostname = called.unwrap_or_else(|| format!("ct{vmid}"));
        format!(
            "arch: amd64\nhostname: {hostname}\nmemory: 128\nostype: debian\nswap: 0\nunprivileged: 1\n{disks}{net}"
        )
    }

    /// A network, when the restore of a backup of the guest was refused for its bridge.
    fn netted(&self, vmid: u32) -> String {
        let of_it = format!("vzdump-lxc-{vmid}-");
        let restores = self
            .calls()
            .filter(|(_, call, _)| call.param("ostemplate").is_some_and(|volid| volid.contains(&of_it)));
        let refused = restores.filter_map(|(_, _, task)| {
            let text = task?.last.get("exitstatus")?.as_str()?.split("(/sdn/zones/localnetwork/").nth(1)?;
            text.split([',', '/']).next().map(str::to_owned)
        });
        let bridge = refused.into_iter().next();
        bridge
            .map(|bridge| {
                format!(
                    "net0: name=eth0,bridge={bridge},hwaddr=BC:24:11:00:00:{:02X},type=veth\n",
                    vmid % 256
                )
            })
            .unwrap_or_default()
    }

    /// The configuration that one of the guest's snapshots shows.
    fn in_a_snapshot(&self, vmid: u32, from: usize, to: usize) -> Option<String> {
        let own = format!("/lxc/{vmid}/snapshot/");
        let (at, call, _) = self.calls().find(|(at, call, _)| {
            (from..to).contains(at)
                && call.method == "GET"
                && call.answer.status == 200
                && call.path.contains(&own)
                && call.path.ends_with("/config")
        })?;
        let text = self.config_of(call.answer.body.as_ref()?, &self.changed_between(vmid, from, at));
        Some(self.before_growth(text, vmid, from, at))
    }

    /// Disks without what calls between two lines added to them; one that was set to a size had the usual one before.
    fn before_growth(&self, text: String, vmid: u32, from: usize, to: usize) -> String {
        let own = format!("/lxc/{vmid}/resize");
        let grown = self.calls().filter(|(at, call, _)| {
            (from..to).contains(at) && call.answer.status == 200 && call.path.ends_with(&own)
        });
        grown.fold(text, |text, (_, call, _)| {
            let (Some(disk), Some(size)) = (call.param("disk"), call.param("size")) else { return text };
            let more = size.strip_prefix('+').and_then(parse_size);
            let less = |line: &str| {
                let of_disk = line.starts_with(&format!("{disk}: "));
                let (head, held) = line.split_once("size=").filter(|_| of_disk)?;
                let (held, tail) = held
                    .split_once(',')
                    .map_or((held, String::new()), |(held, tail)| (held, format!(",{tail}")));
                let before =
                    more.map_or(Some(1 << 30), |more| Some(parse_size(held)?.saturating_sub(more)))?;
                Some(format!("{head}size={}M{tail}", before >> 20))
            };
            text.lines().map(|line| less(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
        })
    }

    /// Mount points that later calls and backups show the guest to have had.
    pub(super) fn further(&self, vmid: u32, storage: &str) -> String {
        let own = format!("/lxc/{vmid}/move_volume");
        let mut found: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
        let mut place = |key: &str, path: &str, backup: bool| {
            let n: u32 = key.trim_start_matches("mp").parse().unwrap_or_default();
            let value = format!(
                "{storage}:{vmid}/vm-{vmid}-disk-{}.raw,mp={path},backup={},size=1G",
                n + 1,
                u8::from(backup)
            );
            found.entry(key.to_owned()).or_insert(value);
        };
        let mut as_folder: BTreeSet<String> = BTreeSet::new();
        let mut images: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
        let of_job = |task: &Task| task.upid.contains(&format!(":vzdump:{vmid}:"));
        for (_, call, task) in self.calls() {
            for line in task.filter(|task| of_job(task)).map(|task| task.log.clone()).unwrap_or_default() {
                if let Some(found) = self.patterns.mounted.captures(&line) {
                    let text = |n: usize| found.get(n).map_or("", |text| text.as_str());
                    place(text(2), text(3), text(1) == "including");
                }
            }
            let absent = call.evidence(task).contains("does not exist");
            if let Some(key) = call
                .param("volume")
                .filter(|key| call.path.ends_with(&own) && key.starts_with("mp") && !absent)
            {
                place(&key, "/data", false);
                // Nothing was made for a folder.
                let log =
                    task.map(|task| task.log.join("\n")).filter(|log| log.contains("Number of files: "));
                if log.is_some_and(|log| !log.contains("Creating filesystem")) {
                    as_folder.insert(key);
                }
            }
            let grown = call
                .param("disk")
                .filter(|key| call.path.ends_with(&format!("/lxc/{vmid}/resize")) && key.starts_with("mp"));
            let reported = task.and_then(|task| {
                self.patterns.image.captures(&task.log.join("\n")).map(|found| {
                    let text = |n: usize| found.get(n).map_or("", |text| text.as_str());
                    format!("{}:{vmid}/{},mp=/grown,size=1G", text(1), text(2))
                })
            });
            if let (Some(key), Some(value)) = (grown, reported) {
                images.entry(key).or_insert(value);
            }
        }
        for (key, value) in &mut found {
            if as_folder.contains(key) {
                *value = value
                    .replace("/vm-", "/subvol-")
                    .replace(".raw", ".subvol")
                    .replace("size=1G", "size=0T");
            }
        }
        found.extend(images);
        found.into_iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
    }

    /// Disks as the recorder read them on the node, and the number of that line.
    pub(super) fn observed(&self, vmid: u32) -> Option<(usize, String)> {
        let own = format!(":{vmid}/");
        let looked = self.lines.iter().filter_map(|line| {
            let Content::Other { output, .. } = &line.content else { return None };
            Some((line.number, output))
        });
        let is_disk =
            |line: &&str| line.contains(&own) && (line.starts_with("rootfs: ") || line.starts_with("mp"));
        looked
            .map(|(at, output)| {
                (at, output.lines().filter(is_disk).map(|line| format!("{line}\n")).collect::<String>())
            })
            .find(|(_, disks)| disks.contains("rootfs: "))
    }

    pub(super) fn is_snapshotted(&self, vmid: u32) -> bool {
        let path = format!("/lxc/{vmid}/snapshot");
        let left = |line: &Line| matches!(&line.content, Content::Other { left: Some(left), .. } if left.vmid == vmid && !left.snapshots.is_empty());
        let of_job = format!(":vzdump:{vmid}:");
        let shot = |task: &Task| task.log.iter().any(|line| line == "INFO: create storage snapshot 'vzdump'");
        self.lines.iter().any(left)
            || self
                .calls()
                .filter_map(|(_, _, task)| task)
                .any(|task| task.upid.contains(&of_job) && shot(task))
            || self.calls().any(|(_, call, task)| {
                (call.path.ends_with(&path) || call.path.contains(&format!("{path}/")))
                    && call.method != "GET"
                    && task
                        .is_some_and(|task| task.last.get("exitstatus").and_then(Value::as_str) == Some("OK"))
            })
    }

    /// Options that calls changed between two lines, so that what is shown at the second was not there at the first.
    pub(super) fn changed_between(&self, vmid: u32, from: usize, to: usize) -> BTreeSet<String> {
        let path = format!("/lxc/{vmid}/config");
        let between =
            self.calls().filter(|(at, call, _)| (from..to).contains(at) && call.path.ends_with(&path));
        let effective = between.filter(|(_, call, _)| call.method == "PUT" && call.answer.status == 200);
        effective.flat_map(|(_, call, _)| call.params.keys().cloned()).collect()
    }

    pub(super) fn config_of(&self, body: &Value, changed: &BTreeSet<String>) -> String {
        let mut text = String::new();
        for (key, value) in body.get("data").and_then(Value::as_object).into_iter().flatten() {
            let plain = crate::call::plain(value).unwrap_or_default();
            let basic = matches!(
                key.as_str(),
                "arch" | "hostname" | "memory" | "ostype" | "swap" | "unprivileged" | "rootfs"
            ) || key.starts_with("mp");
            match key.as_str() {
                "digest" | "lock" | "parent" | "snaptime" | "lxc" => {}
                _ if changed.contains(key) && !basic => {}
                "description" => plain.lines().for_each(|line| text.push_str(&format!("#{line}\n"))),
                "env" => plain
                    .split('\0')
                    .for_each(|line| text.push_str(&format!("lxc.environment.runtime: {line}\n"))),
                _ => text.push_str(&format!("{key}: {plain}\n")),
            }
        }
        text
    }
}
