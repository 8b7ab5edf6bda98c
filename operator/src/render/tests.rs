//! Snapshots of all text output.

use std::collections::BTreeMap;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::InviteId;
use holdfast_protocol::operator::{HostDetail, HostState, InviteCreated, WhoAmI};
use holdfast_protocol::report::RefusedDocument;
use holdfast_protocol::secret::Secret;
use insta::assert_snapshot;
use restore_certificate::verify::HubTrust;
use serde_json::json;
use uuid::Uuid;

use super::samples::{self, now, read};
use super::{audit, certificate, desired, event, golden, guest, host, host_state, job, login, protection};
use crate::render::host_state::HeardHost;
use crate::screen::{Colour, Style};
use holdfast_protocol::resource::diff;
use holdfast_protocol::resource::diff::PromisesInForce;

const PLAIN: Style = Style { colour: Colour::Off, columns: None };
const COLOURED: Style = Style { colour: Colour::On, columns: Some(100) };

#[test]
fn host_list() {
    assert_snapshot!(host::hosts(&samples::hosts(), now(), PLAIN));
    assert_snapshot!("host_list_coloured", host::hosts(&samples::hosts(), now(), COLOURED));
    assert_snapshot!("host_list_empty", host::hosts(&[], now(), PLAIN));
}

#[test]
fn host_show() {
    let mut detail = HostDetail {
        host: samples::hosts().remove(0),
        sections: samples::sections(),
        restores: Vec::new(),
        epochs: Vec::new(),
        offer: None,
    };
    assert_snapshot!(host::host(&detail, now(), PLAIN));
    let problem =
        ErrorBody::new(ErrorCode::Unavailable, "Proxmox does not answer: look at pveproxy on the box");
    detail.sections.agent.as_mut().unwrap().problems.push(problem);
    detail.sections.desired.as_mut().unwrap().refused = Some(RefusedDocument {
        generation: Some(Generation::new(8)),
        problem: ErrorBody::new(ErrorCode::DuplicateVmid, "104 stands twice"),
    });
    detail.sections.waiting = Some(vec![samples::waiting()]);
    assert_snapshot!("host_show_troubled", host::host(&detail, now(), PLAIN));
    detail.sections = Default::default();
    assert_snapshot!("host_show_silent", host::host(&detail, now(), PLAIN));
    let box5 = samples::hosts().into_iter().find(|host| host.name.as_str() == "box5").unwrap();
    let frozen = std::mem::replace(&mut detail.host, box5);
    detail.sections.conditions = Some(samples::conditions());
    detail.sections.guests = Some(samples::guests());
    assert_snapshot!("host_show_degraded", host::host(&detail, now(), PLAIN));
    (detail.host, detail.sections) = (frozen, Default::default());
    detail.host.state = holdfast_protocol::operator::HostState::Frozen;
    let told = host::host(&detail, now(), PLAIN);
    let name = &detail.host.name;
    for step in [format!("host revoke {name}"), format!("host invite {name}"), "agentd enroll".to_owned()] {
        assert!(told.contains(&step), "{told}");
    }
}

#[test]
fn enrollment_requests_and_invites() {
    assert_snapshot!(host::enrollment_requests(&samples::enrollment_requests(), now(), PLAIN));
    let invite = InviteCreated {
        invite: InviteId::new(Uuid::nil()),
        code: Secret::new("hf1_an-invite".to_owned()),
        expires_at: "2026-11-22T03:00:00Z".parse().unwrap(),
    };
    assert_snapshot!("invite", host::invite(&invite, now()));
}

#[test]
fn guest_list() {
    let (name, reports) = ("box7".parse().unwrap(), samples::guests());
    let pairs: Vec<_> = reports.iter().map(|report| (&name, report)).collect();
    assert_snapshot!(guest::guests(&pairs, PLAIN));
    assert_snapshot!("guest_list_narrow", guest::guests(&pairs, Style { columns: Some(110), ..PLAIN }));
}

#[test]
fn guests_of_a_silent_host_have_their_age() {
    let (offline, online) = ("box7".parse().unwrap(), "box8".parse().unwrap());
    let heard = |name, state, seen_at: Option<&str>| HeardHost {
        name,
        state,
        seen_at: seen_at.map(|text| text.parse().unwrap()),
    };
    let seen = Some("2026-11-20T21:00:00Z");
    let hosts = [
        heard(&offline, HostState::Offline, seen),
        heard(&offline, HostState::Offline, seen),
        heard(&online, HostState::Online, seen),
    ];
    assert_eq!(
        host_state::not_heard(hosts, now()),
        "\nbox7 is offline: its guests are shown as of 2026-11-20 21:00:00Z (6 h ago).\n"
    );
    assert_eq!(host_state::not_heard([heard(&online, HostState::Degraded, seen)], now()), "");
}

#[test]
fn golden_list() {
    let sections = samples::with_goldens();
    let images_on_host =
        crate::cmd::golden::images_on_host(&"box7".parse().unwrap(), &sections, &samples::compared());
    assert_snapshot!(golden::goldens(&images_on_host, PLAIN));
    assert_snapshot!("golden_compare", golden::compared(&samples::compared(), PLAIN));
    assert_snapshot!("golden_compare_empty", golden::compared(&[], PLAIN));
}

#[test]
fn guest_protection() {
    let (name, reports) = ("box7".parse().unwrap(), samples::guests());
    let pairs: Vec<_> = reports.iter().map(|report| (&name, report)).collect();
    assert_snapshot!(protection::protection(&pairs, PLAIN));
    assert_snapshot!(
        "guest_protection_narrow",
        protection::protection(&pairs, Style { columns: Some(110), ..PLAIN })
    );
}

#[test]
fn guest_show() {
    let name = "box7".parse().unwrap();
    let all: Vec<String> =
        samples::guests().iter().map(|report| guest::guest(&name, report, now())).collect();
    assert_snapshot!(all.join("\n"));
}

#[test]
fn desired_documents() {
    let document = samples::document();
    let version = samples::version(&document);
    assert_snapshot!(desired::document(&version, &Desired::check(document.clone()).unwrap(), now(), PLAIN));
    let older = samples::version(&holdfast_protocol::desired::DesiredDocument {
        generation: Generation::new(6),
        ..document
    });
    assert_snapshot!("history", desired::history(&[older, version], now(), PLAIN));
}

#[test]
fn differences() {
    let (before, after) = (samples::document(), samples::changed_document());
    assert_snapshot!(desired::diff("box7", &diff(Some(&before), &after, &PromisesInForce::new()), PLAIN));
    assert_snapshot!(
        "difference_coloured",
        desired::diff("box7", &diff(Some(&before), &after, &PromisesInForce::new()), COLOURED)
    );
    assert_snapshot!(
        "difference_first",
        desired::diff("box7", &diff(None, &before, &PromisesInForce::new()), PLAIN)
    );
    assert_snapshot!(
        "difference_none",
        desired::diff("box7", &diff(Some(&before), &before, &PromisesInForce::new()), PLAIN)
    );
    let (before, after) = (samples::under_policy(10), samples::under_policy(1));
    assert_snapshot!(
        "difference_weaker",
        desired::diff("box7", &diff(Some(&before), &after, &PromisesInForce::new()), PLAIN)
    );
}

#[test]
fn events() {
    let hosts = samples::hosts();
    let names: BTreeMap<_, _> = hosts.into_iter().map(|host| (host.id, host.name)).collect();
    assert_snapshot!(event::events(&samples::events(), &names, PLAIN));
}

#[test]
fn whoami() {
    let who: WhoAmI = read(json!({ "name": "ada", "role": "operator", "hub_version": "0.1.0" }));
    assert_snapshot!(login::whoami("https://hub.example:8440", &who));
}

#[test]
fn the_page_before_signing() {
    let mut detail = HostDetail {
        host: samples::hosts().remove(0),
        sections: samples::sections(),
        restores: Vec::new(),
        epochs: Vec::new(),
        offer: None,
    };
    detail.sections.waiting = Some(samples::waiting_to_sign());
    let page = |asked: &str| {
        let all = samples::waiting_to_sign();
        let (place, draft) = crate::job_draft::choose("box7", &all, Some(asked)).unwrap();
        let payload = draft.ordered(holdfast_protocol::job::Order {
            job_id: read(json!("018f3c1e-6b1f-7c1d-9d0a-000000000401")),
            host_id: detail.host.id,
            host_epoch: holdfast_protocol::job::HostEpoch::new(1_794_000_000),
            host: read(json!({ "name": "box7", "fingerprint": "4f2a-9c01-77de-b3a8-0c11" })),
            not_before: read(json!("2026-11-21T02:59:00Z")),
            expires_at: read(json!("2026-11-21T10:59:00Z")),
            nonce: read(json!("00112233445566778899aabbccddeeff")),
            reason: read(json!("the customer left")),
        });
        job::to_sign(&payload, &detail, all.get(place), now())
    };
    assert_snapshot!("to_sign_a_destroy", page("1"));
    assert_snapshot!("to_sign_a_bulk_change", page("2"));
    assert_snapshot!("to_sign_a_loosening", page("loosen_policy"));
    assert_snapshot!("to_sign_growth", page("allow_growth"));
}

#[test]
fn jobs_and_one_job() {
    let (host, jobs) = ("box7".parse().unwrap(), samples::jobs());
    let pairs: Vec<_> = jobs.iter().map(|job| (&host, job)).collect();
    assert_snapshot!("job_list", job::jobs(&pairs, now(), PLAIN));
    assert_snapshot!("job_list_narrow", job::jobs(&pairs, now(), COLOURED));
    assert_snapshot!("job_list_empty", job::jobs(&[], now(), PLAIN));
    assert_snapshot!("job_show", job::detail(&host, &jobs[4], None, now()));
}

#[test]
fn audit_records_of_a_guest() {
    let holdfast_protocol::guest_audit::GuestAuditView { records, .. } = samples::guest_audit();
    let mut shown = crate::cmd::guest_audit::GuestAudit {
        host: "box7".parse().unwrap(),
        uid: samples::guest_uid(),
        records: Vec::new(),
        earlier: Vec::new(),
        kept: Vec::new(),
        contradicted: Vec::new(),
    };
    let none = audit::records(&shown, PLAIN);
    shown.earlier = records[..1].to_vec();
    shown.records = records;
    (shown.kept, shown.contradicted) = (vec![3], vec![1]);
    assert_snapshot!([none, audit::records(&shown, PLAIN)].join("\n"));
}

#[test]
fn restore_certificates() {
    let compared = certificate::proof(&samples::proof(HubTrust::Compared));
    let not_compared = certificate::proof(&samples::proof(HubTrust::NotCompared));
    assert_snapshot!([compared, not_compared].join("\n"));
}
