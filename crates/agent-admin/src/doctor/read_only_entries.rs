//! The check of read-only storage entries for restore tests.
//!
//! Input: the settings, and Proxmox's entries as the observe token sees them. Output: for each storage of backups one
//! [`Check`]. A storage without a twin is no failure, and what its grant opens is said each time. Deliberately absent:
//! what a twin's account may do at its server; its credentials are root's and the server's.

use std::collections::BTreeMap;

use holdfast_protocol::id::StorageName;

use super::row::{Check, State};
use crate::model::storage::EntrySeen;
use crate::plan::entry::line_in;
use crate::plan::read_only_entry::{KIND, wrong};
use crate::port::pve::{Pve, PveError};
use crate::setup::plan::Places;

/// The checks, on a host that tries backups.
pub(super) async fn checks(pve: &dyn Pve, places: &Places) -> Vec<Check> {
    if places.scratch.is_none() {
        return Vec::new();
    }
    judged(places, pve.storage_entries().await)
}

fn judged(places: &Places, seen: Result<BTreeMap<String, EntrySeen>, PveError>) -> Vec<Check> {
    let entries = match seen {
        Ok(entries) => entries,
        Err(error) => return vec![Check::of_error("entries by which backups are tried", &error)],
    };
    let counterpart = |of: &StorageName| places.scratch.as_ref().and_then(|scratch| scratch.twins.get(of));
    let mut of: Vec<&StorageName> = places.backup_storages.iter().collect();
    of.sort();
    of.dedup();
    of.into_iter()
        .map(|of| counterpart(of).map_or_else(|| alone(of, &entries), |by| twinned(of, by, &entries)))
        .collect()
}

fn name(of: &StorageName) -> String {
    format!("backups of {of}, tried")
}

fn twinned(of: &StorageName, by: &StorageName, entries: &BTreeMap<String, EntrySeen>) -> Check {
    let wrong = wrong(of, by, entries);
    if wrong.is_empty() {
        let account = entries.get(by.as_str()).and_then(|entry| entry.get("username"));
        let account = account.map_or("an account of its own", String::as_str);
        let detail = format!(
            "through {by}, as {account}: the server must give that DatastoreReader and no more, which only the server shows"
        );
        return Check::new(State::Good, name(of), detail);
    }
    let mend = wrong.iter().filter_map(|words| line_in(words)).map(str::to_owned).collect();
    let detail = format!("none is, until {by} is its twin: {}", wrong.join("; "));
    Check { mend, ..Check::new(State::Failed, name(of), detail) }
}

fn alone(of: &StorageName, entries: &BTreeMap<String, EntrySeen>) -> Check {
    let is_server =
        entries.get(of.as_str()).and_then(|entry| entry.get("type")).is_some_and(|kind| kind == KIND);
    let detail = if is_server {
        format!(
            "by its own entry, so the `scratch` token may do what the account there may: a twin that only reads is had by \
             `agentd setup --scratch-twin {of}=NAME`"
        )
    } else {
        "by its own entry: the `scratch` token could prune every backup there, since Proxmox knows no narrower right to read \
         files; keep only our guests' backups there, and another copy elsewhere"
            .to_owned()
    };
    Check::new(State::Good, name(of), detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::plan::tests::tried;

    fn entry(kind: &str, username: &str) -> EntrySeen {
        let fields = [("type", kind), ("server", "pbs"), ("username", username), ("content", "backup")];
        fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn what_reads_a_backup_is_reported_and_a_counterpart_that_is_none_fails() {
        let mut choices = tried();
        let mut entries = BTreeMap::from([
            ("backup2".to_owned(), entry("dir", "")),
            ("off1".to_owned(), entry("pbs", "pve@pbs!bk")),
            ("off2".to_owned(), entry("pbs", "pve@pbs!bk")),
            ("off1-read".to_owned(), entry("pbs", "pve@pbs!ro")),
        ]);
        choices.targets.insert("off2".parse().unwrap());
        let of = |entries: &BTreeMap<String, EntrySeen>| judged(&choices.places(), Ok(entries.clone()));
        let reported = of(&entries);
        assert!(reported.iter().all(|check| check.state == State::Good), "{reported:?}");
        let [files, twinned, server] = reported.as_slice() else { panic!("{reported:?}") };
        assert!(files.detail.contains("could prune every backup"), "{files:?}");
        assert!(twinned.detail.contains("through off1-read, as pve@pbs!ro"), "{twinned:?}");
        assert!(server.detail.contains("--scratch-twin off2=NAME"), "{server:?}");

        entries.remove("off1-read");
        let reported = of(&entries);
        assert_eq!(reported[1].state, State::Failed);
        assert!(reported[1].mend[0].starts_with("pvesm add pbs off1-read --server pbs"), "{reported:?}");
        choices.scratch = None;
        assert!(choices.places().scratch.is_none());
    }
}
