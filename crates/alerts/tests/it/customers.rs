//! Receivers of customers, and routes that continue.

use alerts::notice::Notice;
use alerts::signal::{HostState, ObservedCondition};
use alerts::{Suppression, digest};
use holdfast_protocol::condition::ConditionCode;

use crate::kit::{Bench, broken, guest, host, receiver};

const TWO_CUSTOMERS: &str = "
group_wait_s = 0
group_interval_s = 10
group_by = []
default_route.receivers = [\"mail\"]
[[receiver]]
name = \"chat\"
customer = \"acme\"
[[receiver]]
name = \"boss\"
customer = \"beta\"
[[route]]
name = \"customers\"
receivers = [\"chat\", \"boss\"]
continue = true
";

fn of(customer: &str, mut observed: ObservedCondition) -> ObservedCondition {
    observed.labels.customer = customer.parse().ok();
    observed
}

fn customers(notices: &[Notice], to: &str) -> Vec<Option<String>> {
    let to = receiver(to);
    let incidents = notices.iter().filter(|notice| notice.receiver == to).flat_map(|one| &one.incidents);
    incidents.map(|one| one.labels.customer.as_ref().map(ToString::to_string)).collect()
}

#[test]
fn each_customer_hears_of_its_own_guests_and_the_others_hear_of_all() {
    let mut bench = Bench::new(TWO_CUSTOMERS);
    let all = [of("acme", broken(1)), of("beta", broken(2)), broken(3), host(ConditionCode::RecordsBroken)];
    bench.report(0, &all);
    bench.run_to(60);
    let acme = Some("acme".to_owned());
    assert_eq!(customers(&bench.notices, "chat"), [acme]);
    assert_eq!(customers(&bench.notices, "boss"), [Some("beta".to_owned())]);
    assert_eq!(customers(&bench.notices, "mail").len(), 4);
    bench.report(70, &[]);
    bench.run_to(1_000);
    assert_eq!(customers(&bench.notices, "chat").len(), 2, "and of its end, once");
    assert!(bench.state.groups.is_empty());
}

#[test]
fn a_host_belongs_to_the_customer_of_all_its_guests() {
    let mut bench = Bench::new(TWO_CUSTOMERS);
    bench.customer = "acme".parse().ok();
    bench.report(0, &[host(ConditionCode::RecordsBroken), broken(2)]);
    bench.run_to(60);
    assert_eq!(customers(&bench.notices, "chat").len(), 1, "a guest without a customer is not the host's");
    bench.host_state(100, HostState::Offline);
    bench.run_to(200);
    let offline = |notice: &&Notice| {
        notice.receiver == receiver("chat")
            && notice.incidents.iter().any(|one| one.code == ConditionCode::HostOffline)
    };
    assert_eq!(bench.notices.iter().filter(offline).count(), 1);
}

#[test]
fn a_route_to_another_customer_alone_takes_nothing() {
    let rules = TWO_CUSTOMERS.replace("continue = true", "").replace("\"chat\", \"boss\"]", "\"chat\"]");
    let mut bench = Bench::new(&rules);
    bench.report(0, &[of("acme", broken(1)), of("beta", broken(2))]);
    bench.run_to(60);
    assert_eq!(customers(&bench.notices, "chat"), [Some("acme".to_owned())]);
    assert_eq!(customers(&bench.notices, "mail"), [Some("beta".to_owned())], "somebody must hear of it");
}

#[test]
fn everything_goes_to_every_channel_that_is_no_customers() {
    let rules = TWO_CUSTOMERS.replace("default_route.receivers = [\"mail\"]", "");
    let mut bench =
        Bench::new(&rules.replace(
            "[[route]]\nname = \"customers\"\nreceivers = [\"chat\", \"boss\"]\ncontinue = true\n",
            "",
        ));
    bench.report(0, &[of("acme", broken(1))]);
    bench.run_to(60);
    let to: Vec<&str> = bench.notices.iter().map(|notice| notice.receiver.as_str()).collect();
    assert_eq!(to, ["mail"]);
}

#[test]
fn a_guest_that_changes_its_customer_is_not_heard_of_by_the_first_any_more() {
    let mut bench = Bench::new(TWO_CUSTOMERS);
    bench.report(0, &[of("acme", broken(1))]);
    bench.run_to(60);
    let before = bench.notices.len();
    bench.report(70, &[of("beta", broken(1))]);
    bench.report(200, &[]);
    bench.run_to(100_000);
    let after = &bench.notices[before..];
    assert_eq!(customers(after, "chat"), Vec::<Option<String>>::new());
    assert_eq!(customers(after, "boss").len(), 2, "that it fires, and that it is over");
    assert!(bench.suppressions().contains(&&Suppression::OtherCustomer {}));
    assert!(bench.state.groups.is_empty(), "nothing is kept for ever");
}

/// Random reports, with guests that come, go and change hands: no notice names what its receiver may not hear.
#[test]
fn no_customer_ever_hears_of_another() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let codes = [ConditionCode::GuestBroken, ConditionCode::GuestCrashed, ConditionCode::GuestFrozen];
    for _ in 0..40 {
        let mut bench = Bench::new(TWO_CUSTOMERS);
        for step in 1..60_i64 {
            bench.customer = ["acme", "beta", ""][usize::try_from(draw(3)).unwrap()].parse().ok();
            let mut wrong = Vec::new();
            for number in 0..6_u128 {
                let code = codes[usize::try_from(draw(3)).unwrap()];
                let owner = ["acme", "beta", ""][usize::try_from(draw(3)).unwrap()];
                if draw(2) == 0 {
                    wrong.push(of(owner, guest(code, number)));
                }
            }
            if draw(3) == 0 {
                wrong.push(host(ConditionCode::RecordsBroken));
            }
            bench.report(step * 97, &wrong);
        }
        let combined = digest::combine(bench.notices.clone()).notices;
        for notices in [&bench.notices, &combined] {
            for (to, owner) in [("chat", "acme"), ("boss", "beta")] {
                let heard = customers(notices, to);
                assert!(heard.iter().all(|one| one.as_deref() == Some(owner)), "{to}: {heard:?}");
            }
        }
        assert!(!customers(&bench.notices, "chat").is_empty());
    }
}
