//! Numbers of what changed, for open pages.

use holdfast_protocol::access::AccessScope;
use hubd::domain::host::HostRef;
use hubd::store::{PageChange, PageChangeQuery, SectionTexts};

use super::fixture::{Fixture, by, checkin, fresh_key, host_id, named};

pub async fn changes_are_numbered_in_their_order_and_narrowed(fixture: Fixture) {
    let store = &fixture.store;
    let box7 = fixture.box7().await;
    let box8 = fixture.enrol("box8", host_id(8), &fresh_key()).await.host;
    let asked = |scope, host, after| store.page_changes(PageChangeQuery { scope, host, after });
    let names = |changes: Vec<PageChange>| -> Vec<Option<String>> {
        changes.into_iter().map(|one| one.host.map(|host| host.to_string())).collect()
    };
    let everything = || AccessScope::Everything {};
    for (host, number) in [(box8, 1), (box7, 1)] {
        store.check_in(checkin(host, 1, number)).await.unwrap().unwrap();
    }
    let first = store.newest_page_change().await.unwrap();
    let all = asked(everything(), None, 0).await.unwrap();
    assert_eq!(all.last(), Some(&PageChange { number: first, host: Some("box7".parse().unwrap()) }));
    assert!(all.is_sorted_by_key(|one| one.number));
    assert_eq!(asked(everything(), None, first).await.unwrap(), []);

    // A report, an order of the hub, and a host that is let go.
    let sections = SectionTexts { host: Some("{}".to_owned()), ..SectionTexts::default() };
    let mut news = checkin(box8, 1, 2);
    news.sections = sections;
    store.check_in(news).await.unwrap().unwrap();
    assert_eq!(names(asked(everything(), None, first).await.unwrap()), [Some("box8".to_owned())]);
    assert_eq!(names(asked(everything(), Some(named("box7")), first).await.unwrap()), [None; 0]);
    assert_eq!(asked(everything(), Some(HostRef::Id(box8)), first).await.unwrap().len(), 1);
    store.revoke_host(by(20), HostRef::Id(box7)).await.ok().unwrap();
    let both = asked(everything(), None, first).await.unwrap();
    assert_eq!(names(both), [Some("box8".to_owned()), Some("box7".to_owned())]);

    // Another hub on the database counts on.
    let newest = store.newest_page_change().await.unwrap();
    let customer = AccessScope::Customer { customer: "acme".parse().unwrap() };
    assert_eq!(asked(customer, None, 0).await.unwrap(), []);
    let labels = AccessScope::Hosts { labels: serde_json::from_str("{\"site\":\"north\"}").unwrap() };
    assert_eq!(asked(labels, None, 0).await.unwrap(), []);
    let mut fixture = fixture;
    fixture.restart();
    assert_eq!(fixture.store.newest_page_change().await.unwrap(), newest);
}
