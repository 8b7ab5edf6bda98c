//! Tests of the backup server client against recordings.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::sync::{Arc, Mutex};

use agentd::model::offsite::{Snapshot, VerifyEnd, VerifyTask};
use agentd::port::pbs::{BackupServer, Dial, Direct, PbsError};
use agentd::port::pve::transport::{Carried, Request, Response, Transport};
use holdfast_protocol::id::Vmid;
use holdfast_protocol::secret::Secret;
use holdfast_protocol::storage::Backend;
use holdfast_protocol::storage::report::PrunedBy;
use holdfast_seal::backup_key::BackupKey;
use holdfast_seal::{Creds, SealContext};
use serde_json::{Value, json};

const SECRET: &str = "11111111-2222-3333-4444-555555555555";
const KEY_FILE: &[u8] = include_bytes!("../../../seal/tests/backup-key.json");

/// Method and path, and the parameters.
type RecordedRequest = (String, Vec<(String, String)>);

/// Answers each call with the prepared answer, and keeps the request.
#[derive(Default)]
struct Recorded {
    answers: Mutex<Vec<(u16, String)>>,
    asked: Mutex<Vec<RecordedRequest>>,
}

impl Transport for Recorded {
    fn carry(&self, request: Request) -> Carried<'_> {
        assert_eq!(request.authorization.expose(), format!("PBSAPIToken=pve@pbs!bk:{SECRET}"));
        let params =
            request.params.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
        self.asked.lock().unwrap().push((format!("{} {}", request.method, request.path), params));
        let (status, body) = self.answers.lock().unwrap().remove(0);
        Box::pin(async move { Ok(Response { status, reason: String::new(), body: body.into_bytes() }) })
    }
}

struct Over(Arc<Recorded>);

impl Dial for Over {
    fn dial(&self, _: &Backend) -> Result<Arc<dyn Transport>, PbsError> {
        Ok(Arc::clone(&self.0) as Arc<dyn Transport>)
    }
}

fn backend(datastore: &str, namespace: Option<&str>) -> Backend {
    let key = BackupKey::parse(KEY_FILE).unwrap();
    let mut backend = json!({ "server": "10.66.0.1", "datastore": datastore,
        "fingerprint": vec!["86"; 32].join(":"), "key": key.fingerprint() });
    if let (Some(namespace), Some(map)) = (namespace, backend.as_object_mut()) {
        map.insert("namespace".to_owned(), namespace.into());
    }
    serde_json::from_value(json!({ "pbs": backend })).unwrap()
}

fn server(datastore: &str, namespace: Option<&str>) -> (BackupServer, Arc<Recorded>) {
    let (backend, target) = (backend(datastore, namespace), "off1".parse().unwrap());
    let meant = SealContext { target: &target, backend: &backend };
    let key = Some(BackupKey::parse(KEY_FILE).unwrap());
    let creds = Creds::new(meant, "pve@pbs!bk".to_owned(), Secret::new(SECRET.to_owned()), key).unwrap();
    let recorded = Arc::new(Recorded::default());
    (BackupServer::new(&Over(Arc::clone(&recorded)), &backend, &creds).unwrap(), recorded)
}

/// One recorded exchange, its groups made those of a container.
fn exchange(origin: &str) -> (u16, String) {
    let all = include_str!("../../../tests/pve-sim/pbs/exchanges.jsonl").lines();
    let mut all = all.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found = all.find(|one| one["origin"] == origin).unwrap_or_else(|| panic!("no exchange {origin}"));
    let body = found["body"].as_str().unwrap().replace("\"backup-type\":\"host\"", "\"backup-type\":\"ct\"");
    let body = ["h1", "h2", "n1", "n2"]
        .iter()
        .fold(body, |body, id| body.replace(&format!("\"backup-id\":\"{id}\""), "\"backup-id\":\"300\""));
    (u16::try_from(found["status"].as_u64().unwrap()).unwrap(), body)
}

fn answering(recorded: &Recorded, answers: impl IntoIterator<Item = (u16, String)>) {
    recorded.answers.lock().unwrap().extend(answers);
}

fn vmid() -> Vmid {
    Vmid::try_from(300).unwrap()
}

#[tokio::test]
async fn who_prunes_is_read_from_our_own_rights_there() {
    for (datastore, namespace, body, by) in [
        ("store1", None, exchange("06-api-list-verify.txt:5").1, PrunedBy::Server),
        ("store1", Some("tenant-a"), exchange("06-api-list-verify.txt:5").1, PrunedBy::Server),
        ("store1", None, exchange("06-api-list-verify.txt:9").1, PrunedBy::Server),
        (
            "store1",
            None,
            json!({ "data": { "/datastore/store1": { "Datastore.Prune": true } } }).to_string(),
            PrunedBy::Agent,
        ),
        (
            "store1",
            Some("a/b"),
            json!({ "data": { "/datastore": { "Datastore.Modify": true } } }).to_string(),
            PrunedBy::Agent,
        ),
        // A right that does not propagate, one on a child path, and one on a path that only looks similar.
        (
            "store1",
            Some("a"),
            json!({ "data": { "/datastore/store1": { "Datastore.Prune": false } } }).to_string(),
            PrunedBy::Server,
        ),
        (
            "store1",
            None,
            json!({ "data": { "/datastore/store1/a": { "Datastore.Prune": true } } }).to_string(),
            PrunedBy::Server,
        ),
        (
            "store12",
            None,
            json!({ "data": { "/datastore/store1": { "Datastore.Prune": true } } }).to_string(),
            PrunedBy::Server,
        ),
    ] {
        let (server, recorded) = server(datastore, namespace);
        answering(&recorded, [(200, body.clone())]);
        assert_eq!(server.pruned_by().await.unwrap(), by, "{datastore} {namespace:?} {body}");
    }
}

#[tokio::test]
async fn what_is_listed_is_read_with_its_key_and_what_the_server_found() {
    let (server, recorded) = server("store1", None);
    answering(&recorded, [exchange("06-api-list-verify.txt:158"), exchange("06-api-list-verify.txt:65")]);
    let (verified, before) = (server.snapshots().await.unwrap(), server.snapshots().await.unwrap());
    assert_eq!((verified.len(), before.len()), (6, 6), "{verified:#?}");
    for snapshot in &verified {
        assert_eq!(snapshot.guest, vmid());
        assert!(
            snapshot.verification.is_some_and(
                |said| said.well && (1_795_233_202..=1_795_233_203).contains(&said.at.as_second())
            )
        );
    }
    assert!(before.iter().all(|snapshot| snapshot.verification.is_none()));
    // One group may mix keys, and this one does.
    let under = |key: &str| {
        let own =
            |snapshot: &&Snapshot| snapshot.key.as_ref().is_some_and(|held| held.as_str().starts_with(key));
        verified.iter().filter(own).count()
    };
    assert_eq!((under("1f:84:19:dc"), under("07:8b:c8:23")), (5, 1), "{verified:#?}");

    // One part is unencrypted, only signed, or without a stated mode: it counts as no encryption. A backup that is
    // still being written counts as no backup.
    let whole = exchange("06-api-list-verify.txt:65").1;
    for (from, to) in [("encrypt", "none"), ("encrypt", "sign-only")] {
        answering(
            &recorded,
            [(
                200,
                whole.replacen(&format!("\"crypt-mode\":\"{from}\""), &format!("\"crypt-mode\":\"{to}\""), 1),
            )],
        );
        let odd = server.snapshots().await.unwrap();
        assert_eq!(odd.iter().filter(|snapshot| snapshot.key.is_none()).count(), 1, "{to}");
    }
    let half = json!({ "data": [{ "backup-type": "ct", "backup-id": "300", "backup-time": 1_795_233_180, "files": [] }] });
    answering(&recorded, [(200, half.to_string())]);
    assert_eq!(server.snapshots().await.unwrap(), Vec::new());
}

/// `vzdump` uploads its log after the backup, and the server lists it without a mode: only files with data count.
#[tokio::test]
async fn the_log_of_a_backup_says_nothing_of_its_encryption() {
    let (server, recorded) = server("store1", None);
    let listed = |extra: &[serde_json::Value]| {
        let mut files = vec![
            json!({ "filename": "pct.conf.blob", "crypt-mode": "encrypt", "size": 412 }),
            json!({ "filename": "root.pxar.didx", "crypt-mode": "encrypt", "size": 9_000_000 }),
            json!({ "filename": "catalog.pcat1.didx", "crypt-mode": "encrypt", "size": 2_048 }),
            json!({ "filename": "index.json.blob", "crypt-mode": "sign-only", "size": 481 }),
            json!({ "filename": "client.log.blob" }),
        ];
        files.extend_from_slice(extra);
        let row = json!({ "backup-type": "ct", "backup-id": "300", "backup-time": 1_795_233_180, "size": 9_002_941,
            "fingerprint": vec!["ab"; 32].join(":"), "files": files });
        (200, json!({ "data": [row] }).to_string())
    };
    answering(&recorded, [listed(&[])]);
    let key = server.snapshots().await.unwrap().remove(0).key.unwrap();
    assert_eq!(key.as_str(), vec!["ab"; 32].join(":"));
    for odd in [
        json!({ "filename": "fw.conf.blob", "crypt-mode": "none" }),
        json!({ "filename": "other.ppxar.didx", "crypt-mode": "sign-only" }),
        json!({ "filename": "anything.blob" }),
    ] {
        answering(&recorded, [listed(std::slice::from_ref(&odd))]);
        assert_eq!(server.snapshots().await.unwrap().remove(0).key, None, "{odd}");
    }
}

#[tokio::test]
async fn a_verification_is_asked_for_one_guest_and_followed() {
    let (server, recorded) = server("store1", Some("hf"));
    answering(&recorded, [exchange("06-api-list-verify.txt:130"), exchange("06-api-list-verify.txt:134")]);
    let task = server.verify(vmid(), 7).await.unwrap();
    assert_eq!(task.began().as_second(), 1_795_233_202);
    assert_eq!(server.ended(&task).await.unwrap(), Some(VerifyEnd::Well));
    let asked = recorded.asked.lock().unwrap().clone();
    assert_eq!(asked[0].0, "POST /api2/json/admin/datastore/store1/verify");
    let params: Vec<(&str, &str)> = asked[0].1.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let wanted = [
        ("backup-type", "ct"),
        ("backup-id", "300"),
        ("ignore-verified", "1"),
        ("outdated-after", "7"),
        ("ns", "hf"),
    ];
    assert_eq!(params, wanted);
    assert_eq!(
        asked[1].0,
        "GET /api2/json/nodes/localhost/tasks/UPID%3Apbs-test%3A00005406%3A0005459A%3A0000006A%3A6B0115B2%3Averify_group%3Astore1%5Cx3a-host-h2%3Ahost1%40pbs%21agent%3A/status"
    );
    let running = json!({ "data": { "status": "running" } }).to_string();
    let failed = "verification failed - please check the log for details";
    let badly = json!({ "data": { "status": "stopped", "exitstatus": failed } }).to_string();
    answering(&recorded, [(200, running), (200, badly)]);
    assert_eq!(server.ended(&task).await.unwrap(), None);
    assert_eq!(server.ended(&task).await.unwrap(), Some(VerifyEnd::Badly(failed.to_owned())));
    for odd in ["", "UPID:", "UPID:a:b:c:d:zz:", "UPID:a:b:c:d"] {
        assert_eq!(VerifyTask::parse(odd), None, "{odd}");
    }
}

#[tokio::test]
async fn a_refusal_is_reported_in_the_servers_words_and_never_with_a_secret() {
    let (server, recorded) = server("store1", None);
    for (origin, says) in [
        (
            "06-api-list-verify.txt:94",
            "(403): permission check failed - missing Datastore.Verify|Datastore.Backup on /datastore/store1",
        ),
        (
            "06-api-list-verify.txt:102",
            "(400): backup owner check failed (power@pbs!agent != host1@pbs!agent)",
        ),
        ("09-errors.txt:303", "refuses our token"),
    ] {
        answering(&recorded, [exchange(origin)]);
        let error = server.verify(vmid(), 7).await.unwrap_err();
        assert!(error.to_string().contains(says), "{origin}: {error}");
        assert!(!format!("{error:?}").contains(SECRET));
    }
    answering(&recorded, [(200, "{\"data\":{".to_owned()), (200, "{\"data\":\"UPID:x\"}".to_owned())]);
    assert!(matches!(server.snapshots().await.unwrap_err(), PbsError::Garbled { .. }));
    assert!(matches!(server.verify(vmid(), 7).await.unwrap_err(), PbsError::Garbled { .. }));
}

#[test]
fn only_backup_servers_are_dialled() {
    let nfs: Backend =
        serde_json::from_value(json!({ "nfs": { "server": "nas", "export": "/srv" } })).unwrap();
    assert!(matches!(Direct.dial(&nfs), Err(PbsError::Other)));
    assert!(Direct.dial(&backend("store1", None)).is_ok());
}
