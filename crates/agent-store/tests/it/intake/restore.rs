//! Tests of orders to replace a lost host.

use agent_core::gate::restore::{NewBox, NoOrder, OldBox, may_take_the_place, was_replaced};
use agent_store::Refusal;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{HostId, JobId};
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::job::{HostEpoch, SeenHost};
use holdfast_trust::scope::NotHere;
use holdfast_trust::{Refused, Roster};
use jiff::SignedDuration;

use crate::intake::hand::{Hand, job};
use crate::intake::store_fixture::{HOST, StoreFixture, own};

/// The hash of the new host's key.
const KEY: &str = "spki/sha256:abababababababababababababababababababababababababababababababab";

const ORDER: &str = r#""target":{"kind":"host"},"verb":"restore_host","args":{"new_key":"spki/sha256:abababababababababababababababababababababababababababababababab"}"#;

fn host() -> HostId {
    HOST.parse().unwrap()
}

impl StoreFixture {
    /// An order for this host's present life, signed by Alice.
    async fn order(&mut self) -> (String, String) {
        let (_, payload) = self.payload(ORDER).await;
        (job(payload.as_bytes(), &[&self.alice]), payload)
    }

    /// A withdrawal of an order, signed by Alice.
    async fn withdrawal(&mut self, order: &str) -> (JobId, String) {
        let digest = Sha256Text::of(order.as_bytes());
        let args = format!("{{\"order\":\"{}\"}}", digest.as_str());
        let order = format!("\"target\":{{\"kind\":\"host\"}},\"verb\":\"withdraw_restore\",\"args\":{args}");
        let (id, payload) = self.payload(&order).await;
        (id, job(payload.as_bytes(), &[&self.alice]))
    }

    async fn own(&self) -> (Roster, (HostId, HostEpoch)) {
        let status = self.store.trust_state().await.unwrap();
        (status.roster.unwrap(), (host(), status.epoch))
    }
}

#[tokio::test]
async fn the_order_is_no_job_for_a_host_that_is_there() {
    let mut listener = StoreFixture::open().await;
    let (id, payload) = listener.payload(ORDER).await;
    let blob = job(payload.as_bytes(), &[&listener.alice]);
    listener.refuses_and_takes("by the mail of a living host", id, &blob, ErrorCode::Unsupported).await;
}

#[tokio::test]
async fn only_the_operators_order_for_this_life_stops_a_box_and_for_good() {
    let mut listener = StoreFixture::open().await;
    let (order, payload) = listener.order().await;
    let (roster, _) = listener.own().await;
    let seen = own();
    let old = |(host, epoch)| OldBox { host, seen: &seen, epoch, served: None };
    let own = listener.own().await.1;
    let hear = |text: &str, own| was_replaced(text, None, &roster, old(own), listener.now);
    assert!(hear(&order, own).is_ok());
    assert!(matches!(hear("hello", own), Err(NoOrder::Envelope(_))));
    // Texts that a hub could make by itself, or from data that it holds.
    let stranger = job(payload.as_bytes(), &[&Hand::new(9)]);
    assert!(matches!(hear(&stranger, own), Err(NoOrder::Refused(Refused::KeyUnknown { .. }))));
    let unsigned = job(payload.as_bytes(), &[]);
    assert!(hear(&unsigned, own).is_err());
    let other = (HostId::new(uuid::Uuid::nil()), own.1);
    assert!(matches!(hear(&order, other), Err(NoOrder::Host { .. })));
    // The new host has another life: the order that created it does not end it.
    let next = (own.0, HostEpoch::new(own.1.number() + 1));
    assert!(matches!(hear(&order, next), Err(NoOrder::Epoch { .. })));
    let (_, destroy) = listener.destroy().await;
    let destroy = job(destroy.as_bytes(), &[&listener.alice]);
    assert!(matches!(was_replaced(&destroy, None, &roster, old(own), listener.now), Err(NoOrder::Verb(_))));

    // An old host may wake up after years.
    let late = listener.now + SignedDuration::from_hours(3 * 365 * 24);
    let accepted = was_replaced(&order, None, &roster, old(own), late).unwrap();
    listener.store.stand_still(accepted, late).await.unwrap();
    assert!(matches!(listener.store.refusal(), Some(Refusal::Replaced { .. })));
    assert!(listener.audit().iter().any(|(action, detail)| action == "replaced" && detail.contains("alice")));
    let before = listener.state();
    let (id, payload) = listener.destroy().await;
    let mail = holdfast_protocol::job::QueuedJob {
        id,
        blob: job(payload.as_bytes(), &[&listener.alice]),
        correlation_id: None,
    };
    assert!(
        agent_store::job_intake::take(&listener.store, (host(), &seen), &mail, listener.now).await.is_err()
    );
    let listener = listener.reopen();
    let Some(refusal) = listener.store.refusal() else { panic!("it forgot") };
    assert_eq!(refusal.code(), ErrorCode::Replaced);
    assert!(refusal.to_string().contains("alice"), "{refusal}");
    assert_eq!(listener.state(), before);
}

#[tokio::test]
async fn a_new_box_follows_the_order_that_its_invite_names_and_no_other() {
    let mut listener = StoreFixture::open().await;
    let ((order, payload), (another, _)) = (listener.order().await, listener.order().await);
    let (roster, _) = listener.own().await;
    let named = Sha256Text::of(payload.as_bytes());
    let now = listener.now;
    let name = "box7".parse().unwrap();
    let new = |host| NewBox { host, name: &name, key: KEY.parse().unwrap() };
    let may = |text: &str, host, now| may_take_the_place(text, &named, &roster, new(host), now);
    assert!(may(&order, host(), now).is_ok());
    assert!(matches!(may(&another, host(), now), Err(NoOrder::Exchanged)));
    let other = HostId::new(uuid::Uuid::nil());
    assert!(matches!(may(&order, other, now), Err(NoOrder::Host { .. })));
    // Another host than the order names; another host by its name; an order of an older command.
    let key = "spki/sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd".parse().unwrap();
    let elsewhere = may_take_the_place(&order, &named, &roster, NewBox { key, ..new(host()) }, now);
    assert!(matches!(elsewhere, Err(NoOrder::Key { .. })), "{elsewhere:?}");
    let box8 = "box8".parse().unwrap();
    let renamed = may_take_the_place(&order, &named, &roster, NewBox { name: &box8, ..new(host()) }, now);
    assert!(matches!(renamed, Err(NoOrder::Name { .. })), "{renamed:?}");
    let bare = ORDER.replacen(&format!("\"new_key\":\"{KEY}\""), "", 1);
    let (_, keyless) = listener.payload(&bare).await;
    let digest = Sha256Text::of(keyless.as_bytes());
    let keyless = job(keyless.as_bytes(), &[&listener.alice]);
    let keyless = may_take_the_place(&keyless, &digest, &roster, new(host()), now);
    assert!(matches!(keyless, Err(NoOrder::NotHere(NotHere::Unbound(_)))), "{keyless:?}");
    let stranger = job(payload.as_bytes(), &[&Hand::new(9)]);
    assert!(matches!(may(&stranger, host(), now), Err(NoOrder::Refused(_))));
    for offset in [-61, 3_600] {
        let then = now + SignedDuration::from_secs(offset);
        assert!(matches!(may(&order, host(), then), Err(NoOrder::Time { .. })), "{offset}");
    }
}

/// What a compromised hub can do with an unused order: nothing to a host of another name, nothing to one that it went
/// on serving, and nothing once operators withdrew the order and the hub passes that on.
#[tokio::test]
async fn an_order_is_over_once_it_was_taken_back_or_the_hub_went_on_serving() {
    let mut listener = StoreFixture::open().await;
    let (order, payload) = listener.order().await;
    let (_, other) = listener.order().await;
    let (roster, (host, epoch)) = listener.own().await;
    let (seen, renamed) = (own(), SeenHost { name: "box8".parse().unwrap(), ..own() });
    let old = OldBox { host, seen: &seen, epoch, served: None };
    let hear = |withdrawal: Option<&str>, old| was_replaced(&order, withdrawal, &roster, old, listener.now);
    assert!(hear(None, old).is_ok());
    let swapped = hear(None, OldBox { seen: &renamed, ..old });
    assert!(matches!(swapped, Err(NoOrder::NotHere(NotHere::Name { .. }))), "{swapped:?}");

    let ended = listener.now + SignedDuration::from_hours(1);
    let served = |hours: i64| OldBox { served: Some(ended + SignedDuration::from_hours(hours)), ..old };
    assert!(hear(None, served(-2)).is_ok(), "it sleeps since before");
    assert!(hear(None, served(24)).is_ok(), "clocks may be off by so much");
    assert!(matches!(hear(None, served(25)), Err(NoOrder::Over { .. })));

    let now = listener.now;
    let ((_, back), (_, of_other)) = (listener.withdrawal(&payload).await, listener.withdrawal(&other).await);
    let hear = |withdrawal: &str| was_replaced(&order, Some(withdrawal), &roster, old, now);
    assert!(matches!(hear(&back), Err(NoOrder::Withdrawn)));
    // A text that withdraws nothing leaves the order valid: another order's withdrawal, no withdrawal at all, an order
    // itself.
    for none in [of_other.as_str(), "hello", order.as_str()] {
        assert!(hear(none).is_ok(), "{none}");
    }
}

/// A withdrawal that reached the host while it worked is kept, whatever a hub says later.
#[tokio::test]
async fn a_withdrawal_that_the_host_heard_of_is_not_passed_over() {
    let mut listener = StoreFixture::open().await;
    let (_, payload) = listener.order().await;
    let (id, back) = listener.withdrawal(&payload).await;
    let outcome = listener.leave(id, &back).await;
    assert!(matches!(outcome, agent_store::job_intake::Outcome::Taken), "{outcome:?}");
    let accepted = listener.due(id).await;
    listener.store.withdraw_order(accepted, listener.now).await.unwrap();
    let digest = Sha256Text::of(payload.as_bytes());
    let listener = listener.reopen();
    assert_eq!(listener.store.withdrawn(digest).await.unwrap(), Some(id));
    assert_eq!(listener.store.withdrawn(Sha256Text::of(b"another")).await.unwrap(), None);
}

/// By the latest time that a kept clock showed, once an hour.
#[tokio::test]
async fn a_host_remembers_until_when_it_was_served() {
    let mut listener = StoreFixture::open().await;
    let served = async |listener: &StoreFixture| listener.store.trust_state().await.unwrap().served;
    assert_eq!(served(&listener).await, None);
    listener.store.note_time(listener.now).await.unwrap();
    listener.store.note_served().await.unwrap();
    let first = served(&listener).await;
    assert_eq!(first, Some(listener.now));
    for (seconds, moves) in [(3_599, false), (1, true)] {
        listener.pass(seconds);
        listener.store.note_time(listener.now).await.unwrap();
        listener.store.note_served().await.unwrap();
        assert_eq!(served(&listener).await != first, moves, "after {seconds} s more");
    }
}
