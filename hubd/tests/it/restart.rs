//! Durability over restarts, and one hub per folder.

use alerts::Ruleset;
use holdfast_protocol::operator::{DesiredVersion, HostDetail};
use holdfast_protocol::report::Sections;
use hubd::clock::SystemClock;
use hubd::run::{self, RunError};
use reqwest::StatusCode;

use crate::world::{World, document};

#[tokio::test(flavor = "multi_thread")]
async fn hosts_reports_and_documents_are_there_after_a_restart() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    world
        .admin()
        .put_desired::<DesiredVersion>("box7", Some("\"0\""), document(1))
        .await
        .data(StatusCode::OK);
    let before: HostDetail = world.admin().get("/v1/hosts/box7").await.data(StatusCode::OK);
    let token = world.token();
    let (folder, _temp) = world.stop().await;
    let world = World::in_folder(folder, None).await;
    assert_eq!(world.token(), token, "a second start makes no second admin");
    let after: HostDetail = world.admin().get("/v1/hosts/box7").await.data(StatusCode::OK);
    assert_eq!(before, after);
    let again = world.client(Some((&host.enrolled.certificate_pem, &host.key)));
    let answer: crate::world::Answered<holdfast_protocol::checkin::CheckinAnswer> =
        again.send(reqwest::Method::POST, "/v1/agent/checkin?wait=25s", &host.full(2, 0)).await;
    assert_eq!(answer.data(StatusCode::OK).desired, Some(document(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_good_order_keeps_the_last_contact_of_a_quiet_host() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let seen_at = world.clock.advance(30);
    host.check_in(&host.changed(2, 0, Sections::default()), "0s").await.data(StatusCode::OK);
    let (folder, _temp) = world.stop().await;
    let world = World::in_folder(folder, None).await;
    assert_eq!(world.view("box7").await.seen_at, Some(seen_at));
}

/// The hub remembers which hosts had nothing to say, and asks the store of the others.
#[tokio::test(flavor = "multi_thread")]
async fn quiet_hosts_get_after_a_restart_what_waits_for_them() {
    let world = World::start().await;
    let (quiet, waits) = (world.enrol("quiet").await, world.enrol("waits").await);
    for host in [&quiet, &waits] {
        host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
        host.check_in(&host.changed(2, 0, Sections::default()), "0s").await.data(StatusCode::OK);
    }
    world
        .admin()
        .put_desired::<DesiredVersion>("waits", Some("\"0\""), document(1))
        .await
        .data(StatusCode::OK);
    let (folder, _temp) = world.stop().await;
    let world = World::in_folder(folder, None).await;
    for (host, desired) in [(&quiet, None), (&waits, Some(document(1)))] {
        let again = world.client(Some((&host.enrolled.certificate_pem, &host.key)));
        let request = host.changed(3, 0, Sections::default());
        let answer: crate::world::Answered<holdfast_protocol::checkin::CheckinAnswer> =
            again.send(reqwest::Method::POST, "/v1/agent/checkin?wait=0s", &request).await;
        let answer = answer.data(StatusCode::OK);
        assert_eq!((answer.acknowledged, answer.desired), (3, desired));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_hub_in_the_same_folder_is_refused() {
    let world = World::start().await;
    let refused = run::open(&world.folder, Ruleset::without_channels(), &SystemClock).await.err().unwrap();
    assert!(matches!(refused, RunError::Locked { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_check_in_does_not_keep_the_hub_from_stopping() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    host.check_in(&host.full(1, 0), "0s").await.data(StatusCode::OK);
    let request = host.changed(2, 0, Sections::default());
    let seen_at = world.clock.advance(30);
    let stop = async {
        crate::world::until("the check-in is kept", || async {
            world.view("box7").await.seen_at == Some(seen_at)
        })
        .await;
        world.stop().await
    };
    let (answer, _) = tokio::join!(host.check_in(&request, "25s"), stop);
    assert_eq!(answer.data(StatusCode::OK).acknowledged, 2);
}
