//! Differences between two documents, by guest and field.
//!
//! In: two documents, and the promises that are in force on the host. Out: what differs, as people read it, and which guests
//! would be less protected, by the rules of the agent ([`compare`]). Order and generation are no difference.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::desired::field::GuestField;
use crate::desired::{BulkBackup, DesiredDocument, DesiredGuest, DesiredVolume, VolumeKind};
use crate::generation::Generation;
use crate::id::{GuestName, GuestUid, VolumeName};
use crate::protection::{BackupPolicy, Protection, compare};
use crate::report::{GuestReport, InForce as TakesEffect};

/// What differs between two documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentDiff {
    /// From which generation; 0 is no document.
    pub from: Generation,
    /// To which generation.
    pub to: Generation,
    /// Settings of the document itself.
    pub settings: Vec<FieldChange>,
    /// Guests that are new.
    pub added: Vec<DesiredGuest>,
    /// Guests that change.
    pub changed: Vec<ChangedGuest>,
    /// Guests that are no longer named: they become unmanaged and run on.
    pub unnamed: Vec<NamedGuest>,
    /// Guests that would be less protected: the agent holds that until an operator signs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weaker: Vec<WeakerGuest>,
    /// How many stay as they are.
    pub unchanged: usize,
}

/// A guest that would be less protected, or for which that is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeakerGuest {
    /// Which.
    pub guest: NamedGuest,
    /// What is weaker, as text.
    pub what: Vec<String>,
}

/// A guest that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangedGuest {
    /// Which, by its new name.
    pub guest: NamedGuest,
    /// What of it.
    pub changes: Vec<FieldChange>,
}

/// A guest, by name and identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedGuest {
    /// Its name.
    pub name: GuestName,
    /// Its identity.
    pub uid: GuestUid,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldChange {
    /// Which, such as `size.memory_mib` or `volumes.db.size_gib`.
    pub field: String,
    /// Before; none where it did not exist.
    #[serde(default)]
    pub before: Option<String>,
    /// After; none where it will not exist.
    #[serde(default)]
    pub after: Option<String>,
    /// What a person should know of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

impl DocumentDiff {
    /// Of a document that cannot be read.
    #[must_use]
    pub const fn unknown(to: Generation) -> Self {
        Self {
            from: Generation::NONE,
            to,
            settings: Vec::new(),
            added: Vec::new(),
            changed: Vec::new(),
            unnamed: Vec::new(),
            weaker: Vec::new(),
            unchanged: 0,
        }
    }

    /// Whether nothing changes but, perhaps, the number.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.settings.is_empty()
            && self.added.is_empty()
            && self.changed.is_empty()
            && self.unnamed.is_empty()
    }
}

/// What of each guest's protection is in force on its host, as it reported.
pub type PromisesInForce = BTreeMap<GuestUid, Protection>;

/// From the guests of a report.
#[must_use]
pub fn promises_in_force(guests: Option<&[GuestReport]>) -> PromisesInForce {
    let promised = |guest: &GuestReport| Some((guest.uid?, guest.protection.as_ref()?.in_force.clone()?));
    guests.unwrap_or_default().iter().filter_map(promised).collect()
}

/// Compares documents; what makes a guest less protected, with what is in force where that is known.
#[must_use]
pub fn diff(
    before: Option<&DesiredDocument>,
    after: &DesiredDocument,
    in_force: &PromisesInForce,
) -> DocumentDiff {
    let mut old: BTreeMap<GuestUid, &DesiredGuest> =
        before.iter().flat_map(|before| &before.guests).map(|guest| (guest.uid, guest)).collect();
    let (mut added, mut changed, mut weaker, mut unchanged) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let policies = before.map_or(&[][..], |before| &before.policies);
    for guest in &after.guests {
        let earlier = old.remove(&guest.uid);
        let promised = in_force.get(&guest.uid).cloned();
        let promised = promised.or_else(|| Protection::of_document(earlier?, policies));
        weaker.extend(promised.and_then(|promised| less_protected(&promised, guest, &after.policies)));
        let Some(earlier) = earlier else {
            added.push(guest.clone());
            continue;
        };
        let mut changes = changes(&fields(earlier), &fields(guest));
        changes.extend(volume_changes(earlier, guest));
        if changes.is_empty() {
            unchanged += 1;
        } else {
            changed.push(ChangedGuest { guest: named(guest), changes });
        }
    }
    DocumentDiff {
        from: before.map_or(Generation::NONE, |before| before.generation),
        to: after.generation,
        settings: changes(&before.map(settings).unwrap_or_default(), &settings(after)),
        added,
        changed,
        unnamed: old.into_values().map(named).collect(),
        weaker,
        unchanged,
    }
}

/// The settings outside the guests, as flat fields; policies and storage targets under their names.
fn settings(document: &DesiredDocument) -> BTreeMap<String, Value> {
    let mut fields = BTreeMap::from([("poll_interval_s".to_owned(), document.poll_interval_s.get().into())]);
    fields.extend(
        document.observe_interval_s.map(|every| ("observe_interval_s".to_owned(), every.get().into())),
    );
    fields.extend(document.alarm_after_s.map(|after| ("alarm_after_s".to_owned(), after.get().into())));
    if let Some(levels) = document.levels.and_then(|levels| serde_json::to_value(levels).ok()) {
        flatten("levels", &levels, &mut fields);
    }
    if let Some(levels) = document.overcommit.and_then(|levels| serde_json::to_value(levels).ok()) {
        flatten("overcommit", &levels, &mut fields);
    }
    for limits in &document.customer_limits {
        if let Ok(Value::Object(mut whole)) = serde_json::to_value(limits) {
            whole.remove("customer");
            flatten(&format!("customer_limits.{}", limits.customer), &Value::Object(whole), &mut fields);
        }
    }
    for policy in &document.policies {
        // As for guests: what was read from JSON can be written as JSON.
        if let Ok(tiers) = serde_json::to_value(&policy.tiers) {
            flatten(&format!("policies.{}", policy.name), &tiers, &mut fields);
        }
    }
    for target in &document.storage {
        if let Ok(Value::Object(mut whole)) = serde_json::to_value(target) {
            whole.remove("name");
            flatten(&format!("storage.{}", target.name), &Value::Object(whole), &mut fields);
        }
    }
    fields
}

/// By the rules of the agent.
fn less_protected(
    promised: &Protection,
    guest: &DesiredGuest,
    new_policies: &[BackupPolicy],
) -> Option<WeakerGuest> {
    let wished =
        Protection::of_document(guest, new_policies).unwrap_or_else(|| Protection::of_volumes(guest));
    let what: Vec<String> = compare(promised, &wished).loosened.iter().map(ToString::to_string).collect();
    (!what.is_empty()).then(|| WeakerGuest { guest: named(guest), what })
}

fn named(guest: &DesiredGuest) -> NamedGuest {
    NamedGuest { name: guest.name.clone(), uid: guest.uid }
}

fn changes(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<FieldChange> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differs = |name: &&&String| before.get(name.as_str()) != after.get(name.as_str());
    let change = |name: &String| {
        let (old, new) = (before.get(name), after.get(name));
        FieldChange {
            field: name.clone(),
            before: old.map(word),
            after: new.map(word),
            remark: remark(name, old, new).map(str::to_owned),
        }
    };
    names.iter().filter(differs).map(|name| change(name)).collect()
}

fn remark(field: &str, before: Option<&Value>, after: Option<&Value>) -> Option<&'static str> {
    let number = |value: Option<&Value>| value.and_then(Value::as_u64);
    let shrinks = matches!((number(before), number(after)), (Some(before), Some(after)) if after < before);
    if field.ends_with("_gib") && shrinks {
        return Some("disks only grow: the agent will refuse this");
    }
    // Below a field there may be a value of its own, such as `network.mtu.bytes`.
    let is_of = |known: &GuestField| {
        let path = known.path();
        field == path || field.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
    };
    let known = GuestField::ALL.into_iter().find(is_of)?;
    match (known, TakesEffect::of_change(known), after) {
        (GuestField::CpuLimit | GuestField::CpuWeight, TakesEffect::Now, None) => {
            Some("the guest keeps what it has on the host")
        }
        (GuestField::CpuLimit | GuestField::CpuWeight, TakesEffect::Now, Some(_)) => {
            Some("a running guest has it at once")
        }
        (_, TakesEffect::NextStart, Some(_)) => Some("a running guest has it from its next start"),
        (_, TakesEffect::NextStart, None) | (_, TakesEffect::Now, _) => None,
    }
}

/// Sealed credentials are longer than anybody reads.
const WORD_CHARS_MAX: usize = 120;

fn word(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let chars = text.chars().count();
    if chars <= WORD_CHARS_MAX {
        return text;
    }
    let begin: String = text.chars().take(24).collect();
    let end: String = text.chars().skip(chars.saturating_sub(8)).collect();
    format!("{begin}…{end} ({chars} characters)")
}

/// A guest as flat fields, without its volumes.
fn fields(guest: &DesiredGuest) -> BTreeMap<String, Value> {
    let mut fields = BTreeMap::new();
    // A guest that was read from JSON can be written as JSON; if not, it has no fields, and every one shows as changed.
    if let Ok(Value::Object(mut whole)) = serde_json::to_value(guest) {
        whole.remove("uid");
        whole.remove("volumes");
        flatten("", &Value::Object(whole), &mut fields);
    }
    fields
}

/// Volumes are compared by name, so that their order does not matter; an added or removed volume is one change.
fn volume_changes(before: &DesiredGuest, after: &DesiredGuest) -> Vec<FieldChange> {
    let of = |guest: &DesiredGuest| -> BTreeMap<VolumeName, DesiredVolume> {
        guest.volumes.iter().map(|volume| (volume.name.clone(), volume.clone())).collect()
    };
    let (mut old, new) = (of(before), of(after));
    let mut found = Vec::new();
    for (name, volume) in &new {
        match old.remove(name) {
            Some(earlier) => found.extend(changes(&volume_fields(&earlier), &volume_fields(volume))),
            None => found.push(whole_volume(name, None, Some(volume))),
        }
    }
    found.extend(old.iter().map(|(name, volume)| whole_volume(name, Some(volume), None)));
    found
}

fn volume_fields(volume: &DesiredVolume) -> BTreeMap<String, Value> {
    let mut fields = BTreeMap::new();
    // As for guests: what was read from JSON can be written as JSON.
    if let Ok(Value::Object(mut whole)) = serde_json::to_value(volume) {
        whole.remove("name");
        whole.insert("kind".to_owned(), kind_words(&volume.kind).into());
        flatten(&format!("volumes.{}", volume.name), &Value::Object(whole), &mut fields);
    }
    fields
}

fn whole_volume(
    name: &VolumeName,
    before: Option<&DesiredVolume>,
    after: Option<&DesiredVolume>,
) -> FieldChange {
    let gone = before.is_some() && after.is_none();
    FieldChange {
        field: format!("volumes.{name}"),
        before: before.map(volume_words),
        after: after.map(volume_words),
        remark: gone.then(|| "its data stays: nothing is destroyed without a signature".to_owned()),
    }
}

/// A volume, as text for people.
#[must_use]
pub fn volume_words(volume: &DesiredVolume) -> String {
    format!("{}, {}, {}", volume.mount, volume.size_gib, kind_words(&volume.kind))
}

fn kind_words(kind: &VolumeKind) -> String {
    match kind {
        VolumeKind::Hot => "hot, backed up with the guest".to_owned(),
        VolumeKind::Bulk(BulkBackup::BackupTo(target)) => format!("bulk, backed up to {target}"),
        VolumeKind::Bulk(BulkBackup::None(why)) => format!("bulk, NOT backed up: {}", why.as_str()),
    }
}

fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
    let Value::Object(map) = value else {
        into.insert(path.to_owned(), value.clone());
        return;
    };
    for (key, inner) in map {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        flatten(&path, inner, into);
    }
}

#[cfg(test)]
mod tests;
