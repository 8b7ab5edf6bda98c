//! The comparison of a read-only storage entry with its original.
//!
//! What comes in: both entries, as `GET /storage` gives them. What goes out: a text for what is wrong, and for a twin
//! that is missing the line by which root makes it. A twin that shows another namespace would have other backups tried
//! than those that count, one without the key none at all. Pure. Deliberately absent: what the account may do at the
//! server. That is the server's to say, and its credentials are not ours (`docs/adr/0045`).

use std::collections::BTreeMap;

use holdfast_protocol::id::StorageName;

use crate::model::storage::EntrySeen;

/// Where the archives are, and the key that opens them.
const SAME: [&str; 6] = ["server", "port", "datastore", "namespace", "fingerprint", "encryption-key"];

/// The type of an entry that can have a twin: at a backup server the rights of its account decide.
pub const KIND: &str = "pbs";

/// What is wrong with the twin of a storage, in words; nothing, where it is one.
#[must_use]
pub fn wrong(
    of: &StorageName,
    counterpart: &StorageName,
    entries: &BTreeMap<String, EntrySeen>,
) -> Vec<String> {
    let Some(original) = entries.get(of.as_str()) else {
        return vec![format!("Proxmox has no storage {of}, or hides it")];
    };
    let field = |entry: &EntrySeen, name: &str| entry.get(name).cloned().unwrap_or_default();
    if field(original, "type") != KIND {
        let kind = field(original, "type");
        return vec![format!(
            "{of} is of type {kind:?}: only an entry of a backup server can have a read-only twin"
        )];
    }
    let Some(seen) = entries.get(counterpart.as_str()) else {
        return vec![format!(
            "Proxmox has no storage {counterpart}, or hides it: root runs `{}`",
            add_line(of, counterpart, original)
        )];
    };
    if field(seen, "type") != KIND {
        return vec![format!("{counterpart} is of type {:?}, not {KIND}", field(seen, "type"))];
    }
    let same = |name: &str| {
        let (wanted, found) = (field(original, name), field(seen, name));
        wanted == found || (name == "fingerprint" && wanted.eq_ignore_ascii_case(&found))
    };
    let mut wrong: Vec<String> = SAME
        .into_iter()
        .filter(|name| !same(name))
        .map(|name| {
            let [wanted, found] = [original, seen].map(|entry| match field(entry, name) {
                text if text.is_empty() => "none".to_owned(),
                text => text,
            });
            format!("the {name} of {counterpart} is {found}, and that of {of} {wanted}")
        })
        .collect();
    if field(seen, "username") == field(original, "username") {
        wrong.push(format!(
            "{counterpart} has the account of {of}, which writes there: give it one with the role DatastoreReader and no other"
        ));
    }
    if !field(seen, "content").split(',').any(|kind| kind.trim() == "backup") {
        wrong.push(format!("{counterpart} does not take backup"));
    }
    if matches!(field(seen, "disable").as_str(), "1" | "true") {
        wrong.push(format!("{counterpart} is disabled"));
    }
    wrong
}

/// The line by which root makes a twin. Capitals are root's to fill in; the password is asked for.
fn add_line(of: &StorageName, counterpart: &StorageName, original: &EntrySeen) -> String {
    let mut line = format!("pvesm add {KIND} {counterpart}");
    for name in SAME {
        match original.get(name) {
            // Proxmox shows the key's fingerprint; the key itself is stored where it keeps those of its entries.
            Some(_) if name == "encryption-key" => {
                line.push_str(&format!(" --encryption-key /etc/pve/priv/storage/{of}.enc"));
            }
            Some(value) => line.push_str(&format!(" --{name} {value}")),
            None => {}
        }
    }
    line.push_str(" --content backup --username READER --password");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(fields: &[(&str, &str)]) -> EntrySeen {
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn both() -> BTreeMap<String, EntrySeen> {
        let off1 = entry(&[
            ("type", "pbs"),
            ("server", "10.66.0.1"),
            ("datastore", "store1"),
            ("namespace", "hf"),
            ("fingerprint", "86:7e"),
            ("encryption-key", "b2:9f"),
            ("username", "pve@pbs!bk"),
            ("content", "backup"),
        ]);
        let mut read = off1.clone();
        read.insert("username".to_owned(), "pve@pbs!ro".to_owned());
        BTreeMap::from([("off1".to_owned(), off1), ("off1-read".to_owned(), read)])
    }

    fn of(entries: &BTreeMap<String, EntrySeen>) -> Vec<String> {
        wrong(&"off1".parse().unwrap(), &"off1-read".parse().unwrap(), entries)
    }

    #[test]
    fn the_same_archives_by_another_account_are_a_counterpart() {
        assert_eq!(of(&both()), Vec::<String>::new());
        let mut shouting = both();
        shouting.get_mut("off1-read").unwrap().insert("fingerprint".to_owned(), "86:7E".to_owned());
        assert_eq!(of(&shouting), Vec::<String>::new());
    }

    #[test]
    fn each_difference_is_reported() {
        for (field, value, words) in [
            ("type", Some("dir"), "of type \"dir\""),
            ("server", Some("10.66.0.2"), "the server of off1-read is 10.66.0.2"),
            ("port", Some("8008"), "the port of off1-read is 8008, and that of off1 none"),
            ("datastore", Some("store2"), "datastore"),
            ("namespace", None, "the namespace of off1-read is none, and that of off1 hf"),
            ("fingerprint", Some("00:11"), "fingerprint"),
            ("encryption-key", None, "the encryption-key of off1-read is none"),
            ("encryption-key", Some("00:11"), "encryption-key"),
            ("username", Some("pve@pbs!bk"), "which writes there"),
            ("content", Some("images"), "does not take backup"),
            ("disable", Some("1"), "disabled"),
        ] {
            let mut entries = both();
            let counterpart = entries.get_mut("off1-read").unwrap();
            match value {
                Some(value) => counterpart.insert(field.to_owned(), value.to_owned()),
                None => counterpart.remove(field),
            };
            let found = of(&entries);
            assert_eq!(found.len(), 1, "{field} {value:?}: {found:?}");
            assert!(found[0].contains(words), "{found:?}");
        }
    }

    #[test]
    fn a_counterpart_that_is_missing_comes_with_its_line_and_a_file_storage_has_none() {
        let mut entries = both();
        entries.remove("off1-read");
        let line = "`pvesm add pbs off1-read --server 10.66.0.1 --datastore store1 --namespace hf --fingerprint 86:7e \
                    --encryption-key /etc/pve/priv/storage/off1.enc --content backup --username READER --password`";
        assert!(of(&entries)[0].contains(line), "{:?}", of(&entries));
        entries.insert("off1".to_owned(), entry(&[("type", "nfs")]));
        assert!(of(&entries)[0].contains("only an entry of a backup server"));
        entries.remove("off1");
        assert!(of(&entries)[0].contains("no storage off1"));
    }
}
