//! Explanations of rules, and notices that try a channel.

use alerts::explain::{Sample, explain, test_notices};
use alerts::group::Entry;
use alerts::label::Labels;
use alerts::signal::{HostState, Signal};
use alerts::{Reason, Setting, Suppression, Verdict};
use holdfast_protocol::condition::{ConditionCode, Subject};

use crate::kit::*;

fn sample(code: ConditionCode) -> Sample {
    Sample { code, subject: Subject::Guest { uid: uid(1) }, severity: None, labels: Labels::default() }
}

#[test]
fn an_explanation_names_route_receivers_times_and_what_mutes() {
    let mut bench = Bench::new(
        "[[route]]\nname = \"guests\"\nmatchers = [\"cause=guest\"]\nreceivers = [\"chat\"]\nrepeat_interval_s = 600\n\
         escalate = { after_s = 900, receivers = [\"boss\"] }\n[[quiet_hours]]\nname = \"night\"\nfrom = \"22:00\"\n\
         until = \"07:00\"\nzone = \"Europe/Vienna\"\nreceivers = [\"chat\"]",
    );
    let ask = |bench: &Bench, code, second| {
        let setting = Setting {
            rules: &bench.rules,
            silences: &bench.silences,
            host: Some(&bench.host),
            customer: None,
            listening_since: bench.listening_since,
        };
        explain(&sample(code), &bench.state, &setting, at(second))
    };
    let day = ask(&bench, ConditionCode::GuestCrashed, 0);
    assert_eq!((day.fires_after_s, day.clears_after_s), (60, 120));
    assert_eq!(day.route.as_ref().map(|route| route.as_str()), Some("guests"));
    assert_eq!(day.inhibited_by, [ConditionCode::HostOffline, ConditionCode::ProxmoxAway]);
    let [chat, boss] = day.receivers.as_slice() else { panic!("{day:?}") };
    assert_eq!(
        (chat.entry, chat.fire.clone(), chat.repeat_interval_s),
        (Entry::Route, Verdict::Deliver, 600)
    );
    assert_eq!((boss.entry, boss.escalated_after_s), (Entry::Escalation, Some(900)));
    assert!(chat.quiet_hours[0].current.is_none());
    assert_eq!(chat.quiet_hours[0].next.map(|next| next.from), Some(at(13 * 3_600)));

    let night = ask(&bench, ConditionCode::GuestCrashed, 15 * 3_600);
    assert!(matches!(night.receivers[0].fire, Verdict::Suppress(Suppression::QuietHours { .. })));
    assert_eq!(night.receivers[1].fire, Verdict::Deliver);

    bench.signal(0, &Signal::Host { state: HostState::Offline, since: at(0) });
    let offline = ask(&bench, ConditionCode::GuestCrashed, 1);
    let by = ConditionCode::HostOffline;
    assert_eq!(offline.receivers[0].fire, Verdict::Suppress(Suppression::Inhibited { by }));
    assert!(ask(&bench, ConditionCode::HostLate, 1).route.is_none());
    let json = serde_json::to_string(&offline).unwrap();
    assert_eq!(serde_json::from_str::<alerts::explain::Explanation>(&json).unwrap(), offline);
}

#[test]
fn a_channel_is_tried_with_a_beginning_and_an_end() {
    let [fire, end] = test_notices(&receiver("mail"), &operator(), 7, at(0));
    assert_eq!((fire.reason, end.reason), (Reason::Test, Reason::Test));
    assert_eq!(fire.incidents[0].id, end.incidents[0].id);
    assert!(fire.incidents[0].is_firing() && !end.incidents[0].is_firing());
    assert_ne!(fire.key, end.key);
    assert_ne!(test_notices(&receiver("mail"), &operator(), 8, at(0))[0].key, end.key);
}
