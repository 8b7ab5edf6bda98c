//! Scopes of persons, customers, machine tokens, and objections to jobs.

use std::collections::BTreeMap;

use alerts::label::Labels;
use holdfast_protocol::access::{AccessScope, Grant};
use holdfast_protocol::customer::{
    CustomerChange, CustomerField, CustomerFields, CustomerOrigin, DisplayName, NewCustomer,
};
use holdfast_protocol::host_label::LabelChange;
use holdfast_protocol::id::{CustomerId, GuestUid, HostId, JobId, OperatorName};
use holdfast_protocol::job::{JobReport, JobState, Verb};
use holdfast_protocol::operator::Role;
use holdfast_protocol::secret::Secret;
use hubd::domain::alerting::ReportedConditions;
use hubd::store::{
    CustomerError, CustomerUse, EventFilter, MachineTokenError, NewMachineToken, NewOperator, NewSecret,
    NoticeEnd, NoticeSubject, ObjectRef, ObjectionError, OperatorError, SectionTexts, SubmitJob, WriteError,
};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::fixture::{CORRELATION, Fixture, at, by, checkin, claiming, fresh_key, host_id, named};

pub fn customer(name: &str) -> CustomerId {
    name.parse().unwrap()
}

pub fn of_customer(name: &str) -> AccessScope {
    AccessScope::Customer { customer: customer(name) }
}

pub fn of_hosts(selector: &str) -> AccessScope {
    AccessScope::Hosts { labels: selector.parse().unwrap() }
}

fn uid(number: u128) -> GuestUid {
    GuestUid::new(Uuid::from_u128(number))
}

pub fn person(name: &str, role: Role, scope: AccessScope) -> NewOperator {
    NewOperator {
        name: name.parse().unwrap(),
        grant: Grant::new(role, scope).unwrap(),
        token: Secret::new(format!("token of {name}")).hash(),
        expires_at: at(10_000),
        at: at(0),
        correlation: CORRELATION,
    }
}

/// A host with these guests, each with its customer, and with one label.
pub async fn host(fixture: &Fixture, number: u128, site: &str, guests: &[(u128, &str)]) -> HostId {
    let name = format!("host{number}");
    let host = fixture.enrol(&name, host_id(number), &fresh_key()).await.host;
    let mut change = LabelChange::default();
    let (key, value) = holdfast_protocol::host_label::label(&format!("site={site}")).unwrap();
    change.set.insert(key, value);
    fixture.store.change_labels(by(1), named(&name), change).await.ok().unwrap().unwrap();
    let text: Vec<serde_json::Value> = guests
        .iter()
        .map(|(number, customer)| {
            serde_json::json!({ "uid": uid(*number), "name": format!("g{number}"), "customer": customer,
                "vmid": 1000 + number, "status": "managed", "run": "running" })
        })
        .collect();
    let labels = guests
        .iter()
        .map(|(number, name)| (uid(*number), Labels { customer: Some(customer(name)), ..Labels::default() }));
    let mut report = checkin(host, 1, 1);
    report.sections =
        SectionTexts { guests: Some(serde_json::to_string(&text).unwrap()), ..SectionTexts::default() };
    report.conditions = ReportedConditions {
        guests: Some(labels.collect::<BTreeMap<_, _>>()),
        ..ReportedConditions::default()
    };
    fixture.store.check_in(report).await.unwrap().unwrap();
    host
}

pub async fn a_scope_is_kept_with_its_person_and_decides_who_is_the_last_admin(fixture: Fixture) {
    let store = &fixture.store;
    for (name, role, scope) in [
        ("ada", Role::Admin, AccessScope::Everything {}),
        ("bea", Role::Admin, of_hosts("site=vienna")),
        ("cyd", Role::Customer, of_customer("acme")),
    ] {
        store.add_operator(person(name, role, scope)).await.ok().unwrap();
    }
    for record in store.operators().await.unwrap() {
        let read = store.operator(record.name.clone()).await.unwrap().unwrap();
        let token = Secret::new(format!("token of {}", record.name)).hash();
        let known = store.operator_by_token(token, at(1)).await.unwrap().unwrap();
        assert_eq!((&read.grant, &known.grant), (&record.grant, &record.grant));
    }
    let cyd = store.operator("cyd".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(cyd.grant, Grant::new(Role::Customer, of_customer("acme")).unwrap());
    let other = store.add_operator(person("cyd", Role::Customer, of_customer("beta"))).await;
    assert!(matches!(other, Err(WriteError::Refused(OperatorError::Taken { .. }))));
    // An admin of some hosts cannot stand in for one of everything.
    let last = store.let_operator_go(by(10), "ada".parse().unwrap()).await;
    assert!(matches!(last, Err(WriteError::Refused(OperatorError::LastAdmin { .. }))));
    assert!(store.let_operator_go(by(10), "bea".parse().unwrap()).await.is_ok());
}

pub async fn lists_are_narrowed_to_a_scope(fixture: Fixture) {
    let store = &fixture.store;
    let one = host(&fixture, 1, "vienna", &[(11, "acme"), (12, "beta")]).await;
    let two = host(&fixture, 2, "graz", &[(21, "acme")]).await;
    let three = host(&fixture, 3, "vienna", &[(31, "beta")]).await;
    let hosts = |scope| async move {
        let all = store.hosts_within(scope, None, 10, at(5)).await.unwrap();
        all.into_iter().map(|record| record.view.id).collect::<Vec<_>>()
    };
    assert_eq!(hosts(AccessScope::Everything {}).await, [one, two, three]);
    assert_eq!(hosts(of_hosts("site=vienna")).await, [one, three]);
    assert_eq!(hosts(of_hosts("site=vienna+tier=x")).await, [] as [HostId; 0]);
    assert_eq!(hosts(of_customer("acme")).await, [] as [HostId; 0]);
    let guests = |scope| async move {
        let all = store.reported_guests_within(scope, None, 10, at(5)).await.unwrap();
        let uids = all.into_iter().flat_map(|(_, guests)| guests).filter_map(|guest| guest.uid);
        uids.collect::<Vec<_>>()
    };
    assert_eq!(guests(of_customer("acme")).await, [uid(11), uid(21)]);
    assert_eq!(guests(of_hosts("site=graz")).await, [uid(21)]);
    assert_eq!(guests(of_customer("cyd")).await, [] as [GuestUid; 0]);
    // A page of one host goes on with the next host that has any.
    let first = store.reported_guests_within(of_customer("beta"), None, 1, at(5)).await.unwrap();
    let after = (first[0].0.view.name.clone(), first[0].0.number);
    let next = store.reported_guests_within(of_customer("beta"), Some(after), 1, at(5)).await.unwrap();
    assert_eq!((first[0].0.view.id, next[0].0.view.id), (one, three));
    let events = |scope| async move {
        let all = store.events_within(scope, EventFilter::default(), 100).await.unwrap();
        all.into_iter().filter_map(|event| event.host).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(events(of_hosts("site=graz")).await, [two].into());
    assert_eq!(events(AccessScope::Everything {}).await, [one, two, three].into());
    assert!(store.events_within(of_customer("acme"), EventFilter::default(), 9).await.unwrap().is_empty());
    let facts = |object| store.object_facts(object);
    let guest = facts(ObjectRef::Guest(named("host1"), uid(12))).await.unwrap().unwrap();
    assert_eq!(guest.customer, Some(customer("beta")));
    assert!(of_hosts("site=vienna").holds(&guest) && !of_hosts("site=graz").holds(&guest));
    assert_eq!(facts(ObjectRef::Guest(named("host1"), uid(99))).await.unwrap().unwrap().customer, None);
    assert_eq!(facts(ObjectRef::Host(named("host9"))).await.unwrap(), None);
    assert_eq!(facts(ObjectRef::Job(JobId::new(Uuid::nil()))).await.unwrap(), None);
}

pub async fn a_customer_is_added_changed_and_removed_when_nothing_names_it(fixture: Fixture) {
    let store = &fixture.store;
    let text = |text: &str| DisplayName::try_from(text.to_owned()).unwrap();
    let fields = CustomerFields { display_name: Some(text("Acme")), ..CustomerFields::default() };
    let new = || NewCustomer { name: customer("acme"), fields: fields.clone() };
    let made = store.add_customer(claiming(1, "k", 1), new()).await.ok().unwrap();
    assert_eq!(store.add_customer(claiming(2, "k", 1), new()).await.ok().unwrap(), made, "a repeat");
    assert_eq!((made.version, made.created_at, made.guests), (1, Some(at(1)), 0));
    let taken = store.add_customer(by(2), new()).await;
    assert!(matches!(taken, Err(WriteError::Refused(CustomerError::Taken { .. }))));
    let host = host(&fixture, 1, "vienna", &[(11, "acme"), (12, "beta")]).await;
    let all = store.customers(None, None, 10).await.unwrap();
    let seen: Vec<_> = all.iter().map(|one| (one.name.as_str(), one.origin, one.guests)).collect();
    assert_eq!(seen, [("acme", CustomerOrigin::Registered, 1), ("beta", CustomerOrigin::Named, 1)]);
    assert_eq!(store.customers(None, Some(customer("acme")), 1).await.unwrap()[0].name, customer("beta"));
    assert_eq!(store.customers(Some(customer("acme")), None, 9).await.unwrap().len(), 1);
    let change = CustomerChange { remove: [CustomerField::DisplayName].into(), ..CustomerChange::default() };
    let stale = store.change_customer(by(3), customer("acme"), 9, change.clone()).await;
    assert!(matches!(stale, Err(WriteError::Refused(CustomerError::Moved { current: 1, .. }))));
    let only = store.change_customer(by(3), customer("beta"), 0, change.clone()).await;
    assert!(matches!(only, Err(WriteError::Refused(CustomerError::OnlyNamed { .. }))));
    let none = store.change_customer(by(3), customer("cyd"), 0, change.clone()).await;
    assert!(matches!(none, Err(WriteError::Refused(CustomerError::Unknown { .. }))));
    let changed = store.change_customer(by(4), customer("acme"), 1, change).await.ok().unwrap();
    assert_eq!((changed.version, changed.fields.display_name, changed.changed_at), (2, None, Some(at(4))));
    store.add_operator(person("cyd", Role::Customer, of_customer("acme"))).await.ok().unwrap();
    let used = store.remove_customer(by(5), customer("acme"), 2).await;
    let Err(WriteError::Refused(CustomerError::InUse { by: uses, .. })) = used else { panic!("in use") };
    assert_eq!(uses, [CustomerUse::Guests(1), CustomerUse::Scopes(1)]);
    store.revoke_operator("cyd".parse().unwrap(), at(6), CORRELATION).await.ok().unwrap();
    let mut report = checkin(host, 1, 2);
    report.sections = SectionTexts { guests: Some("[]".to_owned()), ..SectionTexts::default() };
    store.check_in(report).await.unwrap().unwrap();
    assert!(store.remove_customer(by(7), customer("acme"), 2).await.is_ok());
    assert!(store.customers(None, None, 10).await.unwrap().is_empty());
    let kinds = fixture.kinds().await;
    let of_it: Vec<&str> =
        kinds.iter().map(String::as_str).filter(|kind| kind.starts_with("customer_")).collect();
    assert_eq!(of_it, ["customer_added", "customer_changed", "customer_removed"]);
}

pub fn secret(number: u128, ends: i64) -> NewSecret {
    let hash = Secret::new(format!("secret {number}")).hash();
    NewSecret { number: Uuid::from_u128(number), hash, expires_at: at(ends) }
}

pub async fn a_machine_token_is_rotated_with_an_overlap_and_ends_at_once(fixture: Fixture) {
    let store = &fixture.store;
    store.add_operator(person("eve", Role::Operator, AccessScope::Everything {})).await.ok().unwrap();
    let name: OperatorName = "ci".parse().unwrap();
    let grant = Grant::new(Role::Viewer, of_customer("acme")).unwrap();
    let new = |name: &OperatorName, number| NewMachineToken {
        name: name.clone(),
        grant: grant.clone(),
        secret: secret(number, 1_000),
    };
    let made = store.make_machine_token(claiming(1, "k", 1), new(&name, 1)).await.ok().unwrap();
    let again = store.make_machine_token(claiming(2, "k", 1), new(&name, 2)).await.ok().unwrap();
    assert_eq!((again.number, made.expires_at), (made.number, at(1_000)), "a repeat is the same secret");
    for taken in ["ci", "eve"] {
        let refused = store.make_machine_token(by(2), new(&taken.parse().unwrap(), 3)).await;
        assert!(matches!(refused, Err(WriteError::Refused(MachineTokenError::Taken { .. }))), "{taken}");
    }
    let refused = store.add_operator(person("ci", Role::Viewer, AccessScope::Everything {})).await;
    assert!(matches!(refused, Err(WriteError::Refused(OperatorError::Machine { .. }))));
    let who = |number: u128, second| {
        let hash = Secret::new(format!("secret {number}")).hash();
        async move { store.machine_by_secret(hash, at(second)).await.unwrap() }
    };
    let known = who(1, 5).await.unwrap();
    assert_eq!((known.name, known.grant, known.used_at), (name.clone(), grant.clone(), None));
    // The use is written to the minute.
    for (second, written) in [(10, 10), (40, 10), (69, 10), (70, 70)] {
        store.machine_token_used(name.clone(), at(second)).await.unwrap();
        let view = store.machine_token(name.clone()).await.unwrap().unwrap();
        assert_eq!(view.used_at, Some(at(written)), "{second}");
    }
    let rotated =
        store.rotate_machine_token(by(100), name.clone(), secret(4, 2_000), at(200)).await.ok().unwrap();
    assert_eq!((rotated.earlier_until, rotated.token.expires_at), (Some(at(200)), Some(at(2_000))));
    assert!(who(1, 199).await.is_some() && who(4, 199).await.is_some());
    assert!(who(1, 200).await.is_none() && who(4, 200).await.is_some());
    // Without an overlap the one before ends with the rotation.
    store.rotate_machine_token(by(300), name.clone(), secret(5, 2_000), at(300)).await.ok().unwrap();
    assert!(who(4, 300).await.is_none() && who(5, 300).await.is_some());
    for number in 6..9 {
        store.rotate_machine_token(by(301), name.clone(), secret(number, 2_000), at(900)).await.ok().unwrap();
    }
    let many = store.rotate_machine_token(by(302), name.clone(), secret(9, 2_000), at(900)).await;
    assert!(matches!(many, Err(WriteError::Refused(MachineTokenError::TooManySecrets { .. }))));
    let gone = store.revoke_machine_token(by(310), name.clone()).await.ok().unwrap();
    assert_eq!(gone.revoked_at, Some(at(310)));
    assert!(who(8, 311).await.is_none());
    assert_eq!(
        store.revoke_machine_token(by(320), name.clone()).await.ok().unwrap().revoked_at,
        Some(at(310))
    );
    let late = store.rotate_machine_token(by(330), name, secret(10, 2_000), at(400)).await;
    assert!(matches!(late, Err(WriteError::Refused(MachineTokenError::Unknown { .. }))));
    // A token ends with its maker.
    let other: OperatorName = "backup".parse().unwrap();
    store.make_machine_token(by(340), new(&other, 20)).await.ok().unwrap();
    assert!(who(20, 341).await.is_some());
    store.revoke_operator("eve".parse().unwrap(), at(350), CORRELATION).await.ok().unwrap();
    assert!(who(20, 351).await.is_none());
    let all = store.machine_tokens().await.unwrap();
    assert!(all.len() == 2 && all.iter().all(|view| view.revoked_at.is_some()));
}

fn says(number: u128, blob: &str, verb: Verb, state: JobState, guest: GuestUid) -> JobReport {
    JobReport {
        id: JobId::new(Uuid::from_u128(number)),
        blob: hex::encode(Sha256::digest(blob.as_bytes())),
        state,
        verb: Some(verb),
        guest: Some(guest),
        signers: Vec::new(),
        taken_at: at(20),
        due_at: Some(at(620)),
        ended_at: None,
        operation: None,
        problem: None,
        correlation_id: None,
    }
}

pub async fn a_customer_hears_of_a_destructive_job_and_objects_while_it_waits(fixture: Fixture) {
    let store = &fixture.store;
    let host = host(&fixture, 1, "vienna", &[(11, "acme"), (12, "beta")]).await;
    let id = |number| JobId::new(Uuid::from_u128(number));
    for number in 1..=3 {
        let leave =
            SubmitJob { host: named("host1"), id: id(number), blob: format!("job {number}"), tunnel: None };
        store.submit_job(by(10), leave).await.ok().unwrap().unwrap();
    }
    assert!(store.guest_jobs(AccessScope::Everything {}, None, 10).await.unwrap().is_empty());
    let reason = || "we need this guest".to_owned().try_into().unwrap();
    assert!(store.object_to_job(by(11), id(1), reason()).await.ok().unwrap().is_none(), "not known yet");
    let heard = |sequence, jobs: Vec<JobReport>| {
        let mut report = checkin(host, 1, sequence);
        report.arriving.coverage = holdfast_protocol::checkin::Coverage::Changed;
        report.jobs = jobs;
        async move { store.check_in(report).await.unwrap().unwrap() }
    };
    let waits = || {
        vec![
            says(1, "job 1", Verb::DestroyGuest, JobState::Waiting, uid(11)),
            says(2, "job 2", Verb::BackupNow, JobState::Waiting, uid(11)),
            says(3, "job 3", Verb::Rollback, JobState::Waiting, uid(12)),
        ]
    };
    heard(2, waits()).await;
    heard(3, waits()).await;
    let open = store.open_notices().await.unwrap();
    let customers: Vec<_> = open.iter().map(|notice| (notice.customer.as_str(), notice.subject)).collect();
    assert_eq!(customers, [("acme", NoticeSubject::Job), ("beta", NoticeSubject::Job)], "once each");
    let body: serde_json::Value = serde_json::from_str(&open[0].body).unwrap();
    assert_eq!(
        (body["verb"].as_str(), body["guest"].as_str()),
        (Some("destroy_guest"), Some(&*uid(11).to_string()))
    );
    store.notice_ended(&fixture.term().await, &open[0], NoticeEnd::GivenUp, at(30)).await.unwrap();
    let jobs = |scope| async move {
        let all = store.guest_jobs(scope, None, 10).await.unwrap();
        all.into_iter().map(|(_, job)| job.id).collect::<Vec<_>>()
    };
    assert_eq!(jobs(AccessScope::Everything {}).await, [id(3), id(2), id(1)]);
    assert_eq!(jobs(of_customer("acme")).await, [id(2), id(1)]);
    assert_eq!(jobs(of_hosts("site=vienna")).await, [id(3), id(2), id(1)]);
    assert_eq!(jobs(of_hosts("site=graz")).await, [] as [JobId; 0]);
    let newest = store.guest_jobs(of_customer("acme"), None, 1).await.unwrap();
    let rest = store.guest_jobs(of_customer("acme"), Some(newest[0].0), 9).await.unwrap();
    assert_eq!(rest.iter().map(|(_, job)| job.id).collect::<Vec<_>>(), [id(1)]);
    let facts = store.object_facts(ObjectRef::Job(id(3))).await.unwrap().unwrap();
    assert_eq!(facts.customer, Some(customer("beta")));
    let view = store.object_to_job(claiming(40, "o", 1), id(1), reason()).await.ok().unwrap().unwrap();
    store.object_to_job(claiming(41, "o", 1), id(1), reason()).await.ok().unwrap().unwrap();
    assert_eq!((view.objections.len(), view.objections[0].at), (1, at(40)), "a repeat adds none");
    let seen = store.job(named("host1"), id(1)).await.unwrap().unwrap().job;
    let listed = store.jobs(named("host1"), None, 10).await.unwrap().unwrap();
    assert_eq!(listed[2].1.objections, seen.objections);
    assert_eq!(seen.objections, view.objections);
    let of_acme = store.events_within(of_customer("acme"), EventFilter::default(), 20).await.unwrap();
    let mut kinds: Vec<&str> = of_acme.iter().map(|event| event.kind.as_str()).collect();
    kinds.reverse();
    assert_eq!(kinds, ["job_taken", "job_taken", "job_objected"]);
    heard(4, vec![says(1, "job 1", Verb::DestroyGuest, JobState::UnderWay, uid(11))]).await;
    let late = store.object_to_job(by(50), id(1), reason()).await;
    assert!(matches!(late, Err(WriteError::Refused(ObjectionError::Late { state: JobState::UnderWay }))));
}
