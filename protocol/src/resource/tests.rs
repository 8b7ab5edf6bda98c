//! Tests of parts against the whole document.

use serde_json::{Value, json};

use super::change::{create, remove, replace};
use super::effects::{ChangeEffect, EffectKind, effects};
use super::merge::merged;
use super::on_host::still_on_host;
use super::part::{DocumentPart, GuestRef, PartContent, PartKind};
use super::requests::{ChangeAnswer, ChangePreview, PartChanged};
use super::samples;
use super::signatures::{Certainty, signatures};
use super::users::users;
use super::{PartError, diff, promises_in_force};
use crate::code::ErrorCode;
use crate::desired::{Desired, DesiredDocument};
use crate::job::act::Verb;
use crate::report::Sections;

/// A pseudo-random sequence, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn small(&mut self, bound: u32) -> u32 {
        u32::try_from(self.below(u64::from(bound))).unwrap()
    }
}

fn some_document(dice: &mut Dice) -> Value {
    let policies: Vec<Value> = (0..dice.small(3)).map(|n| samples::policy(&format!("p{n}"), 1 + n)).collect();
    let targets: Vec<Value> = (0..dice.small(3)).map(|n| samples::target(&format!("t{n}"), n)).collect();
    let guests: Vec<Value> = (0..dice.small(4))
        .map(|n| {
            let mut guest = samples::guest(n, 256 * (1 + dice.small(4)));
            if !policies.is_empty() && dice.below(2) == 0 {
                guest["policy"] = policies[0]["name"].clone();
            }
            guest
        })
        .collect();
    samples::whole(3, &guests, &policies, &targets)
}

/// The list of a kind in a document, and the field by which its items are known.
fn list_of(kind: PartKind) -> (&'static str, &'static str) {
    match kind {
        PartKind::Guest => ("/guests", "uid"),
        PartKind::Volume => ("/guests/0/volumes", "name"),
        PartKind::StorageTarget => ("/storage", "name"),
        PartKind::Policy => ("/policies", "name"),
    }
}

fn content(kind: PartKind, n: u32, size: u32) -> Value {
    match kind {
        PartKind::Guest => samples::guest(n, 256 * (1 + size)),
        PartKind::Volume => {
            let name = ["db", "media", "new", "other"][n as usize];
            json!({ "name": name, "mount": format!("/srv/{name}"), "size_gib": 10 + size, "kind": "hot" })
        }
        PartKind::StorageTarget => samples::target(&format!("t{n}"), 10 + n),
        PartKind::Policy => samples::policy(&format!("p{n}"), 1 + size),
    }
}

fn part_of(kind: PartKind, content: &Value) -> DocumentPart {
    let name = content["name"].as_str().unwrap();
    match kind {
        PartKind::Guest => {
            DocumentPart::Guest(GuestRef::Uid(content["uid"].as_str().unwrap().parse().unwrap()))
        }
        PartKind::Volume => {
            DocumentPart::Volume(GuestRef::Uid(samples::uid(0).parse().unwrap()), name.parse().unwrap())
        }
        PartKind::StorageTarget => DocumentPart::StorageTarget(name.parse().unwrap()),
        PartKind::Policy => DocumentPart::Policy(name.parse().unwrap()),
    }
}

/// What an editor would make of the whole document's JSON.
fn edited(mut document: Value, kind: PartKind, content: &Value, edit: u64) -> Option<Value> {
    let (pointer, key) = list_of(kind);
    let list = document.pointer_mut(pointer)?.as_array_mut()?;
    let at = list.iter().position(|one| one[key] == content[key]);
    match (edit, at) {
        (0, None) => list.push(content.clone()),
        (1, Some(at)) => list[at] = content.clone(),
        (2, Some(at)) => drop(list.remove(at)),
        (3, Some(at)) => list[at] = merged(list[at].clone(), content),
        _ => return None,
    }
    Some(document)
}

fn by_parts(
    document: &DesiredDocument,
    kind: PartKind,
    content: &Value,
    edit: u64,
) -> Result<DesiredDocument, PartError> {
    let part = part_of(kind, content);
    let read = |value: &Value| PartContent::parse(kind, value).unwrap();
    let within = GuestRef::Uid(samples::uid(0).parse().unwrap());
    match edit {
        0 => create(document, Some(&within), read(content)).map(|(next, made)| {
            assert_eq!(made, part);
            next
        }),
        1 => replace(document, &part, read(content)),
        2 => remove(document, &part),
        _ => {
            let absent = || PartError::Absent { part: part.to_string() };
            let held = part.read(document).ok_or_else(absent)?;
            replace(document, &part, read(&merged(serde_json::to_value(held).unwrap(), content)))
        }
    }
}

#[test]
fn a_change_of_a_part_is_the_change_of_the_whole_document() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut same, mut refused) = (0, 0);
    for round in 0..800 {
        let whole = some_document(&mut dice);
        let document = samples::read(whole.clone());
        let kind = [PartKind::Guest, PartKind::Volume, PartKind::StorageTarget, PartKind::Policy]
            [usize::try_from(dice.below(4)).unwrap()];
        let content = content(kind, dice.small(4), dice.small(4));
        let edit = dice.below(4);
        let changed = by_parts(&document, kind, &content, edit);
        match (changed, edited(whole.clone(), kind, &content, edit)) {
            (Ok(next), Some(expected)) => {
                assert_eq!(next, samples::read(expected.clone()), "round {round}: {edit} {kind:?} {content}");
                // The same rules hold for both.
                let by_part = Desired::check(next).map(|desired| desired.numbered());
                let by_whole =
                    Desired::parse(expected.to_string().as_bytes()).map(|desired| desired.numbered());
                assert_eq!(by_part.map_err(|error| error.code()), by_whole.map_err(|error| error.code()));
                same += 1;
            }
            (Err(error), expected) => {
                // A refusal is for what is not there, is there already, or is in use; then nothing was made of it.
                let is_user = matches!(error, PartError::InUse { .. });
                assert_eq!(is_user, expected.is_some(), "round {round}: {error}");
                assert_eq!(document, samples::read(whole));
                refused += 1;
            }
            (Ok(_), None) => panic!("round {round}: {edit} {kind:?} {content} was made"),
        }
    }
    assert!(same > 100 && refused > 100, "{same} made, {refused} refused");
}

#[test]
fn bad_content_is_refused_with_its_code_and_path() {
    let cases: [(PartKind, Value, ErrorCode, &str); 12] = [
        (PartKind::Guest, json!({}), ErrorCode::Missing, "."),
        (PartKind::Guest, json!([]), ErrorCode::Range, ""),
        (PartKind::Guest, json!("web-1"), ErrorCode::Range, "."),
        (
            PartKind::Guest,
            merged(samples::guest(1, 512), &json!({ "features": "keyctl=1" })),
            ErrorCode::UnknownField,
            "features",
        ),
        (
            PartKind::Guest,
            merged(samples::guest(1, 512), &json!({ "size": { "memory_mib": 0 } })),
            ErrorCode::Range,
            "size.memory_mib",
        ),
        (
            PartKind::Guest,
            merged(samples::guest(1, 512), &json!({ "size": { "cores": "2" } })),
            ErrorCode::Range,
            "size.cores",
        ),
        (
            PartKind::Guest,
            merged(samples::guest(1, 512), &json!({ "run": "paused" })),
            ErrorCode::Version,
            "run",
        ),
        (
            PartKind::Guest,
            merged(samples::guest(1, 512), &json!({ "customer": null })),
            ErrorCode::Missing,
            ".",
        ),
        (
            PartKind::Volume,
            json!({ "name": "db", "mount": "srv", "size_gib": 1, "kind": "hot" }),
            ErrorCode::Range,
            "mount",
        ),
        (PartKind::Policy, json!({ "name": "A", "tiers": {} }), ErrorCode::Range, "name"),
        (PartKind::Policy, json!({ "name": "a" }), ErrorCode::Missing, "."),
        (
            PartKind::StorageTarget,
            merged(samples::target("nas", 1), &json!({ "role": "any" })),
            ErrorCode::Version,
            "role",
        ),
    ];
    for (kind, value, code, path) in cases {
        let error = PartContent::parse(kind, &value).unwrap_err();
        assert_eq!((error.code(), error.path().unwrap_or_default()), (code, path), "{value}");
    }
}

#[test]
fn a_part_keeps_its_identity() {
    let document = samples::document();
    let guest = DocumentPart::Guest("web-1".parse().unwrap());
    let other = PartContent::parse(PartKind::Guest, &samples::guest(2, 512)).unwrap();
    assert_eq!(replace(&document, &guest, other.clone()).unwrap_err().code(), ErrorCode::Range);
    let policy = DocumentPart::Policy("usual".parse().unwrap());
    let renamed = PartContent::parse(PartKind::Policy, &samples::policy("other", 1)).unwrap();
    assert_eq!(replace(&document, &policy, renamed).unwrap_err().path(), Some("name"));
    assert_eq!(replace(&document, &policy, other).unwrap_err().code(), ErrorCode::Range, "another kind");
    // A guest may get another name.
    let mut renamed = samples::guest(1, 512);
    renamed["name"] = json!("front");
    let next = replace(&document, &guest, PartContent::parse(PartKind::Guest, &renamed).unwrap()).unwrap();
    assert_eq!(next.guests[0].name.as_str(), "front");
    let taken =
        PartContent::parse(PartKind::Guest, &merged(samples::guest(9, 512), &json!({ "name": "web-1" })));
    assert_eq!(create(&document, None, taken.unwrap()).unwrap_err().code(), ErrorCode::NameTaken);
}

#[test]
fn what_is_in_use_names_its_users() {
    let mut document = samples::whole(
        7,
        &[samples::guest(1, 512)],
        &[samples::policy("usual", 3)],
        &[samples::target("nas", 1)],
    );
    document["guests"][0]["policy"] = json!("usual");
    document["guests"][0]["volumes"][1]["kind"] = json!({ "bulk": { "backup_to": "nas" } });
    document["guests"][0]["volumes"][0]["storage"] = json!("nas");
    document["guests"][0]["storage"] = json!("nas");
    let document = samples::read(document);
    let named = |part: &DocumentPart| -> Vec<String> {
        users(part, &document).iter().map(ToString::to_string).collect()
    };
    let nas = DocumentPart::StorageTarget("nas".parse().unwrap());
    assert_eq!(
        named(&nas),
        [
            "policy usual (tiers.local.target)",
            "guest web-1 (storage)",
            "guest web-1 (volumes.db.storage)",
            "guest web-1 (volumes.media.kind)"
        ]
    );
    let usual = DocumentPart::Policy("usual".parse().unwrap());
    assert_eq!(named(&usual), ["guest web-1 (policy)"]);
    for part in [nas, usual] {
        let error = remove(&document, &part).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InUse);
        assert!(error.to_string().contains("guest web-1 ("), "{error}");
    }
}

#[test]
fn what_the_host_still_has_names_the_commands() {
    let (document, made) = (samples::document(), samples::made());
    let still = |part: &DocumentPart, sections: &Sections| still_on_host(part, &document, ("box7", sections));
    let guest = DocumentPart::Guest("web-1".parse().unwrap());
    let words = still(&guest, &made).unwrap().to_string();
    assert!(
        words.contains("VMID 301") && words.contains("`holdfast sign box7 web-1` destroys it"),
        "{words}"
    );
    let volume = DocumentPart::Volume("web-1".parse().unwrap(), "db".parse().unwrap());
    assert_eq!(still(&volume, &made).unwrap().code(), ErrorCode::OnHost);
    let nas = DocumentPart::StorageTarget("nas".parse().unwrap());
    assert!(still(&nas, &made).unwrap().to_string().contains("state=decommissioned"));
    let usb = DocumentPart::StorageTarget("usb".parse().unwrap());
    let policy = DocumentPart::Policy("usual".parse().unwrap());
    for free in [&usb, &policy] {
        assert_eq!(still(free, &made), None, "{free}");
    }
    for free in [&guest, &volume, &nas] {
        assert_eq!(still(free, &Sections::default()), None, "{free} of a host that never reported it");
    }
    let absent = json!({ "guests": [{ "uid": samples::uid(1), "name": "web-1", "status": "absent", "run": "unknown" }] });
    assert_eq!(still(&guest, &samples::sections(absent)), None);
}

fn change(edit: impl FnOnce(&mut Value)) -> (DesiredDocument, DesiredDocument) {
    let before = samples::document();
    let mut after = serde_json::to_value(&before).unwrap();
    after["generation"] = json!(8);
    edit(&mut after);
    (before, samples::read(after))
}

fn judged(edit: impl FnOnce(&mut Value), sections: &Sections) -> Vec<ChangeEffect> {
    let (before, after) = change(edit);
    let found = diff(Some(&before), &after, &promises_in_force(None));
    effects(Some(&before), &after, &found, sections)
}

#[test]
fn effects_depend_on_what_the_host_reports() {
    let made = samples::made();
    let kinds =
        |effects: &[ChangeEffect]| -> Vec<EffectKind> { effects.iter().map(|one| one.effect).collect() };
    let bigger = |after: &mut Value| {
        after["guests"][0]["size"] =
            json!({ "cores": 4, "memory_mib": 1024, "swap_mib": 0, "rootfs_gib": 16 });
    };
    let found = judged(bigger, &made);
    assert_eq!(kinds(&found), [EffectKind::Reconfigure, EffectKind::Grow]);
    assert_eq!(found[0].because, ["size.cores: 2 -> 4", "size.memory_mib: 512 -> 1024"]);
    assert_eq!(
        kinds(&judged(bigger, &Sections::default())),
        [EffectKind::ProvisionChanged],
        "it is not made yet"
    );
    let mtu =
        |n: usize| move |after: &mut Value| after["guests"][n]["network"]["mtu"] = json!({ "bytes": 1400 });
    assert_eq!(kinds(&judged(mtu(0), &made)), [EffectKind::AtNextStart], "it runs");
    assert_eq!(kinds(&judged(mtu(1), &made)), [EffectKind::Reconfigure], "it is stopped");
    let gone = |after: &mut Value| drop(after["guests"].as_array_mut().unwrap().remove(1));
    assert_eq!(kinds(&judged(gone, &made)), [EffectKind::Unmanage]);
    assert_eq!(kinds(&judged(gone, &Sections::default())), [EffectKind::NotMade]);
    let new = |after: &mut Value| after["guests"].as_array_mut().unwrap().push(samples::guest(3, 512));
    assert_eq!(kinds(&judged(new, &made)), [EffectKind::Provision]);
    let let_go = |after: &mut Value| after["storage"][1]["state"] = json!("disconnected");
    assert_eq!(kinds(&judged(let_go, &made)), [EffectKind::ReleaseStorage]);
}

#[test]
fn what_waits_for_a_signature_is_named() {
    let made = samples::made();
    let needs = |edit: &dyn Fn(&mut Value)| -> Vec<(Verb, Certainty)> {
        let (before, after) = change(edit);
        let found = diff(Some(&before), &after, &promises_in_force(None));
        let all = signatures(Some(&before), &after, &found, &made);
        all.iter().map(|need| (need.verb, need.certainty)).collect()
    };
    let fewer = |after: &mut Value| after["policies"][0] = samples::policy("usual", 2);
    assert_eq!(needs(&fewer), [(Verb::LoosenPolicy, Certainty::Certain)]);
    let more = |after: &mut Value| after["policies"][0] = samples::policy("usual", 20);
    assert_eq!(needs(&more), []);
    let gone = |after: &mut Value| drop(after["guests"].as_array_mut().unwrap().remove(1));
    assert_eq!(needs(&gone), [(Verb::DestroyGuest, Certainty::Certain)]);
    let build = |after: &mut Value| {
        after["guests"][0]["controller"] = json!({ "version": "2026.11.1", "sha256": "ab".repeat(32) });
    };
    assert_eq!(needs(&build), [(Verb::ApproveRelease, Certainty::Possible)]);
    let new = |after: &mut Value| after["storage"].as_array_mut().unwrap().push(samples::target("disk", 3));
    assert_eq!(needs(&new), [(Verb::AttachStorage, Certainty::Certain)]);
    let let_go = |after: &mut Value| after["storage"][0]["state"] = json!("decommissioned");
    assert_eq!(needs(&let_go), [(Verb::DetachStorage, Certainty::Certain)]);
    assert_eq!(needs(&|_: &mut Value| ()), []);
}

#[test]
fn an_answer_is_read_as_what_it_is() {
    let (before, after) = change(|after| after["guests"][0]["size"]["memory_mib"] = json!(1024));
    let preview = ChangePreview::of(&samples::detail(samples::made()), Some(&before), &after);
    let answer: ChangeAnswer<PartChanged> = ChangeAnswer::Preview(Box::new(preview));
    let back: ChangeAnswer<PartChanged> =
        serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
    assert_eq!(back, answer);
    let content = DocumentPart::Guest("web-1".parse().unwrap()).read(&after);
    let changed = PartChanged {
        kind: PartKind::Guest,
        name: "web-1".to_owned(),
        generation: after.generation,
        author: "ada".parse().unwrap(),
        reason: "more memory".to_owned().try_into().unwrap(),
        put_at: "2026-11-21T02:00:00Z".parse().unwrap(),
        value: content,
    };
    let answer = ChangeAnswer::Made(changed);
    let back: ChangeAnswer<PartChanged> =
        serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
    assert_eq!(back, answer);
}
