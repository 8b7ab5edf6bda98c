//! Notices that meet in the outbox, and digests.

use alerts::digest::{DIGEST_INCIDENTS_MAX, combine};
use alerts::notice::{IncidentNews, Notice};
use alerts::outbox::{merge, reconcile};
use alerts::{Reason, Scope};
use holdfast_protocol::id::HostId;
use uuid::Uuid;

use crate::kit::*;

/// A first notice of two incidents, and one that the first of them is over.
fn fire_and_end() -> (Notice, Notice) {
    let mut bench = Bench::new(PLAIN);
    bench.report(0, &[broken(1), broken(2)]);
    bench.report(100, &[broken(2)]);
    bench.run_to(1_000);
    let [fire, end] = bench.notices.try_into().unwrap();
    (fire, end)
}

#[test]
fn an_end_is_not_sent_where_its_beginning_still_waits() {
    let (fire, end) = fire_and_end();
    let both = reconcile(std::slice::from_ref(&fire), end.clone());
    assert_eq!((both.replace.len(), both.replace[0].incidents.len()), (1, 1));
    assert_eq!(both.queue.unwrap().incidents.len(), 1, "the other one still fires");
    assert_eq!((both.cancelled.len(), &both.cancelled[0].fire), (1, &fire.key));

    let sent = reconcile(&[], end.clone());
    assert_eq!((sent.queue, sent.cancelled), (Some(end), Vec::new()));
}

#[test]
fn nothing_is_left_where_all_of_it_was_cancelled() {
    let mut bench = Bench::new(PLAIN);
    bench.report(0, &[broken(1)]);
    bench.report(100, &[]);
    bench.run_to(1_000);
    let [fire, end]: [Notice; 2] = bench.notices.try_into().unwrap();
    let key = fire.key.clone();
    let both = reconcile(&[fire], end);
    assert_eq!((both.queue, both.cancel), (None, vec![key]));
}

#[test]
fn an_end_is_sent_where_only_a_repeat_or_a_change_waits() {
    let (mut fire, end) = fire_and_end();
    for news in [IncidentNews::Ongoing {}, IncidentNews::Changed {}] {
        fire.incidents.iter_mut().for_each(|incident| incident.news = news);
        let both = reconcile(std::slice::from_ref(&fire), end.clone());
        assert_eq!((both.queue.as_ref(), both.cancelled.len()), (Some(&end), 0));
    }
}

#[test]
fn news_merge_into_what_the_receiver_does_not_know() {
    let (new, changed, ongoing) = (IncidentNews::New {}, IncidentNews::Changed {}, IncidentNews::Ongoing {});
    let over = IncidentNews::Resolved { at: at(0) };
    for (earlier, later, merged) in [
        (new, over, None),
        (new, ongoing, Some(new)),
        (new, changed, Some(new)),
        (changed, ongoing, Some(changed)),
        (changed, over, Some(over)),
        (ongoing, over, Some(over)),
        (ongoing, ongoing, Some(ongoing)),
        (over, new, Some(changed)),
    ] {
        assert_eq!(merge(earlier, later), merged, "{earlier:?} {later:?}");
    }
}

fn of_host(number: u128) -> Notice {
    let mut bench = Bench::new(PLAIN);
    bench.state.row.scope = Scope::Host(HostId::new(Uuid::from_u128(number)));
    bench.report(0, &[broken(1), broken(2)]);
    bench.notices.remove(0)
}

#[test]
fn a_digest_lists_each_incident_of_each_host() {
    let combined = combine((1..=600).map(of_host));
    assert_eq!((combined.notices.len(), combined.replaced.len()), (3, 600));
    let listed: usize = combined.notices.iter().map(|notice| notice.incidents.len()).sum();
    assert_eq!(listed, 1_200);
    let mut keys: Vec<_> = combined.notices.iter().map(|notice| notice.key.clone()).collect();
    keys.dedup();
    assert_eq!(keys.len(), 3);
    for notice in &combined.notices {
        assert_eq!(notice.reason, Reason::Digest);
        assert!(notice.incidents.len() <= DIGEST_INCIDENTS_MAX && notice.key.as_str().len() <= 150);
    }
    let alone = of_host(1);
    assert_eq!(combine([alone.clone()]).notices, [alone]);
}

#[test]
fn a_digest_leaves_out_what_came_and_went_in_it() {
    let (fire, end) = fire_and_end();
    let combined = combine([fire, end]);
    assert_eq!((combined.notices[0].incidents.len(), combined.dropped.len()), (1, 1));
    assert_eq!(combined.notices[0].incidents[0].news, IncidentNews::New {});
}
