//! Ends of incidents of revoked hosts and deleted guests.

use alerts::notice::Notice;
use alerts::signal::{Maintenance, Signal};
use alerts::{Ending, Reason};
use holdfast_protocol::condition::ConditionCode;

use crate::kit::*;

/// Numbers of incidents, each with why it was closed.
type Closed = Vec<(u64, Option<Ending>)>;

/// Why each notice was sent, and which incidents it says are over, each with why it was closed.
fn endings(notices: &[Notice]) -> Vec<(Reason, Closed)> {
    let of = |notice: &Notice| {
        let over = notice.incidents.iter().filter(|one| !one.is_firing());
        (notice.reason, over.map(|one| (one.id.number, one.ending.clone())).collect())
    };
    notices.iter().map(of).collect()
}

#[test]
fn a_deleted_guest_and_a_revoked_host_end_with_one_notice_that_says_why() {
    let mut bench = Bench::new(PLAIN);
    bench.report(0, &[broken(1), backup_failed(1), broken(2)]);
    bench.run_to(100);
    let deleted = || Ending::GuestDeleted { by: Some(operator()) };
    let revoked = || Ending::HostRevoked { by: operator() };
    let sent = bench.notices.len();
    for second in [1_000, 1_001] {
        // The second time nothing is left to say.
        bench.signal(second, &Signal::GuestDeleted { uid: uid(1), by: Some(operator()) });
    }
    bench.run_to(2_000);
    let numbers = |guest| {
        let all = bench.state.incidents.values();
        all.filter(|one| one.subject.guest() == Some(uid(guest))).map(|one| one.id.number).collect::<Vec<_>>()
    };
    let gone: Vec<_> = numbers(1).into_iter().map(|number| (number, Some(deleted()))).collect();
    let left: Vec<_> = numbers(2).into_iter().map(|number| (number, Some(revoked()))).collect();
    let mut said: Vec<_> = endings(&bench.notices[sent..]).into_iter().flat_map(|(_, all)| all).collect();
    said.sort_by_key(|(number, _)| *number);
    assert_eq!((said.len(), &said), (2, &gone));
    let sent = bench.notices.len();
    bench.signal(3_000, &Signal::HostRevoked { by: operator() });
    bench.run_to(100_000);
    assert_eq!(endings(&bench.notices[sent..]), [(Reason::AllResolved, left)]);
    assert!(bench.state.incidents.is_empty() && bench.state.groups.is_empty());
}

#[test]
fn what_no_receiver_heard_of_is_closed_without_a_notice() {
    let mut pending = Bench::new(PLAIN);
    pending.report(0, &[guest(ConditionCode::GuestCrashed, 1)]);
    let mut unwanted = Bench::new(&format!("{PLAIN}[[receiver]]\nname = \"mail\"\nsend_resolved = false"));
    unwanted.report(0, &[broken(1)]);
    for (mut bench, sent) in [(pending, 0), (unwanted, 1)] {
        bench.signal(1, &Signal::HostRevoked { by: operator() });
        bench.run_to(100_000);
        assert_eq!(bench.notices.len(), sent);
        assert!(bench.state.incidents.is_empty() && bench.state.groups.is_empty());
    }
}

/// A maintenance window of a host that is no more keeps nothing back.
#[test]
fn a_host_revoked_in_its_maintenance_ends_at_once() {
    let mut bench = Bench::new(PLAIN);
    bench.report(0, &[broken(1)]);
    let window = Maintenance { from: at(600), until: at(90_000), by: operator() };
    bench.signal(600, &Signal::Maintenance(vec![window]));
    let sent = bench.signal(700, &Signal::HostRevoked { by: operator() });
    assert_eq!(
        endings(&sent),
        [(Reason::AllResolved, vec![(1, Some(Ending::HostRevoked { by: operator() }))])]
    );
}
