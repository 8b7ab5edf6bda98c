//! Preconditions about backup servers.
//!
//! In: the committed list of servers and entries, and one recorded exchange. Out: folders of a server, definitions with their secrets,
//! snapshots that no recorded backup made, the role of an account, a server that does not answer for a while.
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::known_differences::Beyond;
use super::names::Names;
use super::precondition::{Premises, SECRET};
use super::recording::{Call, Task};
use crate::clock::parse_wordy;
use crate::storage::config::StorageConfig;
use crate::storage::content::copy_of;
use crate::storage::server_names::{parse_snapshot, snapshot_stamp};

/// The snapshot that a volume's name names.
fn snapshot_in(text: &str) -> Option<(String, String)> {
    let (storage, rest) = text.split_once(":backup/")?;
    parse_snapshot(rest).map(|_| (storage.to_owned(), rest.to_owned()))
}

/// Writes a whole snapshot.
fn laid_down(place: &Path, config: &str, key: Option<&str>) -> std::io::Result<()> {
    place.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    crate::state::volumes::write_backup(place, config)?;
    key.map_or(Ok(()), |key| std::fs::write(copy_of(place, "sealed"), key))
}

impl Premises<'_> {
    /// Servers and entries that the recording speaks of and does not make.
    pub(super) fn beyond(&mut self, beyond: &Beyond) {
        let texts: Vec<String> = self
            .calls()
            .map(|(_, call, task)| {
                let params = Value::Object(call.params.clone());
                let path = percent_encoding::percent_decode_str(&call.path).decode_utf8_lossy();
                format!("{path} {params} {}", call.evidence(task))
            })
            .collect();
        let speaks_of = |name: &str| texts.iter().any(|text| text.contains(name));
        let entries = beyond.entries.iter().filter(|entry| speaks_of(&entry.name));
        let missing: Vec<_> = entries.filter(|entry| !self.defines(&entry.name)).collect();
        let hosts = beyond.servers.iter().filter(|server| {
            let used = format!("server {}", server.host);
            speaks_of(&server.host) || missing.iter().any(|entry| entry.storage_cfg.contains(&used))
        });
        for server in hosts {
            let place = self.outside(&server.host);
            let write = |file: PathBuf, text: &str| {
                let folder = file.parent().map_or(Ok(()), std::fs::create_dir_all);
                folder.and_then(|()| std::fs::write(file, text)).is_ok()
            };
            let mut done = write(place.join("fingerprint"), &server.fingerprint);
            done &= write(place.join("secret"), SECRET);
            for namespace in &server.namespaces {
                done &= std::fs::create_dir_all(place.join(namespace)).is_ok();
            }
            for (account, role) in &server.roles {
                let own = place.join("accounts").join(account);
                done &= write(own.join("secret"), SECRET) && write(own.join("role"), role);
            }
            self.taken.push(format!("at the start: a backup server {} ({done})", server.host));
        }
        for entry in missing {
            let text = format!("pbs: {}\n\t{}\n", entry.name, entry.storage_cfg.join("\n\t"));
            let mut world = self.node.world();
            world.storage.all.extend(StorageConfig::parse(&text).all);
            let secrets = world.store().secrets();
            let keep = |end: &str, text: &str| {
                let file = secrets.join(format!("{}.{end}", entry.name));
                std::fs::create_dir_all(&secrets).and_then(|()| std::fs::write(file, text)).is_ok()
            };
            let mut done = keep("pw", &format!("{SECRET}\n"));
            if let Some(key) = &entry.key {
                done &= keep("enc", key);
            }
            drop(world);
            self.taken.push(format!("at the start: storage {} is defined ({done})", entry.name));
        }
    }

    /// Whether the recording defines a storage itself.
    fn defines(&self, name: &str) -> bool {
        self.calls().any(|(_, call, _)| {
            call.method == "POST"
                && call.path.ends_with("/storage")
                && call.answer.status == 200
                && call.param("storage").as_deref() == Some(name)
        })
    }

    fn outside(&self, host: &str) -> PathBuf {
        self.node.world().store().run.join("outside").join(host)
    }

    /// The content and the state of the server, before one call.
    pub(super) fn on_server(&mut self, number: usize, call: &Call, evidence: &str, names: &Names) {
        self.account(number, call, evidence, names);
        let path = percent_encoding::percent_decode_str(&call.path).decode_utf8_lossy().into_owned();
        let in_path = path.split("/content/").nth(1).map(str::to_owned);
        let named = ["ostemplate", "volume", "archive"].iter().filter_map(|name| call.param(name));
        for volid in named.chain(in_path) {
            if let Some((storage, _)) = snapshot_in(&volid).filter(|_| call.answer.status != 403) {
                // The obstacle, if any, is restored after this.
                let _cleared = self.clear(&storage);
                self.needed(number, call, &volid, evidence, names);
            }
        }
        let rows = call.answer.body.as_ref().and_then(|body| body.get("data")).and_then(Value::as_array);
        if call.method == "GET" && path.contains("/storage/") && path.ends_with("/content") {
            let listed: Vec<Value> = rows.into_iter().flatten().cloned().collect();
            for row in &listed {
                let volid = row.get("volid").and_then(Value::as_str).and_then(snapshot_in);
                let _cleared = volid.and_then(|(storage, _)| self.clear(&storage));
                self.listed(number, row, names);
            }
        }
    }

    /// The server's refusals and successful calls show which role an entry's account has.
    fn account(&mut self, number: usize, call: &Call, evidence: &str, names: &Names) {
        let in_path = call.path.split("/storage/").nth(1).and_then(|rest| rest.split(['/', '?']).next());
        let Some(name) = in_path.map(str::to_owned) else { return };
        let file = {
            let world = self.node.world();
            let Some(held) = world.storage.find(&name).filter(|held| held.kind == "pbs") else { return };
            let account = held.get("username").unwrap_or_default();
            world.store().server(held).join("accounts").join(account).join("role")
        };
        let volid = call
            .path
            .split("/content/")
            .nth(1)
            .map(|volid| names.ours(&percent_encoding::percent_decode_str(volid).decode_utf8_lossy()));
        let removes = call.method == "DELETE" && volid.is_some() && evidence.contains("Removed volume");
        let tried = evidence.contains("failed to delete snapshot");
        let role = match () {
            () if evidence.contains("missing Datastore.Modify|Datastore.Prune") => "DatastoreBackup",
            () if evidence.contains("missing Datastore.Modify|Datastore.Backup") => "DatastoreReader",
            () if removes || tried => "DatastorePowerUser",
            () => return,
        };
        let held = std::fs::read_to_string(&file).unwrap_or_default();
        if held != role && !(held == "DatastoreReader" && role == "DatastoreBackup") {
            let done = std::fs::write(&file, role).is_ok();
            self.taken
                .push(format!("before line {}: the account of {name} is a {role} ({done})", number + 1));
        }
    }

    /// Whether a recorded backup made this snapshot.
    fn is_uploaded(&self, snapshot: &str) -> bool {
        let made = format!("creating Proxmox Backup Server archive '{snapshot}'");
        self.calls()
            .filter_map(|(_, _, task)| task)
            .flat_map(|task| &task.log)
            .any(|line| line.ends_with(&made))
    }

    /// The file of a snapshot, unless it is there or is made by a recorded backup.
    fn lacking(&self, volid: &str, names: &Names) -> Option<PathBuf> {
        let (_, snapshot) = snapshot_in(volid)?;
        let ours = names.ours(volid);
        let world = self.node.world();
        let store = world.store();
        let place = store.place(&store.locate(&ours).ok()?);
        (!self.is_uploaded(&snapshot) && !place.exists() && !place.with_extension("dat").exists())
            .then_some(place)
    }

    /// A snapshot that a call reads was made on another day.
    fn needed(&mut self, number: usize, call: &Call, volid: &str, evidence: &str, names: &Names) {
        if evidence.contains("No such file or directory") || call.answer.status == 400 {
            return;
        }
        let Some(place) = self.lacking(volid, names) else { return };
        let Some((storage, _)) = snapshot_in(volid) else { return };
        let config = self.embedded(volid).or_else(|| self.restored(volid)).or_else(|| self.named(volid));
        let key = self.closed_by(volid, &storage);
        let done = laid_down(&place, &config.unwrap_or_default(), key.as_deref());
        self.taken.push(format!(
            "before line {}: snapshot {volid} was made before ({})",
            number + 1,
            done.is_ok()
        ));
    }

    /// The key that encrypts a snapshot: as a list shows it, or as the client that could not open it reports, else that of its entry.
    fn closed_by(&self, volid: &str, storage: &str) -> Option<String> {
        let (_, snapshot) = snapshot_in(volid)?;
        let known: Vec<String> = {
            let world = self.node.world();
            let all = world.storage.all.iter();
            all.filter_map(|(_, held)| held.get("encryption-key").map(str::to_owned)).collect()
        };
        let mut opened_without = false;
        for (_, call, task) in self.calls() {
            let rows = call.answer.body.as_ref().and_then(|body| body.get("data")).and_then(Value::as_array);
            let row = rows.into_iter().flatten().find(|row| {
                row.get("volid").and_then(Value::as_str).is_some_and(|volid| volid.ends_with(&snapshot))
            });
            if let Some(row) = row.filter(|row| row.get("size").and_then(Value::as_u64) != Some(1)) {
                return row.get("encrypted").and_then(Value::as_str).map(str::to_owned);
            }
            let named = ["ostemplate", "volume"].iter().filter_map(|name| call.param(name));
            if !named.into_iter().any(|volid| volid.ends_with(&snapshot)) {
                continue;
            }
            let evidence = call.evidence(task);
            let reported = ["manifest's key ", "was created with key "];
            let short = reported.iter().find_map(|before| evidence.split(before).nth(1)?.get(..23));
            if let Some(short) = short {
                let whole = known.iter().find(|key| key.starts_with(short)).cloned();
                return whole.or_else(|| Some(format!("{short}{}", ":00".repeat(24))));
            }
            opened_without |= task.is_some_and(|task| {
                let fine = task.last.get("exitstatus").and_then(Value::as_str) == Some("OK");
                fine && !evidence.contains("Using encryption key from file descriptor")
            });
        }
        let world = self.node.world();
        let own = world.storage.find(storage).and_then(|held| held.get("encryption-key").map(str::to_owned));
        own.filter(|_| !opened_without)
    }

    /// A snapshot that a list shows exists there. Its verification is never caused by a recorded call.
    fn listed(&mut self, number: usize, row: &Value, names: &Names) {
        let Some(volid) = row.get("volid").and_then(Value::as_str) else { return };
        let text = |key: &str| row.get(key).and_then(Value::as_str);
        if let Some(place) = self.lacking(volid, names) {
            let folder = place.parent().map_or(Ok(()), std::fs::create_dir_all);
            let unfinished =
                row.get("size").and_then(Value::as_u64) == Some(1) && text("encrypted").is_none();
            let shown = self.embedded(volid).or_else(|| self.restored(volid)).or_else(|| self.named(volid));
            let config = shown.unwrap_or_default();
            let written = folder.and_then(|()| match unfinished {
                true => std::fs::write(place.with_extension("dat"), ""),
                false => crate::state::volumes::write_backup(&place, &config),
            });
            let marks = [
                ("sealed", text("encrypted")),
                ("notes", text("notes")),
                ("protected", row.get("protected").map(|_| "")),
            ];
            let mark = |(what, text): &(&str, Option<&str>)| {
                text.map_or(Ok(()), |text| std::fs::write(copy_of(&place, what), text))
            };
            let done = written.and_then(|()| marks.iter().try_for_each(mark));
            self.taken.push(format!("before line {}: {volid} lies there ({})", number + 1, done.is_ok()));
        }
        let place = {
            let (ours, world) = (names.ours(volid), self.node.world());
            let store = world.store();
            store.locate(&ours).ok().map(|at| store.place(&at)).filter(|place| place.is_file())
        };
        if let (Some(place), Some(said)) = (place, row.get("verification"))
            && !copy_of(&place, "verified").exists()
        {
            let done = std::fs::write(copy_of(&place, "verified"), said.to_string()).is_ok();
            self.taken.push(format!("before line {}: {volid} was looked through ({done})", number + 1));
        }
    }

    /// A client that finds a former snapshot in a group found one.
    pub(super) fn former_snapshot(&mut self, number: usize, call: &Call, task: Option<&Task>) {
        const DATE: &str = "Downloading previous manifest (";
        let line = task.into_iter().flat_map(|task| &task.log).find(|line| line.contains(DATE));
        let date = line.and_then(|line| line.split(DATE).nth(1)?.strip_suffix(')').and_then(parse_wordy));
        let (Some(time_s), Some(storage), Some(vmid)) = (date, call.param("storage"), call.param("vmid"))
        else {
            return;
        };
        let found = {
            let world = self.node.world();
            let store = world.store();
            let Ok(definition) = world.storage.get(&storage) else { return };
            let some = store.snapshots_of(&storage, definition, vmid.parse().ok());
            let place = store.namespace(definition).join(format!("ct/{vmid}/{}.tar", snapshot_stamp(time_s)));
            let key = definition.get("encryption-key").map(str::to_owned);
            some.is_ok_and(|rows| rows.is_empty()).then_some((place, key))
        };
        if let Some((place, key)) = found {
            let done = laid_down(&place, "", key.as_deref()).is_ok();
            self.taken.push(format!(
                "before line {}: a former snapshot of {vmid} lies on {storage} ({done})",
                number + 1
            ));
        }
    }
}
