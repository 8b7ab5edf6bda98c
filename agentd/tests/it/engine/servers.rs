//! Tests of backup servers called by their API.

use std::path::PathBuf;
use std::sync::Arc;

use agentd::port::pbs::{Dial, PbsError};
use agentd::port::pve::transport::{Carried, Request, Response, Transport};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::storage::Backend;
use holdfast_protocol::storage::report::{OffSiteReport, PrunedBy};
use pve_sim::backup_api::{Ask, answer};
use serde_json::json;

use super::drift::report;
use super::entries::{Ground, server};
use super::offsite::key;
use super::world::{guest, vmid};

/// The server's API without sockets: its folder in the simulator.
#[derive(Clone)]
pub struct Dialled(pub PathBuf);

impl Dial for Dialled {
    fn dial(&self, _: &Backend) -> Result<Arc<dyn Transport>, PbsError> {
        Ok(Arc::new(self.clone()))
    }
}

impl Transport for Dialled {
    #[expect(clippy::disallowed_methods, reason = "the simulator's own clock is the machine's")]
    fn carry(&self, request: Request) -> Carried<'_> {
        let params: Vec<(&str, &str)> =
            request.params.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        let path = request.path.strip_prefix("/api2/json").unwrap();
        let (method, authorization) = (request.method, request.authorization.expose());
        let ask = Ask { method, path, params: &params, authorization };
        let (status, body) = answer(&self.0, jiff::Timestamp::now().as_second(), &ask);
        Box::pin(async move { Ok(Response { status, reason: String::new(), body: body.into_bytes() }) })
    }
}

/// A host with one guest whose policy wants its off-site backups verified, and a server that holds two of them.
async fn ground() -> (Ground, PathBuf) {
    let mut ground = Ground::new().await;
    let place = ground.world.dir.path().join("pve/run/outside/10.66.0.1");
    let group = place.join("store1/ns/hf/ct/300");
    std::fs::create_dir_all(&group).unwrap();
    for (at, sealed) in [("2026-11-19", true), ("2026-11-20", true)] {
        let snapshot = group.join(format!("{at}T03:00:00Z.tar"));
        std::fs::write(&snapshot, "bytes").unwrap();
        if sealed {
            std::fs::write(snapshot.with_extension("tar.sealed"), key().as_str()).unwrap();
        }
    }
    let schedule = json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    let backup =
        json!({ "target": "off1", "schedule": schedule, "retention": "keep_all", "consistency": "crash" });
    let off_site = json!({ "key": key(), "verify_days": 7, "backup": backup });
    let mut goal = serde_json::to_value(guest(1)).unwrap();
    goal.as_object_mut().unwrap().insert("policy".to_owned(), "usual".into());
    // Requested by name: no other guest gets a number that has backups.
    goal.as_object_mut().unwrap().insert("vmid".to_owned(), 300.into());
    ground.guests =
        json!({ "policies": [{ "name": "usual", "tiers": { "off_site": off_site } }], "guests": [goal] });
    (ground, place)
}

fn off_site(view: &agentd::model::storage::StorageView) -> Option<&OffSiteReport> {
    view.targets.first()?.off_site.as_ref()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_reported_of_looks_through_what_is_due_and_raises_the_alarm() {
    let (mut ground, place) = ground().await;
    // The guest is made first: no guest is made under a number that has backups already.
    let (lists, demoted) = (place.join("store1/ns/hf/ct"), place.join("aside"));
    std::fs::rename(&lists, &demoted).unwrap();
    let creds = ground.good();
    ground.goal("attached", "off1", &server(), Some(&creds)).await;
    ground.sign("attach_storage").await;
    ground.settled().await;
    let promised = |view: &agentd::model::view::HostSnapshot| {
        report(view, 1).is_some_and(|report| {
            let promise = report.protection.as_ref().and_then(|reported| reported.in_force.as_ref());
            report.vmid == Some(vmid(300)) && promise.is_some_and(|promise| promise.tiers.off_site.is_some())
        })
    };
    ground.agent.until("a guest with an off-site promise", promised).await;
    std::fs::remove_dir_all(&lists).ok();
    std::fs::rename(&demoted, &lists).unwrap();
    // Another document is a reason to query at once.
    ground.goal("attached", "off1", &server(), Some(&creds)).await;
    let view = ground
        .until("looked through by the server", |view| {
            off_site(view).is_some_and(|reported| reported.verified_at.is_some())
        })
        .await;
    let reported = off_site(&view).unwrap();
    assert_eq!(
        (reported.backups, &reported.key, reported.pruned_by),
        (2, &key(), PrunedBy::Server),
        "{reported:?}"
    );
    assert!(reported.unsealed.is_empty() && reported.damaged.is_empty(), "{reported:?}");
    assert!(
        place.join("store1/ns/hf/ct/300/2026-11-19T03:00:00Z.tar.verified").exists(),
        "the older one as well"
    );
    let audit = ground.agent.ports.store.audit(400).await.unwrap();
    let asked = audit.iter().filter(|line| line.action == "offsite_verify").count();
    assert_eq!(asked, 1, "{audit:#?}");

    // One of them came in the clear, and the token may remove from now on.
    std::fs::remove_file(place.join("store1/ns/hf/ct/300/2026-11-20T03:00:00Z.tar.sealed")).unwrap();
    std::fs::write(place.join("role"), "DatastorePowerUser").unwrap();
    ground.goal("attached", "off1", &server(), Some(&creds)).await;
    let view = ground
        .until("an alarm", |view| off_site(view).is_some_and(|reported| reported.unsealed.len() == 1))
        .await;
    assert_eq!(off_site(&view).unwrap().pruned_by, PrunedBy::Agent);
    assert!(view.problems.iter().any(|problem| problem.code == ErrorCode::BackupUnsealed), "{view:#?}");

    // A server that no longer knows our token is reported as silent; its earlier report stays.
    std::fs::write(place.join("secret"), "another").unwrap();
    ground.goal("attached", "off1", &server(), Some(&creds)).await;
    let view =
        ground.until("silent", |view| off_site(view).is_some_and(|reported| reported.silent.is_some())).await;
    let reported = off_site(&view).unwrap();
    assert!(
        reported.silent.as_ref().unwrap().contains("refuses our token") && reported.backups == 2,
        "{reported:?}"
    );
    ground.agent.ports.store.verify_audit().await.unwrap();
    ground.agent.stop().await;
}
