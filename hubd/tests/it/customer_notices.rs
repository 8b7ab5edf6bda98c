//! Notices of destructive jobs at the contact of a customer.

use std::os::unix::fs::PermissionsExt as _;

use holdfast_protocol::checkin::CheckinRequest;
use holdfast_protocol::customer::CustomerView;
use holdfast_protocol::id::{GuestUid, JobId};
use holdfast_protocol::job::{JobReport, JobState, Verb};
use holdfast_protocol::operator::{EventView, JobSubmit, JobView, Page};
use holdfast_protocol::report::Sections;
use hubd::clock::Clock as _;
use hubd::settings::{Given, Settings, SettingsError};
use jiff::SignedDuration;
use rcgen::{CertificateParams, KeyPair};
use reqwest::{Method, StatusCode};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::mail_server::MailServer;
use crate::world::{Host, Options, World, until};

fn uid(number: u128) -> GuestUid {
    GuestUid::new(Uuid::from_u128(number))
}

fn job(number: u128) -> JobId {
    JobId::new(Uuid::from_u128(100 + number))
}

/// Settings with a mail server, by whose receiver customers get mail.
fn settings(folder: &std::path::Path, port: u16, customer_mail: &str) -> Result<Settings, SettingsError> {
    let file = folder.join("receiver-mail.toml");
    let text = format!(
        "kind = \"smtp\"\nserver = \"localhost\"\nport = {port}\nsecurity = \"plain_loopback\"\n\
         from = \"holdfast@ops.example\"\nto = [\"on-call@ops.example\"]\n"
    );
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let text = format!(
        "deliver_to = \"loopback\"\ncustomer_mail = \"{customer_mail}\"\n[[receiver]]\nname = \"mail\"\nfile = \"{}\"\n",
        file.display()
    );
    std::fs::write(folder.join("hub.toml"), text).unwrap();
    Settings::load(Given { dir: folder.to_owned(), ..Given::default() })
}

/// Each guest has a job that waits.
async fn all_wait(world: &World, host: &Host, customers: &[&str]) {
    let admin = world.admin();
    let numbered = || (1..).zip(customers);
    for (number, _) in numbered() {
        let submit = JobSubmit { job: job(number), blob: "a job".to_owned(), tunnel: None };
        admin.send::<JobView>(Method::POST, "/v1/hosts/box7/jobs", &submit).await.data(StatusCode::CREATED);
    }
    let guests = numbered().map(|(number, customer)| {
        json!({ "uid": uid(number), "name": format!("g{number}"), "customer": customer, "vmid": 100 + number,
            "status": "managed", "run": "running" })
    });
    let guests = serde_json::from_value(guests.collect()).unwrap();
    let now = world.clock.now();
    let waits = |number| JobReport {
        id: job(number),
        blob: hex::encode(Sha256::digest(b"a job")),
        state: JobState::Waiting,
        verb: Some(Verb::DestroyGuest),
        guest: Some(uid(number)),
        signers: Vec::new(),
        taken_at: now,
        due_at: Some(now + SignedDuration::from_mins(10)),
        ended_at: None,
        operation: None,
        problem: None,
        correlation_id: None,
    };
    let jobs = Some(numbered().map(|(number, _)| waits(number)).collect());
    // What the guests are is known before the jobs are.
    for (sequence, sections) in
        [Sections { guests: Some(guests), ..Sections::default() }, Sections { jobs, ..Sections::default() }]
            .into_iter()
            .enumerate()
    {
        let request = host.full(1 + sequence as u64, 0);
        let sections = Sections { agent: request.sections.agent.clone(), ..sections };
        host.check_in(&CheckinRequest { sections, ..request }, "0s").await.data(StatusCode::OK);
    }
}

async fn add(world: &World, name: &str, contact: serde_json::Value) {
    let new = json!({ "name": name, "fields": { "contact": contact } });
    world.admin().send::<CustomerView>(Method::POST, "/v1/customers", &new).await.data(StatusCode::CREATED);
}

async fn given_up(world: &World) -> Vec<String> {
    let events: Page<EventView> = world.admin().get("/v1/events").await.data(StatusCode::OK);
    let given_up = events.items.into_iter().filter(|event| event.kind == "notice_given_up");
    given_up.map(|event| event.message).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_gets_mail_at_their_contact_before_the_job_is_done() {
    let folder = tempfile::tempdir().unwrap();
    // Plain, on this machine alone; the server wants a certificate all the same.
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let mut mails = MailServer::start("plain", &leaf.pem(), &key.serialize_pem());
    let refused = settings(folder.path(), mails.port, "nope");
    assert!(matches!(refused, Err(SettingsError::CustomerMail { .. })), "{refused:?}");
    let Settings { alerts, escrow_notice: notice, .. } = settings(folder.path(), mails.port, "mail").unwrap();
    let world = World::with(Options { alerts, notice, ..Options::default() }).await;
    add(&world, "acme", json!({ "kind": "mail", "address": "boss@acme.example" })).await;
    // Nothing listens there, and the egress policy would let no other place through.
    add(&world, "beta", json!({ "kind": "webhook", "url": "https://127.0.0.1:9/hook" })).await;
    let host = world.enrol("box7").await;
    all_wait(&world, &host, &["acme", "beta", "cyd"]).await;
    // The server stays until the end: it answers that it took the mail only after it said so here.
    let (mail, _mails) = tokio::task::spawn_blocking(move || (mails.next_mail(), mails)).await.unwrap();
    assert!(mail.to_string().contains("boss@acme.example"), "{mail}");
    assert!(
        !mail.to_string().contains("on-call@ops.example"),
        "the receiver's own people are not customers: {mail}"
    );
    let text = mail["text"].as_str().unwrap();
    assert!(text.contains(&format!("holdfast job object {}", job(1))), "{text}");
    assert!(!text.contains(&job(2).to_string()), "another customer's job is not in it: {text}");
    until("acme's notice is written down", || async {
        world.event_kinds().await.iter().any(|kind| kind == "notice_sent")
    })
    .await;
    // Without any address operators hear at once; of one that does not answer, when the job is due.
    until("operators hear of cyd", || async { given_up(&world).await.len() == 1 }).await;
    assert!(given_up(&world).await[0].starts_with("cyd could not be notified of the job"));
    until("operators hear of beta", || async {
        world.clock.advance(120);
        given_up(&world).await.len() == 2
    })
    .await;
    let said = given_up(&world).await.remove(0);
    assert!(said.contains("beta") && said.contains("(https://127.0.0.1:9/hook)"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_gets_so_many_notices_an_hour() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    all_wait(&world, &host, &["acme"; 61]).await;
    until("operators hear of the last", || async {
        given_up(&world).await.iter().any(|message| message.starts_with("acme is not notified of job"))
    })
    .await;
}
