//! What must hold of the pages that change something.

use holdfast_protocol::desired::{Desired, DesiredDocument};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::operator::{DesiredVersion, EnrollmentRequestView, InviteCreated};
use holdfast_protocol::resource::diff::PromisesInForce;
use holdfast_protocol::resource::requests::ChangePreview;
use holdfast_protocol::resource::{PartKind, diff};
use serde_json::{Value, json};

use crate::conflict::{self, Conflict};
use crate::document::{self, Editor, EditorProblem, MayChange, Newest, Version};
use crate::edit::{self, Edit, Novelty, VolumeLink};
use crate::enrollment::{self, ApprovalFields};
use crate::first_start::FirstStart;
use crate::form::merge::Collision;
use crate::form::name_choices::KnownNames;
use crate::form::parts::form_of;
use crate::form::problem::Problem;
use crate::form::values::Values;
use crate::frame::Frame;
use crate::removal::{self, Removal, RemovalField, RemovalProblem};
use crate::review::{self, Review, WayBack};
use crate::start;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn document(generation: u64, memory: u32) -> DesiredDocument {
    let guest = json!({
        "uid": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "name": "web-1", "customer": "acme", "run": "running",
        "golden": "2026.11.1", "size": { "cores": 2, "memory_mib": memory, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": "10.66.0.11/24" },
        "volumes": [{ "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot" }]
    });
    let document = read(
        json!({ "schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 30, "guests": [guest] }),
    );
    Desired::check(document).unwrap().document().clone()
}

fn version(hostile: &str) -> DesiredVersion {
    read(json!({
        "generation": 7, "content": "ab", "author": "ada", "reason": hostile, "put_at": "2026-11-21T02:00:00Z",
        "document": format!("{{\n  \"x\": {}\n}}\n", json!(hostile))
    }))
}

fn preview(hostile: &str) -> ChangePreview {
    let changed = diff(Some(&document(7, 512)), &document(8, 1024), &PromisesInForce::new());
    let guest = json!({ "name": "web-1", "uid": "018f3c1e-6b1f-7c1d-9d0a-000000000001" });
    let mut changed = serde_json::to_value(changed).unwrap();
    changed["weaker"] = json!([{ "guest": guest, "what": [hostile] }]);
    changed["settings"] =
        json!([{ "field": hostile, "before": hostile, "after": hostile, "remark": hostile }]);
    read(json!({
        "host": "box7", "diff": changed, "reported_at": "2026-11-21T02:00:00Z", "not_judged": [hostile],
        "effects": [{ "guest": guest, "effect": "reconfigure", "because": [hostile] }],
        "signatures": [{ "verb": "loosen_policy", "guest": guest, "certainty": "possible", "why": hostile }]
    }))
}

/// Every page, with this text in each place where a text can be.
pub fn pages(frame: &Frame, hostile: &'static str) -> Vec<(&'static str, String)> {
    let mut all = forms(frame, hostile);
    let path = "/hosts/box7/guests/x/edit";
    let values: Values =
        [("name", hostile), ("lines", "one\ntwo"), ("reason", hostile)].into_iter().collect();
    let preview = preview(hostile);
    let collisions = [Collision {
        field: "size.cores",
        label: "Cores",
        before: hostile.to_owned(),
        now: hostile.to_owned(),
        typed: "2".to_owned(),
    }];
    let review = Review {
        name: hostile,
        host: "box7",
        action: path,
        preview: &preview,
        fields: &values,
        key: "k",
        way_back: WayBack::Form,
    };
    all.push(("review", review::render(frame, &review).unwrap()));
    let versions = [version(hostile)];
    let conflict = Conflict {
        name: hostile,
        host: "box7",
        action: path,
        seen: Generation::new(6),
        newest: Generation::new(7),
        between: &versions,
        theirs: &preview.diff,
        own: Some(&preview.diff),
        collisions: &collisions,
        next: Some(&values),
    };
    all.push(("conflict", conflict::render(frame, &conflict).unwrap()));
    let removal = Removal {
        name: hostile,
        host: "box7",
        action: path,
        seen: Generation::new(7),
        users: &[],
        on_host: Some(hostile),
        reason: hostile,
        problem: Some(RemovalProblem { about: RemovalField::Reason, message: hostile }),
    };
    all.push(("removal", removal::render(frame, &removal).unwrap()));
    all.extend(documents(frame, hostile, &versions[0], &preview));
    all.extend(entrances(frame, hostile));
    all
}

fn forms(frame: &Frame, hostile: &'static str) -> Vec<(&'static str, String)> {
    let known = KnownNames::of(&document(7, 512), &holdfast_protocol::report::Sections::default());
    let kinds = [
        ("guest form", PartKind::Guest),
        ("volume form", PartKind::Volume),
        ("storage target form", PartKind::StorageTarget),
        ("policy form", PartKind::Policy),
    ];
    let form = |(name, kind): (&'static str, PartKind)| {
        let fields = form_of(kind).iter().flat_map(|group| group.fields);
        let values: Values =
            fields.clone().map(|field| (field.path, hostile)).chain([("reason", hostile)]).collect();
        let problems: Vec<Problem> = fields
            .map(|field| Some(field.path))
            .chain([Some("reason"), None])
            .map(|field| Problem { field, message: hostile.to_owned() })
            .collect();
        let edit = Edit {
            kind,
            novelty: Novelty::Existing,
            name: hostile,
            host: "box7",
            action: "/hosts/box7/guests/x/edit",
            base: "/hosts/box7/guests/x",
            values: &values,
            seen: Generation::new(7),
            known: &known,
            problems: &problems,
            taken_over: &[],
            volumes: &[VolumeLink { name: "db".to_owned(), words: hostile.to_owned() }],
        };
        (name, edit::render(frame, &edit).unwrap())
    };
    kinds.into_iter().map(form).collect()
}

fn documents(
    frame: &Frame,
    hostile: &'static str,
    version: &DesiredVersion,
    preview: &ChangePreview,
) -> Vec<(&'static str, String)> {
    let read = document(7, 512);
    let newest = Newest { version, document: Some(&read) };
    let standing = (Generation::new(6), MayChange::Yes);
    let problem = EditorProblem { message: hostile.to_owned(), line: Some(2), is_of_reason: false };
    let editor = Editor {
        host: "box7",
        seen: Generation::new(7),
        text: &version.document,
        reason: hostile,
        problem: Some(problem),
    };
    let one = Version {
        host: "box7",
        version,
        diff: Some(&preview.diff),
        newest: Generation::new(8),
        held: Generation::new(6),
        may_change: MayChange::Yes,
        problem: Some(hostile),
        reason: hostile,
    };
    vec![
        ("document", document::render(frame, "box7", Some(&newest), standing).unwrap()),
        ("document editor", document::editor(frame, &editor).unwrap()),
        ("history", document::history(frame, "box7", std::slice::from_ref(version), Some(hostile)).unwrap()),
        ("version", document::version(frame, &one).unwrap()),
    ]
}

fn request() -> EnrollmentRequestView {
    read(json!({
        "id": "018f3c1e-6b1f-7c1d-9d0a-0000000000b1", "claimed_name": "box7", "first_at": "2026-11-21T02:00:00Z",
        "fingerprint": format!("spki/sha256:{}", "ab".repeat(32)), "state": "pending"
    }))
}

fn entrances(frame: &Frame, hostile: &'static str) -> Vec<(&'static str, String)> {
    let made: InviteCreated = read(json!({
        "invite": "018f3c1e-6b1f-7c1d-9d0a-0000000000c1", "code": "hfi_x", "expires_at": "2026-11-22T02:00:00Z"
    }));
    let typed = ApprovalFields { name: hostile, fingerprint: hostile };
    let first = FirstStart::of(&read(json!({ "recovery_codes": 0 })), &[], 1).unwrap();
    let fleet = Some(start::Fleet { hosts: &[], has_more: false });
    let start = start::Start { incidents: &[], requests: Some(&[request()]), fleet, first: Some(&first) };
    vec![
        ("invite", enrollment::invite(frame, hostile, Some(hostile)).unwrap()),
        ("invited", enrollment::invited(frame, hostile, &made).unwrap()),
        ("request", enrollment::request(frame, &request(), typed, Some(hostile)).unwrap()),
        ("first start", start::render(frame, &start).unwrap()),
    ]
}

fn frame() -> Frame {
    Frame {
        section: crate::frame::Section::Other,
        person: Some(crate::frame::Person {
            name: "ada".parse().unwrap(),
            role: holdfast_protocol::operator::Role::Admin,
            csrf: "c0ffee".to_owned(),
            sections: Vec::new(),
        }),
        hub_version: "0.1.0",
        now: "2026-11-21T03:00:00Z".parse().unwrap(),
        live: None,
        look: crate::look::Look::default(),
    }
}

fn values_of<'h>(html: &'h str, attribute: &str) -> Vec<&'h str> {
    let begin = format!(" {attribute}=\"");
    html.split(begin.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn every_field_has_a_label_and_everything_that_is_referred_to_is_there() {
    for (name, html) in pages(&frame(), "plain") {
        let ids = values_of(&html, "id");
        let mut once = ids.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), ids.len(), "{name}: an id is there twice: {ids:?}");
        let described = values_of(&html, "aria-describedby").into_iter().flat_map(|all| all.split(' '));
        let links = values_of(&html, "href").into_iter().filter_map(|link| link.strip_prefix('#'));
        let labels = values_of(&html, "for").into_iter().chain(values_of(&html, "aria-labelledby"));
        for id in described.chain(links).chain(labels) {
            assert!(ids.contains(&id), "{name}: nothing has the id {id}");
        }
        for field in html
            .split('<')
            .filter(|tag| ["input ", "select ", "textarea "].iter().any(|one| tag.starts_with(one)))
        {
            let tag = field.split('>').next().unwrap();
            if tag.contains("type=\"hidden\"")
                || tag.ends_with(" hidden")
                || tag.contains("type=\"checkbox\"")
            {
                continue;
            }
            let id = values_of(tag, "id");
            assert!(html.contains(&format!("for=\"{}\"", id[0])), "{name}: {tag} has no label");
        }
    }
}

#[test]
fn a_mistake_is_announced_and_leads_to_its_field() {
    let (_, html) = &forms(&frame(), "plain")[0];
    assert!(
        html.contains("role=\"alert\"") && html.contains("<a href=\"#field-size-cores\">Cores</a>: plain"),
        "{html}"
    );
    assert!(
        html.contains("aria-invalid=\"true\"")
            && html.contains("field-size-cores-problem field-size-cores-words")
    );
    assert!(html.contains("<title>Not changed: "));
}

#[test]
fn the_fingerprint_of_a_request_is_not_on_its_page() {
    let html = enrollment::request(&frame(), &request(), ApprovalFields::default(), None).unwrap();
    assert!(!html.contains("abab"), "who copies it has compared nothing");
}

#[test]
fn the_first_steps_end_with_a_document() {
    let host = |wanted: u64| {
        read(
            json!({ "id": "018f3c1e-6b1f-7c1d-9d0a-000000000065", "name": "box7", "state": "new", "wanted": wanted, "held": 0,
            "guests_running": 0, "guests": 0, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" }),
        )
    };
    let state = read(json!({ "recovery_codes": 0 }));
    assert!(FirstStart::of(&state, &[], 0).is_some() && FirstStart::of(&state, &[host(0)], 0).is_some());
    assert!(FirstStart::of(&state, &[host(1)], 0).is_none());
}
