//! The check of a guest that is not ours, before adoption.
//!
//! What comes in: its configuration, line by line, and the bridge that the agent was given. What goes out: nothing, or the
//! line for which no signature helps. Allowed is the same closed list as for archives, with volumes. Deliberately absent:
//! who it is; that is compared with what an operator signed for.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::BridgeName;

use super::archive::hostile;

/// Why a guest is not taken over, whatever signature there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// A line that is not allowed.
    #[error("no signature takes it over with its line {line:?} ({why}): take the line out on the node first")]
    Line { line: String, why: &'static str },
    /// Its root would be root outside.
    #[error("no signature takes a privileged guest over: make it again as an unprivileged one")]
    Privileged,
    /// It is half a guest.
    #[error("it has no root disk, so it is no whole guest: nothing is taken over")]
    NoRootfs,
    /// It is on a network that is not the agent's.
    #[error("it is on {found}, and the agent was given the bridge {given}: no signature widens that")]
    Bridge {
        /// Where it is.
        found: String,
        /// What was given.
        given: BridgeName,
    },
}

/// Judges its lines, and the raw ones among them.
///
/// # Errors
/// The first line for which it is refused.
pub fn judge(keys: &BTreeMap<String, String>, raw: &[String]) -> Result<(), NotTaken> {
    let refuse = |line: String, why| Err(NotTaken::Line { line, why });
    if let Some(line) = raw.iter().find(|line| !line.starts_with("lxc.environment.runtime")) {
        return refuse(line.clone(), "raw lxc lines can undo every other rule");
    }
    if keys.get("unprivileged").map(String::as_str) != Some("1") {
        return Err(NotTaken::Privileged);
    }
    for (key, value) in keys {
        if let Some(why) = hostile(key, value) {
            return refuse(format!("{key}: {value}"), why);
        }
    }
    if keys.contains_key("rootfs") { Ok(()) } else { Err(NotTaken::NoRootfs) }
}

/// Judges where it is plugged in.
///
/// # Errors
/// The first bridge that is not the agent's.
pub fn judge_bridges(bridges: &BTreeSet<String>, given: &BridgeName) -> Result<(), NotTaken> {
    match bridges.iter().find(|found| found.as_str() != given.as_str()) {
        Some(found) => Err(NotTaken::Bridge { found: found.clone(), given: given.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(changes: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = [
            ("arch", "amd64"),
            ("features", "nesting=1"),
            ("mp0", "tank:400/vm-400-disk-1.raw"),
            ("net0", "name=eth0,bridge=vmbr0"),
            ("ostype", "debian"),
            ("rootfs", "tank:400/vm-400-disk-0.raw"),
            ("unprivileged", "1"),
        ];
        let all = own.iter().chain(changes).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        all.collect()
    }

    #[test]
    fn what_no_signature_allows() {
        assert_eq!(judge(&lines(&[]), &[]), Ok(()));
        assert_eq!(judge(&lines(&[]), &["lxc.environment.runtime: A=b".to_owned()]), Ok(()));
        for (key, value) in [
            ("hookscript", "local:snippets/x.sh"),
            ("mp1", "/etc,mp=/etc"),
            ("rootfs", "/srv/root"),
            ("dev0", "/dev/kvm"),
            ("features", "nesting=1,mount=nfs"),
            ("features", "fuse=1"),
            ("entrypoint", "/bin/sh"),
            ("template", "1"),
            ("lxc.apparmor.profile", "unconfined"),
            ("newer", "key"),
        ] {
            let refused = judge(&lines(&[(key, value)]), &[]).unwrap_err();
            assert!(
                matches!(&refused, NotTaken::Line { line, .. } if line.starts_with(key)),
                "{key}: {refused}"
            );
        }
        assert_eq!(judge(&lines(&[("unprivileged", "0")]), &[]), Err(NotTaken::Privileged));
        assert!(judge(&lines(&[]), &["lxc.cap.drop: ".to_owned()]).is_err());
        let mut none = lines(&[]);
        none.remove("rootfs");
        assert_eq!(judge(&none, &[]), Err(NotTaken::NoRootfs));
        none.remove("unprivileged");
        assert_eq!(judge(&none, &[]), Err(NotTaken::Privileged), "not said is not so");
    }

    #[test]
    fn one_bridge_and_no_other() {
        let given: BridgeName = "vmbr0".parse().unwrap();
        let on = |bridges: &[&str]| bridges.iter().map(|one| (*one).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(judge_bridges(&on(&[]), &given), Ok(()));
        assert_eq!(judge_bridges(&on(&["vmbr0"]), &given), Ok(()));
        assert!(judge_bridges(&on(&["vmbr0", "vmbr1"]), &given).is_err());
        assert!(
            judge_bridges(&on(&[""]), &given).is_err(),
            "a network without a bridge is another's as well"
        );
    }
}
