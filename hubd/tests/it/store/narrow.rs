//! Lists narrowed to a scope, and changed grants.

use alerts::silence::Silence;
use holdfast_protocol::access::{AccessScope, Grant};
use holdfast_protocol::grant_change::grant_tag;
use holdfast_protocol::operator::Role;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::{
    OnFailure, RolloutRequest, RolloutSubject, RolloutTimes, WaveRequest,
};
use holdfast_protocol::secret::Secret;
use hubd::store::{GrantChange, GrantChangeError, NewMachineToken, NewSilence, WriteError};
use serde_json::json;

use super::fixture::{Fixture, at, by, claiming};
use super::persons::{customer, host, of_customer, of_hosts, person, secret};
use super::releases::new;
use crate::releases::program;

fn silence(matchers: &[&str]) -> NewSilence {
    NewSilence {
        matchers: matchers.iter().map(|text| text.parse().unwrap()).collect(),
        until: at(9_000),
        comment: "a new disk comes".to_owned().try_into().unwrap(),
    }
}

pub async fn lists_of_the_hub_have_the_part_of_a_scope(fixture: Fixture) {
    let store = &fixture.store;
    host(&fixture, 1, "vienna", &[(11, "acme"), (12, "beta")]).await;
    host(&fixture, 2, "graz", &[(21, "acme"), (22, "cyd")]).await;
    for matchers in [
        &["host=host1"][..],
        &["code=GUEST_BROKEN", "host=host2"],
        &["customer=acme"],
        &["code=GUEST_BROKEN"],
        &["host!=host1", "severity=critical"],
    ] {
        store.add_silence(by(1), silence(matchers)).await.ok().unwrap();
    }
    let silences = |scope| async move {
        let all = store.silences_within(scope, at(5)).await.unwrap();
        all.into_iter().map(|Silence { id, .. }| id.0).collect::<Vec<_>>()
    };
    assert_eq!(silences(AccessScope::Everything {}).await, [1, 2, 3, 4, 5]);
    assert_eq!(silences(of_hosts("site=vienna")).await, [1], "another host is no word of one's own");
    assert_eq!(silences(of_hosts("site=graz")).await, [2]);
    assert_eq!(silences(of_customer("acme")).await, [3]);
    assert_eq!(silences(of_customer("beta")).await, [] as [u64; 0]);

    let customers = |scope, only| async move {
        let all = store.customers_within(scope, only, None, 10).await.unwrap();
        all.into_iter().map(|one| (one.name.to_string(), one.guests)).collect::<Vec<_>>()
    };
    let row = |name: &str, guests| (name.to_owned(), guests);
    assert_eq!(customers(of_hosts("site=vienna"), None).await, [row("acme", 1), row("beta", 1)]);
    assert_eq!(customers(of_hosts("site=graz"), None).await, [row("acme", 1), row("cyd", 1)]);
    assert_eq!(customers(of_hosts("site=graz"), Some(customer("beta"))).await, []);
    assert_eq!(customers(of_customer("acme"), None).await, [row("acme", 2)]);
    assert_eq!(customers(AccessScope::Everything {}, None).await.len(), 3);

    let release = new(1, 1, &[("agentd", &program(10))]);
    store.put_release(by(1), release, u64::MAX).await.ok().unwrap();
    let wave = |hosts| WaveRequest {
        hosts: serde_json::from_value(hosts).unwrap(),
        max_failures: 0,
        soak_s: 0,
        timeout_s: 3_600,
    };
    let request = RolloutRequest {
        version: VersionNumber::new(2026, 11, 1),
        subject: RolloutSubject::Agent,
        waves: vec![wave(json!({ "count": 1 })), wave(json!("rest"))],
        times: RolloutTimes::default(),
        on_failure: OnFailure::Hold,
    };
    store.plan_rollout(by(2), request).await.ok().unwrap();
    let waves = |scope| async move {
        let one = store.rollout_within(scope, 1, at(5)).await.unwrap();
        one.map(|one| one.waves.iter().map(|wave| wave.hosts.len()).collect::<Vec<_>>())
    };
    assert_eq!(waves(AccessScope::Everything {}).await, Some(vec![1, 1]));
    assert_eq!(waves(of_hosts("site=vienna")).await, Some(vec![1, 0]));
    assert_eq!(waves(of_hosts("site=graz")).await, Some(vec![0, 1]));
    assert_eq!(waves(of_hosts("site=linz")).await, None);
    assert_eq!(waves(of_customer("acme")).await, None, "a rollout is of hosts");
    let all = store.rollouts_within(of_hosts("site=graz"), at(5)).await.unwrap();
    assert_eq!((all.len(), all[0].waves[1].hosts[0].host.as_str()), (1, "host2"));
    assert!(store.rollouts_within(of_hosts("site=linz"), at(5)).await.unwrap().is_empty());
    assert_eq!(store.rollout_within(of_hosts("site=graz"), 2, at(5)).await.unwrap(), None);
}

fn change(name: &str, author: Role, seen: (Role, AccessScope), new: (Role, AccessScope)) -> GrantChange {
    GrantChange {
        name: name.parse().unwrap(),
        author: Grant::new(author, AccessScope::Everything {}).unwrap(),
        seen: grant_tag(seen.0, &seen.1),
        new: Grant::new(new.0, new.1).unwrap(),
    }
}

pub async fn a_role_is_changed_in_place_and_tokens_above_it_end(fixture: Fixture) {
    let (store, all) = (&fixture.store, AccessScope::Everything {});
    for (name, role) in [("ada", Role::Admin), ("kim", Role::Operator)] {
        store.add_operator(person(name, role, all.clone())).await.ok().unwrap();
    }
    for (number, name, role, scope) in [
        (1, "ci", Role::Operator, of_hosts("site=vienna")),
        (2, "board", Role::Viewer, of_hosts("site=vienna")),
        (3, "billing", Role::Viewer, all.clone()),
    ] {
        let new = NewMachineToken {
            name: name.parse().unwrap(),
            grant: Grant::new(role, scope).unwrap(),
            secret: secret(number, 1_000),
        };
        let author = hubd::store::By { operator: "kim".parse().unwrap(), ..by(1) };
        store.make_machine_token(author, new).await.ok().unwrap();
    }
    let before = (Role::Operator, all.clone());
    let lower = (Role::Viewer, of_hosts("site=vienna"));
    let stale = change("kim", Role::Admin, (Role::Viewer, all.clone()), lower.clone());
    let stale = store.change_grant(by(2), stale).await;
    assert!(matches!(stale, Err(WriteError::Refused(GrantChangeError::Moved { .. }))));
    let above = store.change_grant(by(2), change("kim", Role::Viewer, before.clone(), lower.clone())).await;
    assert!(
        matches!(above, Err(WriteError::Refused(GrantChangeError::Unknown))),
        "they stand above the author"
    );
    let right = change("kim", Role::Admin, before, lower.clone());
    let done = store.change_grant(claiming(3, "k", 1), right.clone()).await.ok().unwrap();
    assert_eq!((done.operator.role, &done.operator.scope), (lower.0, &lower.1));
    let ended: Vec<&str> = done.ended_tokens.iter().map(|name| name.as_str()).collect();
    assert_eq!(ended, ["billing", "ci"], "what they still may their machines still may");
    assert_eq!(store.change_grant(claiming(4, "k", 1), right).await.ok().unwrap(), done, "a repeat");
    let token = Secret::new("token of kim".to_owned()).hash();
    let known = store.operator_by_token(token, at(4)).await.unwrap().unwrap();
    assert_eq!(known.grant, Grant::new(lower.0, lower.1).unwrap(), "their token is what they are now");
    let by_secret = |number| store.machine_by_secret(secret(number, 1_000).hash, at(4));
    assert!(by_secret(2).await.unwrap().is_some() && by_secret(1).await.unwrap().is_none());
    let whole = (Role::Admin, all.clone());
    let last = change("ada", Role::Admin, whole.clone(), (Role::Viewer, all.clone()));
    let refused = store.change_grant(by(5), last.clone()).await;
    assert!(matches!(refused, Err(WriteError::Refused(GrantChangeError::LastAdmin { .. }))));
    store.add_operator(person("bob", Role::Admin, all)).await.ok().unwrap();
    assert!(store.change_grant(by(6), last).await.is_ok());
    let gone = change("zoe", Role::Admin, whole.clone(), whole);
    assert!(matches!(
        store.change_grant(by(7), gone).await,
        Err(WriteError::Refused(GrantChangeError::Unknown))
    ));
    let changed = fixture.kinds().await.into_iter().filter(|kind| kind == "operator_changed").count();
    assert_eq!(changed, 2);
}
