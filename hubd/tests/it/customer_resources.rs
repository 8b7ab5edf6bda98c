//! Customers as resources, and what their own persons see and do.

use holdfast_protocol::access::AccessScope;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::customer::{CustomerOrigin, CustomerView};
use holdfast_protocol::id::{GuestUid, JobId};
use holdfast_protocol::job::{JobReport, JobState, Verb};
use holdfast_protocol::objection::GuestJobView;
use holdfast_protocol::operator::{EventView, GuestOnHost, JobSubmit, JobView, Page, Role};
use holdfast_protocol::report::Sections;
use holdfast_protocol::secret::Secret;
use hubd::task::escrow_notice::NoticeSettings;
use hubd::task::http_post::WebhookSettings;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::notices::Server;
use crate::operators::person;
use crate::world::{Client, Host, World, until};

fn uid(number: u128) -> GuestUid {
    GuestUid::new(Uuid::from_u128(number))
}

fn guests(all: &[(u128, &str)]) -> Value {
    let guests = all.iter().map(|(number, customer)| {
        json!({ "uid": uid(*number), "name": format!("g{number}"), "customer": customer, "vmid": 100 + number,
            "status": "managed", "run": "running" })
    });
    guests.collect()
}

async fn reports(host: &Host, sequence: u64, sections: Sections) {
    let request = host.full(sequence, 0);
    let sections = Sections { agent: request.sections.agent.clone(), ..sections };
    let request = holdfast_protocol::checkin::CheckinRequest { sections, ..request };
    host.check_in(&request, "0s").await.data(StatusCode::OK);
}

async fn of_customer(world: &World, name: &str, customer: &str) -> Client {
    let scope = AccessScope::Customer { customer: customer.parse().unwrap() };
    world.with_token(&person(world, name, Role::Customer, scope).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_is_changed_over_the_version_that_was_read() {
    let world = World::start().await;
    let (admin, path) = (world.admin(), "/v1/customers/acme");
    let fields = json!({ "display_name": "Acme", "contact": { "kind": "mail", "address": "ops@acme.example" },
        "notes": "pays late", "labels": { "tier": "gold" } });
    let request = json!({ "name": "acme", "fields": fields });
    let keyed = admin.with("idempotency-key", "c-1");
    let made = keyed.send::<CustomerView>(Method::POST, "/v1/customers", &request).await;
    assert_eq!(made.headers["etag"], "\"1\"");
    let made = made.data(StatusCode::CREATED);
    let again: CustomerView =
        keyed.send(Method::POST, "/v1/customers", &request).await.data(StatusCode::CREATED);
    assert_eq!(again, made);
    assert_eq!(
        admin.send::<Value>(Method::POST, "/v1/customers", &request).await.code(),
        ErrorCode::NameTaken
    );
    let change = json!({ "labels": { "set": { "tier": "silver" } }, "remove": ["contact"] });
    for (client, wanted) in [
        (admin.clone(), ErrorCode::PreconditionRequired),
        (admin.with("if-match", "one"), ErrorCode::Range),
        (admin.with("if-match", "\"7\""), ErrorCode::PreconditionFailed),
    ] {
        assert_eq!(client.send::<Value>(Method::PATCH, path, &change).await.code(), wanted);
    }
    let seen = admin.with("if-match", "\"1\"");
    let changed = seen.send::<CustomerView>(Method::PATCH, path, &change).await;
    assert_eq!(changed.headers["etag"], "\"2\"");
    let changed = changed.data(StatusCode::OK);
    assert_eq!(
        (changed.fields.contact.is_none(), changed.fields.labels.to_string()),
        (true, "tier=silver".to_owned())
    );
    assert!(changed.fields.notes.is_some());
    let read = admin.get::<CustomerView>(path).await;
    assert_eq!(read.headers["etag"], "\"2\"");
    // Their own people see it without the notes, and no other customer.
    let ann = of_customer(&world, "ann", "acme").await;
    let own: CustomerView = ann.get(path).await.data(StatusCode::OK);
    assert_eq!((own.fields.notes, own.version), (None, 2));
    assert_eq!(ann.get::<Value>("/v1/customers/beta").await.code(), ErrorCode::NotFound);
    let listed: Page<CustomerView> = ann.get("/v1/customers").await.data(StatusCode::OK);
    assert_eq!(listed.items.len(), 1);
    // What names it keeps it.
    let host = world.enrol("box7").await;
    let sections = Sections {
        guests: serde_json::from_value(guests(&[(1, "acme"), (2, "beta")])).unwrap(),
        ..Sections::default()
    };
    reports(&host, 1, sections).await;
    let all: Page<CustomerView> = admin.get("/v1/customers").await.data(StatusCode::OK);
    let origins: Vec<_> = all.items.iter().map(|one| (one.name.as_str(), one.origin)).collect();
    assert_eq!(origins, [("acme", CustomerOrigin::Registered), ("beta", CustomerOrigin::Named)]);
    let used = admin.with("if-match", "\"2\"").send::<Value>(Method::DELETE, path, &json!({})).await;
    assert_eq!(used.code(), ErrorCode::InUse);
    let says = used.envelope.error.unwrap().message;
    assert!(says.contains("1 guests") && says.contains("1 people"), "{says}");
}

fn job_report(job: JobId, guest: GuestUid, state: JobState) -> JobReport {
    JobReport {
        id: job,
        blob: hex::encode(Sha256::digest(b"a job")),
        state,
        verb: Some(Verb::DestroyGuest),
        guest: Some(guest),
        signers: Vec::new(),
        taken_at: "2026-11-28T14:00:00Z".parse().unwrap(),
        due_at: Some("2026-11-28T14:10:00Z".parse().unwrap()),
        ended_at: None,
        operation: None,
        problem: None,
        correlation_id: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_sees_theirs_hears_of_a_destructive_job_and_objects() {
    let server = Server::default();
    let url = server.start().await.expose().parse().unwrap();
    let webhook = WebhookSettings { url, secret: Secret::new("k".repeat(32)), former_secret: None };
    let notice = NoticeSettings {
        customers: [("acme".parse().unwrap(), webhook)].into(),
        ..NoticeSettings::default()
    };
    let world = World::with_notice(notice).await;
    let (admin, host) = (world.admin(), world.enrol("box7").await);
    let job = |number| JobId::new(Uuid::from_u128(number));
    for number in [1, 2] {
        let submit = JobSubmit { job: job(number), blob: "a job".to_owned(), tunnel: None };
        admin.send::<JobView>(Method::POST, "/v1/hosts/box7/jobs", &submit).await.data(StatusCode::CREATED);
    }
    let of_both = guests(&[(1, "acme"), (2, "beta")]);
    let sections = |state| Sections {
        guests: serde_json::from_value(of_both.clone()).unwrap(),
        jobs: Some(vec![job_report(job(1), uid(1), state), job_report(job(2), uid(2), state)]),
        ..Sections::default()
    };
    // What the guests are is known before the jobs are.
    reports(&host, 1, Sections { jobs: None, ..sections(JobState::Waiting) }).await;
    reports(&host, 2, sections(JobState::Waiting)).await;
    let ann = of_customer(&world, "ann", "acme").await;
    let own: Page<GuestOnHost> = ann.get("/v1/guests").await.data(StatusCode::OK);
    assert_eq!(own.items.iter().map(|one| one.guest.uid).collect::<Vec<_>>(), [Some(uid(1))]);
    let filtered: Page<GuestOnHost> = ann.get("/v1/guests?filter=@customer-beta").await.data(StatusCode::OK);
    assert!(filtered.items.is_empty());
    let jobs: Page<GuestJobView> = ann.get("/v1/jobs").await.data(StatusCode::OK);
    assert_eq!(jobs.items.iter().map(|one| one.id).collect::<Vec<_>>(), [job(1)]);
    for (path, wanted) in [
        ("/v1/hosts", ErrorCode::Forbidden),
        ("/v1/hosts/box7", ErrorCode::Forbidden),
        ("/v1/hosts/box7/jobs", ErrorCode::Forbidden),
        ("/v1/operators", ErrorCode::Forbidden),
        ("/v1/customers/beta", ErrorCode::NotFound),
    ] {
        assert_eq!(ann.get::<Value>(path).await.code(), wanted, "{path}");
    }
    let audit = |number| format!("/v1/hosts/box7/guests/{}/audit", uid(number));
    ann.get::<Value>(&audit(1)).await.data(StatusCode::OK);
    assert_eq!(ann.get::<Value>(&audit(2)).await.code(), ErrorCode::NotFound);
    // The notice came before the delay ends, and says what can be done.
    until("the customer is notified", || async { !server.seen.lock().unwrap().is_empty() }).await;
    let body = server.seen.lock().unwrap()[0].2.clone();
    assert_eq!(
        (body["schema"].as_str(), body["verb"].as_str()),
        (Some("holdfast.job-notice/v1"), Some("destroy_guest"))
    );
    assert_eq!(
        (body["customer"].as_str(), body["due_at"].as_str()),
        (Some("acme"), Some("2026-11-28T14:10:00Z"))
    );
    // Nobody could be notified for the other customer, and operators hear of that.
    until("operators know", || async {
        world.event_kinds().await.iter().any(|kind| kind == "notice_given_up")
    })
    .await;
    let reason = json!({ "reason": "we still need this guest" });
    let object = |number| format!("/v1/jobs/{}/objection", job(number));
    let other = ann.send::<Value>(Method::POST, &object(2), &reason).await;
    assert_eq!(other.code(), ErrorCode::NotFound, "another customer's job is not there");
    let done: GuestJobView = ann.send(Method::POST, &object(1), &reason).await.data(StatusCode::OK);
    assert_eq!((done.objections.len(), done.objections[0].by.as_str()), (1, "ann"));
    let seen: Page<JobView> = admin.get("/v1/hosts/box7/jobs").await.data(StatusCode::OK);
    let objections: Vec<usize> = seen.items.iter().map(|job| job.objections.len()).collect();
    assert_eq!(objections, [0, 1], "operators see it in the list");
    let events: Page<EventView> = ann.get("/v1/events").await.data(StatusCode::OK);
    assert!(events.items.iter().any(|event| event.kind == "job_objected"));
    assert!(events.items.iter().all(|event| !event.message.contains(&job(2).to_string())));
    // It goes on, and then an objection is too late.
    reports(&host, 3, sections(JobState::UnderWay)).await;
    assert_eq!(ann.send::<Value>(Method::POST, &object(1), &reason).await.code(), ErrorCode::UnderWay);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_a_narrower_scope_have_whole_pages() {
    let world = World::start().await;
    let admin = world.admin();
    for (number, site) in [(1, "vienna"), (2, "graz"), (3, "vienna"), (4, "graz"), (5, "vienna")] {
        let name = format!("box{number}");
        world.enrol(&name).await;
        let change = json!({ "set": { "site": site } });
        admin
            .send::<Value>(Method::POST, &format!("/v1/hosts/{name}/labels"), &change)
            .await
            .data(StatusCode::OK);
    }
    let scope = AccessScope::Hosts { labels: "site=vienna".parse().unwrap() };
    let vera = world.with_token(&person(&world, "vera", Role::Operator, scope).await);
    let page = |path: String| {
        let vera = vera.clone();
        async move { vera.get::<Page<Value>>(&path).await.data(StatusCode::OK) }
    };
    let first = page("/v1/hosts?limit=2".to_owned()).await;
    assert_eq!(first.items.len(), 2, "what is outside takes no place on a page");
    let next = page(format!("/v1/hosts?limit=2&cursor={}", first.next.unwrap())).await;
    assert_eq!((next.items.len(), next.next), (1, None));
    let mut names: Vec<&str> =
        first.items.iter().chain(&next.items).filter_map(|one| one["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["box1", "box3", "box5"]);
    let events = page("/v1/events?limit=3".to_owned()).await;
    assert_eq!(events.items.len(), 3);
    let graz = admin.get::<Value>("/v1/hosts/box2").await.data(StatusCode::OK)["host"]["id"].clone();
    let all = page("/v1/events?limit=500".to_owned()).await;
    assert!(all.items.iter().all(|event| event["host"] != graz && !event["host"].is_null()));
    assert_eq!(vera.get::<Value>("/v1/hosts/box2").await.code(), ErrorCode::NotFound);
    let change = json!({ "set": { "site": "vienna" } });
    let refused = vera.send::<Value>(Method::POST, "/v1/hosts/box1/labels", &change).await;
    assert_eq!(refused.code(), ErrorCode::Forbidden, "labels decide who may touch a host");
}
