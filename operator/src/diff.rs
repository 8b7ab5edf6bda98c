//! Differences between two documents, by guest and field. Pure.

use std::collections::BTreeMap;

use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::desired::{BulkBackup, DesiredDocument, DesiredGuest, DesiredVolume, VolumeKind};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{GuestName, GuestUid, VolumeName};
use holdfast_protocol::protection::{BackupPolicy, Protection, compare};
use holdfast_protocol::report::{GuestReport, InForce as TakesEffect};
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// From which generation; 0 is no document.
    pub from: Generation,
    pub to: Generation,
    /// Settings of the document itself.
    pub settings: Vec<Change>,
    /// Guests that are new.
    pub added: Vec<DesiredGuest>,
    /// Guests that change.
    pub changed: Vec<ChangedGuest>,
    /// Guests that are no longer named: they become unmanaged and run on.
    pub unnamed: Vec<NamedGuest>,
    /// Guests that would be less protected: the agent holds that until an operator signs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weaker: Vec<WeakerGuest>,
    /// How many stay as they are.
    pub unchanged: usize,
}

/// A guest that would be less protected, or for which that is unknown.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct WeakerGuest {
    pub guest: NamedGuest,
    /// What is weaker, as text.
    pub what: Vec<String>,
}

/// A guest that changes.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ChangedGuest {
    /// Which, by its new name.
    pub guest: NamedGuest,
    /// What of it.
    pub changes: Vec<Change>,
}

/// A guest, by name and identity.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct NamedGuest {
    pub name: GuestName,
    pub uid: GuestUid,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Which, such as `size.memory_mib` or `volumes.db.size_gib`.
    pub field: String,
    /// Before; none where it did not exist.
    pub before: Option<String>,
    /// After; none where it will not exist.
    pub after: Option<String>,
    /// What a person should know of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<&'static str>,
}

impl Diff {
    /// Whether nothing changes but, perhaps, the number.
    pub const fn is_empty(&self) -> bool {
        self.settings.is_empty()
            && self.added.is_empty()
            && self.changed.is_empty()
            && self.unnamed.is_empty()
    }
}

/// What of each guest's protection is in force on its host, as it reported.
pub type InForce = BTreeMap<GuestUid, Protection>;

/// From the guests of a report.
pub fn in_force(guests: Option<&[GuestReport]>) -> InForce {
    let promised = |guest: &GuestReport| Some((guest.uid?, guest.protection.as_ref()?.in_force.clone()?));
    guests.unwrap_or_default().iter().filter_map(promised).collect()
}

/// Compares documents; what makes a guest less protected, with what is in force where that is known.
pub fn diff(before: Option<&DesiredDocument>, after: &DesiredDocument, in_force: &InForce) -> Diff {
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
    Diff {
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

fn changes(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<Change> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differs = |name: &&&String| before.get(name.as_str()) != after.get(name.as_str());
    let change = |name: &String| {
        let (old, new) = (before.get(name), after.get(name));
        Change {
            field: name.clone(),
            before: old.map(word),
            after: new.map(word),
            remark: remark(name, old, new),
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
fn volume_changes(before: &DesiredGuest, after: &DesiredGuest) -> Vec<Change> {
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

fn whole_volume(name: &VolumeName, before: Option<&DesiredVolume>, after: Option<&DesiredVolume>) -> Change {
    let gone = before.is_some() && after.is_none();
    Change {
        field: format!("volumes.{name}"),
        before: before.map(volume_words),
        after: after.map(volume_words),
        remark: gone.then_some("its data stays: nothing is destroyed without a signature"),
    }
}

/// A volume, as text for people.
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
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn order_and_generation_are_no_change() {
        let before = samples::document();
        let mut after = before.clone();
        after.generation = before.generation.next();
        after.guests.reverse();
        after.guests[0].volumes.reverse();
        let diff = diff(Some(&before), &after, &InForce::new());
        assert!(diff.is_empty());
        assert_eq!(diff.unchanged, before.guests.len());
    }

    #[test]
    fn each_change_is_named_in_both_directions() {
        let before = samples::document();
        let after = samples::changed_document();
        let forth = diff(Some(&before), &after, &InForce::new());
        let names = |diff: &Diff| -> Vec<String> {
            diff.changed
                .iter()
                .flat_map(|g| g.changes.iter().map(|c| format!("{}.{}", g.guest.name, c.field)))
                .collect()
        };
        let back = diff(Some(&after), &before, &InForce::new());
        assert_eq!(names(&forth), names(&back));
        assert_eq!((forth.added.len(), forth.unnamed.len()), (back.unnamed.len(), back.added.len()));
        assert!(forth.changed[0].changes.iter().any(|c| c.field == "size.memory_mib"));
    }

    #[test]
    fn a_policy_is_compared_under_its_name() {
        let before = samples::document();
        let mut after = before.clone();
        let schedule =
            serde_json::json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
        let tier = serde_json::json!({ "schedule": schedule, "retention": { "keep": { "last": 3 } } });
        let policy = serde_json::json!({ "name": "usual", "tiers": { "snapshot": tier } });
        after.policies.push(serde_json::from_value(policy).unwrap());
        after.guests[0].policy = Some("usual".parse().unwrap());
        let found = diff(Some(&before), &after, &InForce::new());
        let named: Vec<&str> = found.settings.iter().map(|change| change.field.as_str()).collect();
        assert!(named.contains(&"policies.usual.snapshot.retention.keep.last"), "{named:?}");
        assert_eq!(found.changed[0].changes[0].field, "policy");
        assert!(found.weaker.is_empty(), "a first promise");
        let back = diff(Some(&after), &before, &InForce::new());
        assert_eq!(back.weaker[0].what, ["snapshot tier: from on to off"]);
        assert_eq!((back.weaker.len(), back.weaker[0].guest.uid), (1, after.guests[0].uid));
    }

    #[test]
    fn a_shrinking_disk_and_a_dropped_volume_are_remarked() {
        let before = samples::document();
        let mut after = before.clone();
        after.guests[0].size.rootfs_gib = 1.try_into().unwrap();
        after.guests[0].volumes.clear();
        let remarks: Vec<_> = diff(Some(&before), &after, &InForce::new())
            .changed
            .remove(0)
            .changes
            .into_iter()
            .filter_map(|c| c.remark)
            .collect();
        assert!(remarks.iter().any(|remark| remark.contains("only grow")), "{remarks:?}");
        assert!(remarks.iter().any(|remark| remark.contains("data stays")), "{remarks:?}");
    }

    #[test]
    fn weaker_protection_is_compared_with_the_host() {
        let before = samples::document();
        let schedule =
            serde_json::json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
        let tier = serde_json::json!({ "schedule": schedule, "retention": { "keep": { "last": 3 } } });
        let promise: Protection =
            serde_json::from_value(serde_json::json!({ "tiers": { "snapshot": tier }, "volumes": [] }))
                .unwrap();
        // The document before it does not promise anything either; the host still keeps an earlier promise.
        let in_force = InForce::from([(before.guests[0].uid, promise)]);
        assert!(diff(Some(&before), &before, &InForce::new()).weaker.is_empty());
        let found = diff(Some(&before), &before, &in_force);
        assert_eq!(found.weaker[0].what, ["snapshot tier: from on to off"]);
    }

    #[test]
    fn a_volume_that_names_another_target_shows_and_long_values_are_cut() {
        let before = samples::document();
        let mut after = before.clone();
        let with_volume = after.guests.iter_mut().find(|guest| !guest.volumes.is_empty()).unwrap();
        with_volume.volumes[0].storage = Some("ssd2".parse().unwrap());
        let found = diff(Some(&before), &after, &InForce::new());
        let change = &found.changed[0].changes[0];
        assert!(change.field.ends_with(".storage"), "{change:?}");
        assert_eq!((change.before.as_deref(), change.after.as_deref()), (None, Some("ssd2")));
        let sealed = format!("{}end", "hf-sealed".repeat(100));
        assert_eq!(word(&Value::String(sealed)), "hf-sealedhf-sealedhf-sea…ealedend (903 characters)");
    }
}
