//! Which rights a change of a container's options needs, option by option.
//!
//! In: old and new values, deletions, the caller. Out: nothing or the first denial. The order within one call is by name. The real code
//! walks a hash, so it may name any of several missing rights first. `root@pam` (the user, not its tokens) is not checked.
use std::collections::{BTreeMap, BTreeSet};

use super::config::Section;
use super::options::{Mount, Origin, is_volume_key, numbered};
use crate::access::credential::Caller;
use crate::access::evaluate::Judge;
use crate::fail::{Fallible, Refusal};
use crate::node::World;
use crate::schema::property::{self, Properties};
use crate::schema::table::Table;

/// A question about one guest.
#[derive(Debug, Clone, Copy)]
pub struct Rights<'a> {
    pub world: &'a World,
    /// The call table.
    pub table: &'a Table,
    pub who: &'a Caller,
    /// About which guest.
    pub vmid: u32,
    /// The pool it is to be put into.
    pub pool: Option<&'a str>,
    /// Its values before, when it exists.
    pub old: Option<&'a Section>,
    /// Whether it is (to be) unprivileged.
    pub unprivileged: bool,
}

impl Rights<'_> {
    fn judge(&self) -> Judge<'_> {
        self.world.judge(self.who)
    }

    fn need(&self, privilege: &str) -> Fallible<()> {
        self.judge().need_guest(self.vmid, self.pool, &[privilege])
    }

    /// May these options be set?
    ///
    /// # Errors
    /// The denial.
    pub fn set(&self, new: &BTreeMap<String, String>) -> Fallible<()> {
        if self.who.is_root() {
            return Ok(());
        }
        new.iter().try_for_each(|(option, value)| self.one(option, Some(value)))
    }

    /// May these options be deleted?
    ///
    /// # Errors
    /// The denial.
    pub fn delete(&self, options: &[String]) -> Fallible<()> {
        if self.who.is_root() {
            return Ok(());
        }
        options.iter().try_for_each(|option| self.one(option, None))
    }

    fn one(&self, option: &str, new: Option<&str>) -> Fallible<()> {
        match option {
            "cores" | "cpuunits" | "cpulimit" => self.need("VM.Config.CPU"),
            "memory" | "swap" => self.need("VM.Config.Memory"),
            "nameserver" | "searchdomain" | "hostname" => self.need("VM.Config.Network"),
            "features" => self.features(new),
            "hookscript" => Err(Refusal::denied("changing the hookscript is only allowed for root@pam")),
            "tags" => self.tags(new.unwrap_or_default()),
            _ if is_volume_key(option) => self.volume(option, new),
            _ if numbered(option, "net").is_some() => self.net(option, new),
            _ if numbered(option, "dev").is_some() => {
                Err(Refusal::denied("configuring device passthrough is only allowed for root@pam"))
            }
            _ => self.need("VM.Config.Options"),
        }
    }

    fn volume(&self, option: &str, new: Option<&str>) -> Fallible<()> {
        self.need("VM.Config.Disk")?;
        let Some(value) = new else { return Ok(()) };
        let mount = Mount::parse_or_die(self.table, option, value)?;
        if mount.origin() != Origin::Volume {
            return Err(Refusal::denied(&format!(
                "mount point type {} is only allowed for root@pam",
                mount.origin().word()
            )));
        }
        match mount.goal() {
            Some((storage, _)) => {
                self.judge().need(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])
            }
            // A bare number takes the default storage, which is checked later.
            None if mount.volume().parse::<f64>().is_ok() => Ok(()),
            None => {
                volume_access(self.world, &self.judge(), Some(self.vmid), mount.volume(), Some("rootdir"))
            }
        }
    }

    fn net(&self, option: &str, new: Option<&str>) -> Fallible<()> {
        self.need("VM.Config.Network")?;
        let old = self.old.and_then(|section| section.get(option));
        [old, new].into_iter().flatten().try_for_each(|value| bridge_access(self.table, &self.judge(), value))
    }

    fn features(&self, new: Option<&str>) -> Fallible<()> {
        if !self.unprivileged {
            return Err(Refusal::denied(
                "changing feature flags for privileged container is only allowed for root@pam",
            ));
        }
        let parse = |text: Option<&str>| -> Properties {
            let format = self.table.format("features");
            text.zip(format)
                .and_then(|(text, format)| property::parse(self.table, format, text).ok())
                .unwrap_or_default()
        };
        let (old, new_flags) = (parse(self.old.and_then(|section| section.get("features"))), parse(new));
        let (nesting, other) = if new.is_some() && !old.is_empty() {
            let names: BTreeSet<&String> = old.keys().chain(new_flags.keys()).collect();
            let changed: Vec<&&String> =
                names.iter().filter(|name| old.get(**name) != new_flags.get(**name)).collect();
            (changed.iter().any(|name| **name == "nesting"), changed.iter().any(|name| **name != "nesting"))
        } else {
            // Setting where nothing was, or deleting: only nesting alone is the small change.
            let held = if new.is_some() { &new_flags } else { &old };
            let only = held.len() == 1 && held.contains_key("nesting");
            (only, !only && !held.is_empty())
        };
        if other {
            return Err(Refusal::denied(
                "changing feature flags (except nesting) is only allowed for root@pam",
            ));
        }
        if nesting { self.need("VM.Allocate") } else { Ok(()) }
    }

    /// Tags need a right on the guest itself, independent of its pool.
    fn tags(&self, new: &str) -> Fallible<()> {
        let judge = self.judge();
        let old = self.old.and_then(|section| section.get("tags")).unwrap_or_default();
        let split =
            |text: &str| crate::schema::format::split_list(text).map(str::to_owned).collect::<BTreeSet<_>>();
        if split(old) == split(new) || judge.has("/", &["Sys.Modify"]) {
            return Ok(());
        }
        judge.need(&format!("/vms/{}", self.vmid), &["VM.Config.Options"])
    }
}

/// May the caller plug something into this bridge?
///
/// # Errors
/// The denial.
pub fn bridge_access(table: &Table, judge: &Judge<'_>, value: &str) -> Fallible<()> {
    if judge.who == "root@pam" {
        return Ok(());
    }
    let net =
        table.format("net").and_then(|format| property::parse(table, format, value).ok()).unwrap_or_default();
    let Some(bridge) = net.get("bridge") else { return Ok(()) };
    let path = format!("/sdn/zones/localnetwork/{bridge}");
    if let Some(tag) = net.get("tag") {
        return judge.need(&format!("{path}/{tag}"), &["SDN.Use"]);
    }
    if let Some(trunks) = net.get("trunks") {
        return trunks.split(';').try_for_each(|tag| judge.need(&format!("{path}/{tag}"), &["SDN.Use"]));
    }
    judge.need(&path, &["SDN.Use"])
}

/// May the caller use this volume, as a `content` if that is given?
///
/// # Errors
/// The denial, or the sentence for a volume of the wrong kind.
pub fn volume_access(
    world: &World,
    judge: &Judge<'_>,
    vmid: Option<u32>,
    volid: &str,
    content: Option<&str>,
) -> Fallible<()> {
    use crate::storage::volume::VolumeName;
    if !volid.contains(':') || volid.starts_with('/') {
        let refused = Refusal::die(
            "Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 651.",
        );
        return if judge.who == "root@pam" { Ok(()) } else { Err(refused) };
    }
    let store = world.store();
    let at = store.locate(volid)?;
    if let Some(wanted) = content.filter(|wanted| *wanted != at.name.content()) {
        return Err(Refusal::die(format!(
            "unable to use volume {volid} - content type needs to be '{wanted}'"
        )));
    }
    let path = format!("/storage/{}", at.storage);
    if judge.has(&path, &["Datastore.Allocate"]) {
        return Ok(());
    }
    let owner = at.name.owner();
    match &at.name {
        VolumeName::File { kind, .. } if kind == "iso" || kind == "vztmpl" => {
            judge.need_any(&path, &["Datastore.AllocateSpace", "Datastore.Audit"])
        }
        _ if owner.is_some() && owner == vmid => Ok(()),
        VolumeName::File { kind, .. } if kind == "backup" && owner.is_some() => {
            judge.need(&path, &["Datastore.AllocateSpace"])?;
            judge.need(&format!("/vms/{}", owner.unwrap_or_default()), &["VM.Backup"])
        }
        VolumeName::Image { vmid, .. } => {
            judge.need(&path, &["Datastore.Audit"])?;
            judge.need(&format!("/vms/{vmid}"), &["VM.Config.Disk"])
        }
        VolumeName::File { .. } => Err(Refusal::die(format!("missing privileges to access {volid}"))),
    }
}
