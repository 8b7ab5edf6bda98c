//! A backup server's own API, over the folders of [`crate::storage::backup_server`].
//!
//! In: one call as text. Out: status and body as text. Checked against `pbs/exchanges.jsonl`. It knows the four calls that our agent
//! makes. A verification is finished as soon as it is requested. A caller that knows the server's secret acts as the token with the
//! server's `role`; `no_one` and `DatastoreAudit` are roles as well. A snapshot with a `.damaged` file next to it fails its
//! verification. Deliberately absent: sockets, other owners, prune, tickets.
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::storage::backup_server::{sealed, verification};
use crate::storage::content::{copy_of, file_bytes, is_protected};
use crate::storage::server_names::parse_snapshot;

#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// Behind `/api2/json`.
    pub path: &'a str,
    /// Query or form.
    pub params: &'a [(&'a str, &'a str)],
    pub authorization: &'a str,
}

/// Status and body. Only good answers are JSON.
pub type Reply = (u16, String);

/// Answers a call to the server whose folder this is.
#[must_use]
pub fn answer(server: &Path, now_s: i64, ask: &Ask<'_>) -> Reply {
    let said = |file: &str| std::fs::read_to_string(server.join(file)).unwrap_or_default().trim().to_owned();
    let secret = ask.authorization.strip_prefix("PBSAPIToken=").and_then(|rest| rest.split_once(':'));
    let Some((token, _)) = secret.filter(|(_, secret)| !secret.is_empty() && *secret == said("secret"))
    else {
        return (401, "authentication failed".to_owned());
    };
    let role = match said("role") {
        role if role.is_empty() => "DatastoreBackup".to_owned(),
        role => role,
    };
    let call = Call { server, now_s, ask, token, role: &role };
    let parts: Vec<&str> = ask.path.trim_start_matches('/').split('/').collect();
    match (ask.method, parts.as_slice()) {
        ("GET", ["access", "permissions"]) => call.permissions(),
        ("GET", ["admin", "datastore", store, "snapshots"]) => call.snapshots(store),
        ("POST", ["admin", "datastore", store, "verify"]) => call.verify(store),
        ("GET", ["nodes", "localhost", "tasks", upid, "status"]) => call.task(upid),
        _ => (404, format!("Path '/api2/json{}' not found.", ask.path)),
    }
}

struct Call<'a> {
    server: &'a Path,
    now_s: i64,
    ask: &'a Ask<'a>,
    token: &'a str,
    role: &'a str,
}

fn data(value: &Value) -> Reply {
    (200, json!({ "data": value }).to_string())
}

impl Call<'_> {
    fn privileges(&self) -> &'static [&'static str] {
        match self.role {
            "DatastoreBackup" => &["Datastore.Backup"],
            "DatastoreAudit" => &["Datastore.Audit"],
            "DatastorePowerUser" => &["Datastore.Backup", "Datastore.Prune"],
            _ => &[],
        }
    }

    fn has_any(&self, wanted: &[&str], store: &str) -> Result<(), Reply> {
        if self.privileges().iter().any(|held| wanted.contains(held)) {
            return Ok(());
        }
        let text = format!("permission check failed - missing {} on /datastore/{store}", wanted.join("|"));
        Err((403, text))
    }

    fn param(&self, name: &str) -> Option<&str> {
        self.ask.params.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn permissions(&self) -> Reply {
        let granted: Value = self.privileges().iter().map(|name| ((*name).to_owned(), json!(true))).collect();
        let stores =
            names(self.server).into_iter().filter(|name| self.server.join(name).is_dir() && name != "tasks");
        let all: Value = match self.privileges() {
            [] => json!({}),
            _ => stores.map(|store| (format!("/datastore/{store}"), granted.clone())).collect(),
        };
        data(&all)
    }

    fn folder(&self, store: &str) -> PathBuf {
        let parts = self.param("ns").unwrap_or_default().split('/').filter(|part| !part.is_empty());
        parts.fold(self.server.join(store), |folder, part| folder.join("ns").join(part))
    }

    /// The places of the requested snapshots, complete or still being written.
    fn places(&self, store: &str) -> Vec<(u32, i64, PathBuf)> {
        let groups = self.folder(store).join("ct");
        let mut found = Vec::new();
        for owner in names(&groups) {
            if self.param("backup-id").is_some_and(|wanted| wanted != owner) {
                continue;
            }
            for file in names(&groups.join(&owner)) {
                let Some((at, "tar" | "dat")) = file.rsplit_once('.') else { continue };
                let Some((number, time)) = parse_snapshot(&format!("ct/{owner}/{at}")) else { continue };
                found.push((number, time, groups.join(&owner).join(&file)));
            }
        }
        found
    }

    fn snapshots(&self, store: &str) -> Reply {
        if let Err(refused) = self.has_any(&["Datastore.Audit", "Datastore.Backup"], store) {
            return refused;
        }
        if !self.folder(store).is_dir() {
            return (400, "ENOENT: No such file or directory".to_owned());
        }
        let rows: Vec<Value> = self
            .places(store)
            .into_iter()
            .map(|(vmid, time, place)| {
                let mut row = json!({ "backup-type": "ct", "backup-id": vmid.to_string(), "backup-time": time, "files": [],
                    "owner": self.token, "protected": is_protected(&place) });
                let whole = place.extension().is_some_and(|end| end == "tar");
                if let Some(row) = row.as_object_mut().filter(|_| whole) {
                    let (key, size) = (sealed(&place), file_bytes(&place));
                    let (parts, index) = if key.is_some() { ("encrypt", "sign-only") } else { ("none", "none") };
                    let files = json!([
                        { "filename": "pct.conf.blob", "crypt-mode": parts, "size": 412 },
                        { "filename": "root.pxar.didx", "crypt-mode": parts, "size": size },
                        { "filename": "catalog.pcat1.didx", "crypt-mode": parts, "size": 2048 },
                        { "filename": "index.json.blob", "crypt-mode": index, "size": 481 },
                        // Uploaded after the backup, with neither mode nor size.
                        { "filename": "client.log.blob" },
                    ]);
                    row.extend([("files".to_owned(), files), ("size".to_owned(), json!(size))]);
                    row.extend(key.map(|key| ("fingerprint".to_owned(), json!(key))));
                    row.extend(verification(&place).map(|said| ("verification".to_owned(), said)));
                }
                row
            })
            .collect();
        data(&json!(rows))
    }

    fn verify(&self, store: &str) -> Reply {
        if let Err(refused) = self.has_any(&["Datastore.Verify", "Datastore.Backup"], store) {
            return refused;
        }
        let worker = match (self.param("backup-type"), self.param("backup-id")) {
            (Some(kind), Some(id)) => format!("verify_group:{store}\\x3a-{kind}-{id}"),
            (None, None) => format!("verify:{store}"),
            _ => return (400, "parameters do not specify a backup group or snapshot".to_owned()),
        };
        let count = names(&self.server.join("tasks")).len();
        let upid = format!(
            "UPID:pbs-test:00005406:0005459A:{count:08X}:{:08X}:{worker}:{}:",
            self.now_s, self.token
        );
        let days = self.param("outdated-after").and_then(|text| text.parse::<i64>().ok());
        let skips = self.param("ignore-verified").is_none_or(|text| text != "0");
        let mut well = true;
        for (_, _, place) in self.places(store) {
            let recent = |said: &Value| {
                let began = said["upid"].as_str().and_then(|upid| upid.split(':').nth(5)).unwrap_or_default();
                let began = i64::from_str_radix(began, 16).unwrap_or_default();
                days.is_none_or(|days| self.now_s < began + days * 86_400)
            };
            if skips && verification(&place).is_some_and(|said| recent(&said)) {
                continue;
            }
            let good =
                place.extension().is_some_and(|end| end == "tar") && !copy_of(&place, "damaged").exists();
            well &= good;
            let said = json!({ "upid": upid, "state": if good { "ok" } else { "failed" } });
            if std::fs::write(copy_of(&place, "verified"), said.to_string()).is_err() {
                return (500, "the folder of the backup server cannot be written".to_owned());
            }
        }
        let ended = if well { "OK" } else { "verification failed - please check the log for details" };
        let tasks = self.server.join("tasks");
        let kept =
            std::fs::create_dir_all(&tasks).and_then(|()| std::fs::write(tasks.join(escaped(&upid)), ended));
        if kept.is_err() {
            return (500, "the folder of the backup server cannot be written".to_owned());
        }
        data(&json!(upid))
    }

    /// The task with this name, as it is written in the path: still escaped.
    fn task(&self, upid: &str) -> Reply {
        let Ok(ended) = std::fs::read_to_string(self.server.join("tasks").join(upid)) else {
            return (400, "no such task".to_owned());
        };
        let name = unescaped(upid);
        let parts: Vec<&str> = name.split(':').collect();
        let hex =
            |at: usize| parts.get(at).and_then(|text| i64::from_str_radix(text, 16).ok()).unwrap_or_default();
        let part = |at: usize| parts.get(at).copied().unwrap_or_default();
        let (user, token) = part(8).split_once('!').unwrap_or_default();
        data(
            &json!({ "exitstatus": ended, "id": part(7).replace("\\x3a-", ":/").replace('-', "/"), "node": part(1),
            "pid": hex(2), "pstart": hex(3), "starttime": hex(5), "status": "stopped", "tokenid": token, "type": part(6),
            "upid": name, "user": user }),
        )
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn escaped(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn unescaped(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}
