//! The order by which a new box takes a lost one's place, and by which the lost one stands still: nothing else does either.

use agentd::gate::restore::{NoOrder, may_take_the_place, was_replaced};
use agentd::port::store::Refusal;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::HostId;
use holdfast_protocol::job::HostEpoch;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_trust::{Refused, Roster};
use jiff::SignedDuration;

use crate::intake::door::{Door, HOST};
use crate::intake::hand::{Hand, job};

const ORDER: &str = r#""target":{"kind":"host"},"verb":"restore_host","args":{}"#;

fn host() -> HostId {
    HOST.parse().unwrap()
}

impl Door {
    /// An order for this host's present life, signed by Alice.
    async fn order(&mut self) -> (String, String) {
        let (_, payload) = self.payload(ORDER).await;
        (job(payload.as_bytes(), &[&self.alice]), payload)
    }

    async fn own(&self) -> (Roster, (HostId, HostEpoch)) {
        let standing = self.store.standing().await.unwrap();
        (standing.roster.unwrap(), (host(), standing.epoch))
    }
}

#[tokio::test]
async fn the_order_is_no_job_for_a_host_that_is_there() {
    let mut door = Door::open().await;
    let (id, payload) = door.payload(ORDER).await;
    let blob = job(payload.as_bytes(), &[&door.alice]);
    door.refuses_and_takes("by the mail of a living host", id, &blob, ErrorCode::Unsupported).await;
}

#[tokio::test]
async fn only_the_operators_order_for_this_life_stops_a_box_and_for_good() {
    let mut door = Door::open().await;
    let (order, payload) = door.order().await;
    let (roster, own) = door.own().await;
    let hear = |text: &str, own| was_replaced(text, &roster, own, door.now);
    assert!(hear(&order, own).is_ok());
    assert!(matches!(hear("hello", own), Err(NoOrder::Envelope(_))));
    // What a hub could make by itself, or out of what it holds.
    let stranger = job(payload.as_bytes(), &[&Hand::new(9)]);
    assert!(matches!(hear(&stranger, own), Err(NoOrder::Refused(Refused::KeyUnknown { .. }))));
    let unsigned = job(payload.as_bytes(), &[]);
    assert!(hear(&unsigned, own).is_err());
    let other = (HostId::new(uuid::Uuid::nil()), own.1);
    assert!(matches!(hear(&order, other), Err(NoOrder::Host { .. })));
    // Who took the place has another life: the order that made it does not end it.
    let next = (own.0, HostEpoch::new(own.1.number() + 1));
    assert!(matches!(hear(&order, next), Err(NoOrder::Epoch { .. })));
    let (_, destroy) = door.destroy().await;
    let destroy = job(destroy.as_bytes(), &[&door.alice]);
    assert!(matches!(was_replaced(&destroy, &roster, own, door.now), Err(NoOrder::Verb(_))));

    // An old box may wake up after years.
    let late = door.now + SignedDuration::from_hours(3 * 365 * 24);
    let accepted = was_replaced(&order, &roster, own, late).unwrap();
    door.store.stand_still(accepted, late).await.unwrap();
    assert!(matches!(door.store.refusal(), Some(Refusal::Replaced { .. })));
    assert!(door.audit().iter().any(|(action, detail)| action == "replaced" && detail.contains("alice")));
    let before = door.state();
    let (id, payload) = door.destroy().await;
    let mail = holdfast_protocol::job::MailedJob { id, blob: job(payload.as_bytes(), &[&door.alice]) };
    assert!(agentd::task::intake::take(&door.store, host(), &mail, door.now).await.is_err());
    let door = door.reopen();
    let Some(refusal) = door.store.refusal() else { panic!("it forgot") };
    assert_eq!(refusal.code(), ErrorCode::Replaced);
    assert!(refusal.to_string().contains("alice"), "{refusal}");
    assert_eq!(door.state(), before);
}

#[tokio::test]
async fn a_new_box_follows_the_order_that_its_invite_names_and_no_other() {
    let mut door = Door::open().await;
    let ((order, payload), (another, _)) = (door.order().await, door.order().await);
    let (roster, _) = door.own().await;
    let named = Sha256Text::of(payload.as_bytes());
    let now = door.now;
    let may = |text: &str, host, now| may_take_the_place(text, &named, &roster, host, now);
    assert!(may(&order, host(), now).is_ok());
    assert!(matches!(may(&another, host(), now), Err(NoOrder::Exchanged)));
    let other = HostId::new(uuid::Uuid::nil());
    assert!(matches!(may(&order, other, now), Err(NoOrder::Host { .. })));
    let stranger = job(payload.as_bytes(), &[&Hand::new(9)]);
    assert!(matches!(may(&stranger, host(), now), Err(NoOrder::Refused(_))));
    for offset in [-61, 3_600] {
        let then = now + SignedDuration::from_secs(offset);
        assert!(matches!(may(&order, host(), then), Err(NoOrder::Time { .. })), "{offset}");
    }
}
