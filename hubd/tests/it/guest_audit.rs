//! Audit records of guests at the hub.

use holdfast_protocol::audit::{AuditLine, Fields, chain, hex};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::guest_audit::{GuestAuditKept, GuestAuditPut, GuestAuditView};
use holdfast_protocol::local::audit::AuditRecord;
use hubd::store::RECORDS_PER_GUEST;
use reqwest::{Method, StatusCode};
use uuid::Uuid;

use crate::world::{Answered, Host, World};

/// A chain of lines from 1 on, each about this guest.
fn records(count: i64, guest: u128) -> Vec<AuditRecord> {
    let (guest, mut before) = (Uuid::from_u128(guest).to_string(), Vec::new());
    (1..=count)
        .map(|number| {
            let (action, detail) = ("operation_opened", format!("line {number}"));
            let fields = Fields {
                number,
                at_us: number,
                action,
                guest: Some(&guest),
                operation: None,
                detail: &detail,
            };
            let hash = chain(&before, fields);
            let line = AuditLine {
                number,
                at_us: number,
                action: action.to_owned(),
                guest: Some(guest.clone()),
                operation: None,
                detail,
                chain: hex(&hash),
            };
            let record = AuditRecord { line, before: hex(&before) };
            before = hash.to_vec();
            record
        })
        .collect()
}

impl Host {
    async fn put_audit(&self, records: &[AuditRecord], through: Option<u64>) -> Answered<GuestAuditKept> {
        let put = GuestAuditPut { records: records.to_vec(), through };
        self.client.send(Method::PUT, "/v1/agent/guest-audit", &put).await
    }
}

fn place(host: &str, guest: u128) -> String {
    format!("/v1/hosts/{host}/guests/{}/audit", Uuid::from_u128(guest))
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_kept_once_and_the_newest_of_each_guest() {
    let world = World::start().await;
    let (host, other) = (world.enrol("box7").await, world.enrol("box8").await);
    let through = async |records: &[AuditRecord], through| {
        host.put_audit(records, through).await.data(StatusCode::OK).through
    };
    assert_eq!(through(&[], None).await, 0, "a host that asks first");
    let all = records(i64::from(RECORDS_PER_GUEST) + 50, 1);
    for (part, to) in [(&all[..100], 100), (&all[..100], 100), (&all[100..200], 200), (&all[200..], 250)] {
        world.clock.advance(1);
        assert_eq!(through(part, Some(to)).await, to);
    }
    assert_eq!(through(&[], None).await, 250);
    let admin = world.admin();
    let kept: GuestAuditView = admin.get(&place("box7", 1)).await.data(StatusCode::OK);
    assert_eq!(kept.records, all[50..]);
    let nothing: GuestAuditView = admin.get(&place("box7", 2)).await.data(StatusCode::OK);
    assert_eq!(nothing.records, []);
    // Another host says what it will of this guest: it is under its own name.
    let said = other.put_audit(&records(1, 1), Some(1)).await.data(StatusCode::OK);
    assert_eq!(said.through, 1);
    let kept: GuestAuditView = admin.get(&place("box7", 1)).await.data(StatusCode::OK);
    assert_eq!(kept.records, all[50..]);
    // The host was set back: it goes on from there.
    assert_eq!(through(&all[..1], Some(1)).await, 1);
    assert_eq!(admin.get::<GuestAuditView>(&place("box9", 1)).await.code(), ErrorCode::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_record_of_a_guest_is_refused_whole() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let good = records(2, 1);
    let spoilt: [fn(&mut AuditRecord); 4] = [
        |record| record.line.detail.push('x'),
        |record| record.line.guest = None,
        |record| record.line.guest = Some("web-1".to_owned()),
        |record| record.line.detail = "x".repeat(5_000),
    ];
    for spoil in spoilt {
        let mut records = good.clone();
        spoil(&mut records[1]);
        assert_eq!(host.put_audit(&records, Some(2)).await.code(), ErrorCode::Range);
    }
    let many = vec![good[0].clone(); 101];
    assert_eq!(host.put_audit(&many, Some(2)).await.code(), ErrorCode::Range);
    let kept: GuestAuditView = world.admin().get(&place("box7", 1)).await.data(StatusCode::OK);
    assert_eq!(kept.records, [], "nothing of a refused request is kept");
    let put = GuestAuditPut { records: good, through: Some(2) };
    let sent: Answered<GuestAuditKept> = world.admin().send(Method::PUT, "/v1/agent/guest-audit", &put).await;
    assert_eq!(sent.code(), ErrorCode::Certificate);
}
