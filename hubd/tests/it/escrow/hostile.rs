//! Hostile hosts at the escrow, and a hub that was set back.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::escrow::{EscrowBytes, EscrowPut, form};
use hubd::domain::escrow::{Act, SUPERSEDED_KEPT};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Customer, version};
use crate::world::World;

/// A put of any text as the file.
fn putting(text: &str) -> EscrowPut {
    let file = EscrowBytes::try_from(text.as_bytes().to_vec()).unwrap();
    EscrowPut { sha256: file.sha256(), file, ..version(1) }
}

fn age(header: &str) -> EscrowPut {
    putting(&form::to_text(format!("age-encryption.org/v1\n{header}\n--- mac\nsealed").as_bytes()))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_escrow_file_is_refused_and_changes_nothing() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let whole = String::from_utf8(version(1).file.as_bytes().to_vec()).unwrap();
    for (put, code) in [
        (putting("hello"), ErrorCode::EscrowBroken),
        (putting(&whole[..whole.len() - 40]), ErrorCode::EscrowBroken),
        (putting(&whole.repeat(2)), ErrorCode::EscrowBroken),
        (age("-> scrypt salt 1\nbody"), ErrorCode::EscrowWork),
        (age("-> scrypt salt 62\nbody"), ErrorCode::EscrowWork),
        (age("-> scrypt salt 99999999999\nbody"), ErrorCode::EscrowBroken),
        (age("-> X25519 share\nbody"), ErrorCode::EscrowBroken),
        (age("-> scrypt salt 16\nbody\n-> X25519 share\nbody"), ErrorCode::EscrowBroken),
        (EscrowPut { sha256: version(2).sha256, ..version(1) }, ErrorCode::EscrowBroken),
        (EscrowPut { number: 999_999.try_into().unwrap(), ..version(1) }, ErrorCode::EscrowNumber),
    ] {
        assert_eq!(host.put_escrow(&put).await.code(), code, "{put:?}");
    }
    let good = serde_json::to_value(version(1)).unwrap();
    let with = |key: &str, value: Value| {
        let mut changed = good.clone();
        changed[key] = value;
        changed
    };
    for (body, code) in [
        (with("host", json!("box8")), ErrorCode::UnknownField),
        (with("number", json!(0)), ErrorCode::Range),
        (with("file", json!("AAAA=")), ErrorCode::Range),
        (with("file", json!("A".repeat(8000))), ErrorCode::Range),
        (with("file", json!("A".repeat(20_000))), ErrorCode::Size),
        (with("code", json!(-1)), ErrorCode::Range),
        (with("schema", json!("holdfast.escrow-put/v2")), ErrorCode::Version),
    ] {
        let answer = host.client.send::<Value>(Method::PUT, "/v1/agent/escrow", &body).await;
        assert_eq!(answer.code(), code, "{body}");
    }
    assert!(host.escrows().await.versions.is_empty());
    host.put_escrow(&version(1)).await.data(StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_has_its_own_alone_and_takes_nothing_back() {
    let world = World::with_notice(Customer::default().for_all().await).await;
    let (mine, other) = (world.enrol("box7").await, world.enrol("box8").await);
    mine.put_escrow(&version(1)).await.data(StatusCode::OK);
    assert!(other.escrows().await.versions.is_empty());
    assert_eq!(other.read_escrow().await.code(), ErrorCode::NotFound);
    for path in ["/v1/agent/escrow", "/v1/agent/escrow/versions", "/v1/agent/escrow/versions/1"] {
        for client in [world.anyone(), world.admin()] {
            assert_eq!(client.get::<Value>(path).await.code(), ErrorCode::Certificate, "{path}");
        }
        let deleted = mine.client.send::<Value>(Method::DELETE, path, &()).await;
        assert_eq!(deleted.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
    }
    // Another customer's key would send the notices of this one's elsewhere.
    let astray = EscrowPut { customer: "other".parse().unwrap(), ..version(2) };
    assert_eq!(mine.put_escrow(&astray).await.code(), ErrorCode::EscrowOther);
    world.admin().send::<Value>(Method::POST, "/v1/hosts/box7/revoke", &()).await.data(StatusCode::OK);
    assert_eq!(mine.read_escrow().await.code(), ErrorCode::Revoked);
    assert_eq!(mine.put_escrow(&version(2)).await.code(), ErrorCode::Revoked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_held_up_and_pushes_nothing_out() {
    let world = World::with_notice(Customer::default().for_all().await).await;
    let host = world.enrol("box7").await;
    host.put_escrow(&version(1)).await.data(StatusCode::OK);
    let mut number = 2;
    let mut full = false;
    // Nothing may go for ninety days.
    for _hour in 0..8 {
        let mut taken = 0;
        loop {
            let answer = host.put_escrow(&version(number)).await;
            if answer.status == StatusCode::OK {
                (number, taken) = (number + 1, taken + 1);
                continue;
            }
            let code = answer.code();
            full |= code == ErrorCode::Quota;
            assert!(full || code == ErrorCode::RateLimited, "{code}");
            break;
        }
        assert!(taken <= Act::Write.per_hour());
        world.clock.advance(3600);
    }
    assert!(full, "the versions were never full");
    let list = host.escrows().await.versions;
    assert_eq!((list.len(), list.last().unwrap().number.number()), (32, 1));
    for _ in 0..Act::Read.per_hour() {
        host.read_escrow().await.data(StatusCode::OK);
    }
    let refused = host.read_escrow().await;
    assert_eq!(refused.code(), ErrorCode::RateLimited);
    assert!(refused.headers.contains_key("retry-after"));
    world.clock.advance(3600);
    host.read_escrow().await.data(StatusCode::OK);
    world.clock.advance(SUPERSEDED_KEPT.as_secs());
    host.put_escrow(&version(number)).await.data(StatusCode::OK);
    let list = host.escrows().await.versions;
    assert_eq!((list.len(), list.last().unwrap().number.number()), (32, 2), "the oldest went");
}

/// The same hub from an older copy of its folder: what it lost is put again, and nothing else changes.
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_was_set_back_receives_the_keys_again() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let first = host.put_escrow(&version(1)).await.data(StatusCode::OK).version;
    let (folder, _temp) = world.stop().await;
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
    }
    let world = World::in_folder(folder, None).await;
    let again =
        world.host(host.enrolled.clone(), rcgen::KeyPair::from_pem(&host.key.serialize_pem()).unwrap());
    let second = again.put_escrow(&version(2)).await.data(StatusCode::OK).version;
    drop(world.stop().await);
    let world = World::in_folder(copy.path().to_owned(), None).await;
    let again = world.host(host.enrolled, host.key);
    assert_eq!(again.escrows().await.versions, std::slice::from_ref(&first));
    let put = again.put_escrow(&version(2)).await.data(StatusCode::OK).version;
    assert_eq!((put.number, &put.sha256), (second.number, &second.sha256));
    assert_eq!(again.escrows().await.versions, [put, first]);
}
