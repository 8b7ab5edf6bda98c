//! Notices of escrow reads to customers.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::escrow::notice::Reader;
use holdfast_protocol::escrow::{EscrowFiles, EscrowList, EscrowPut, EscrowRead, Notice};
use hubd::domain::escrow::Act;
use hubd::task::escrow_notice::NoticeSettings;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{Customer, version};
use crate::world::{Answered, World, until};

#[tokio::test(flavor = "multi_thread")]
async fn every_read_reaches_a_customer_who_was_away() {
    let customer = Customer::default();
    customer.answers.lock().unwrap().push_back(StatusCode::BAD_GATEWAY);
    let world = World::with_notice(customer.for_all().await).await;
    let host = world.enrol("box7").await;
    host.put_escrow(&version(1)).await.data(StatusCode::OK);
    assert!(customer.notices().is_empty());
    host.read_escrow().await.data(StatusCode::OK);
    until("the notice came", || async { !customer.notices().is_empty() }).await;
    let told = customer.notices().remove(0);
    assert_eq!(
        (told.customer.as_str(), told.host, told.reader),
        ("acme", host.enrolled.host_id, Reader::Agent)
    );
    assert_eq!((told.number.number(), told.host_name.as_str()), (1, "box7"));
    until("it is written down", || async { world.event_kinds().await.contains(&"notice_sent".to_owned()) })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_reads_files_and_the_customer_learns_who_it_was() {
    let customer = Customer::default();
    let world = World::with_notice(customer.for_all().await).await;
    let host = world.enrol("box7").await;
    let path = "/v1/hosts/box7/escrow/read";
    let read = async |code: Option<u32>| -> Answered<EscrowFiles> {
        let asked = EscrowRead { code: code.map(|code| code.try_into().unwrap()) };
        world.admin().send(Method::POST, path, &asked).await
    };
    assert_eq!(read(None).await.code(), ErrorCode::NotFound);
    host.put_escrow(&version(1)).await.data(StatusCode::OK);
    host.put_escrow(&EscrowPut { code: 2.try_into().unwrap(), ..version(2) }).await.data(StatusCode::OK);
    let listed: EscrowList = world.admin().get("/v1/hosts/box7/escrow").await.data(StatusCode::OK);
    assert_eq!(listed, host.escrows().await);
    assert!(!world.event_kinds().await.contains(&"escrow_read".to_owned()), "a list shows no file");
    let found = read(None).await.data(StatusCode::OK).files;
    assert_eq!((found.len(), &found[0].file), (1, &version(2).file), "the one in force");
    let older = read(Some(1)).await.data(StatusCode::OK).files;
    assert_eq!((older.len(), &older[0].file), (1, &version(1).file));
    assert_eq!(read(Some(3)).await.code(), ErrorCode::NotFound);
    until("both notices came", || async { customer.notices().len() == 2 }).await;
    let told = customer.notices().remove(0);
    assert_eq!((told.reader, told.number.number(), told.customer.as_str()), (Reader::Operator, 2, "acme"));
    assert!(told.message.contains("was read by operator "), "{}", told.message);
    let events = world.store.events(hubd::store::EventFilter::default(), 500).await.unwrap();
    let read_by: Vec<bool> = events
        .iter()
        .filter(|event| event.kind == "escrow_read")
        .map(|event| event.actor.is_some())
        .collect();
    assert_eq!(read_by, [true, true]);
    let nobody: Answered<Value> = world.anyone().send(Method::POST, path, &EscrowRead::default()).await;
    assert_eq!(nobody.code(), ErrorCode::Unauthenticated);
    assert_eq!(world.anyone().get::<Value>("/v1/hosts/box7/escrow").await.code(), ErrorCode::Unauthenticated);
    for _ in 2..Act::Fetch.per_hour() {
        read(None).await.data(StatusCode::OK);
    }
    assert_eq!(read(None).await.code(), ErrorCode::RateLimited);
    host.read_escrow().await.data(StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_without_an_address_to_notify() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let kept = host.put_escrow(&version(1)).await.data(StatusCode::OK);
    assert_eq!(kept.notice, Notice::Unset, "the box can tell long before it matters");
    assert_eq!(host.escrows().await.notice, Notice::Unset);
    assert_eq!(host.read_escrow().await.code(), ErrorCode::NoticeUnset);
    let operator: Answered<Value> =
        world.admin().send(Method::POST, "/v1/hosts/box7/escrow/read", &EscrowRead::default()).await;
    assert_eq!(operator.code(), ErrorCode::NoticeUnset);
    assert!(!world.event_kinds().await.contains(&"escrow_read".to_owned()));
    let customer = Customer::default();
    let (folder, _temp) = world.stop().await;
    let world = World::delivery(folder, None, customer.for_all().await).await;
    let host = world.host(host.enrolled, host.key);
    host.read_escrow().await.data(StatusCode::OK);
    until("the notice came", || async { customer.notices().len() == 1 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_outlives_the_hub_and_a_deaf_customer_holds_up_no_other() {
    let (acme, bravo) = (Customer::default(), Customer::default());
    acme.answers.lock().unwrap().extend([StatusCode::SERVICE_UNAVAILABLE; 1000]);
    let settings = async || NoticeSettings {
        customers: [("bravo".parse().unwrap(), bravo.address().await)].into(),
        others: Some(acme.address().await),
        ..NoticeSettings::default()
    };
    let world = World::with_notice(settings().await).await;
    let (first, second) = (world.enrol("box7").await, world.enrol("box8").await);
    first.put_escrow(&version(1)).await.data(StatusCode::OK);
    let theirs = EscrowPut { customer: "bravo".parse().unwrap(), ..version(1) };
    second.put_escrow(&theirs).await.data(StatusCode::OK);
    first.read_escrow().await.data(StatusCode::OK);
    second.read_escrow().await.data(StatusCode::OK);
    until("bravo was told", || async { bravo.notices().len() == 1 }).await;
    assert!(acme.notices().is_empty());
    let (folder, _temp) = world.stop().await;
    acme.answers.lock().unwrap().clear();
    let world = World::delivery(folder, None, settings().await).await;
    until("acme was told", || async { acme.notices().len() == 1 }).await;
    until("it is written down", || async {
        world.event_kinds().await.iter().filter(|kind| *kind == "notice_sent").count() == 2
    })
    .await;
    assert_eq!((acme.notices()[0].host_name.as_str(), bravo.notices().len()), ("box7", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_see_a_customer_who_cannot_be_reached() {
    let acme = Customer::default();
    acme.answers.lock().unwrap().extend([StatusCode::SERVICE_UNAVAILABLE; 1000]);
    let world = World::with_notice(acme.for_all().await).await;
    let host = world.enrol("box7").await;
    host.put_escrow(&version(1)).await.data(StatusCode::OK);
    host.read_escrow().await.data(StatusCode::OK);
    world.clock.advance(8 * 24 * 3600);
    until("it was given up", || async { world.event_kinds().await.contains(&"notice_given_up".to_owned()) })
        .await;
    assert!(acme.notices().is_empty());
}
