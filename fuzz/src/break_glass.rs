//! Fuzzed orders, settings and files of break-glass.

use std::collections::BTreeSet;

use holdfast_break_glass::decide::{Decision, Trust, decide};
use holdfast_break_glass::log;
use holdfast_break_glass::moment::{BootId, Moment};
use holdfast_break_glass::processes;
use holdfast_break_glass::settings::Settings;
use holdfast_break_glass::state::{Event, State};
use holdfast_protocol::break_glass::BreakGlassStatus;
use holdfast_protocol::job::UtcSecond;
use holdfast_trust::{Operators, Policy, Roster};

use crate::signer::Signer;

const SETTINGS: &str = r#"
enabled = true
[host]
id = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02"
name = "box7"
fingerprint = "4f2a-9c01-77de-b3a8-0c11"
epoch = 1
[customers.acme]
consent = "not_needed"
[ways.tunnel]
kind = "authorized_keys"
from = ["10.77.0.0/24"]
minutes_max = 60
"#;

fn moment() -> Moment {
    let boot = BootId::try_from("00000001-0000".to_owned()).expect("a boot");
    Moment { wall: "2026-11-21T14:30:00Z".parse().expect("a time"), boot, up_s: 1_000 }
}

/// Trust in one signer, and no customer.
fn trust(signer: u8) -> Trust {
    let operators = Operators::parse(&Signer::new(signer).line("alice")).expect("a file");
    Trust { roster: Roster { operators, policy: Policy::first() }, consent_keys: None }
}

/// One input: as a payload that was signed, as an order that no one signed, and as each file.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    let (settings, now) = (Settings::parse(SETTINGS).expect("settings"), moment());
    let state = State::new(UtcSecond::new(now.wall).expect("a second"));
    let order = Signer::new(1).job(data).to_json().expect("it can be written");
    match decide(order.as_bytes(), &trust(1), &settings, &state, &now) {
        Decision::Open(opened) => {
            let (open, used) = *opened;
            let said: serde_json::Value = serde_json::from_slice(data).expect("JSON");
            let of = |path: &str| said.pointer(path).cloned().unwrap_or_default();
            assert_eq!((of("/verb"), of("/host/name")), ("break_glass".into(), "box7".into()));
            assert_eq!((of("/args/way"), of("/host_epoch")), ("tunnel".into(), 1.into()));
            let minutes = of("/args/minutes").as_i64().expect("a number");
            assert!((1..=60).contains(&minutes));
            assert_eq!(open.order.closes_at.second() - open.order.opened_at.second(), minutes * 60);
            let key = of("/args/key");
            let key = key.as_str().expect("a key");
            assert!(open.line.starts_with("restrict,pty,expiry-time=\"2026112") && open.line.contains(key));
            assert_eq!(open.line.matches('"').count(), 6, "no option but ours: {}", open.line);
            assert!(open.line.lines().count() == 1 && open.run.is_none());
            let customers: BTreeSet<String> =
                open.order.customers.iter().map(ToString::to_string).filter(|name| name != "acme").collect();
            assert!(customers.is_empty(), "one that is not excused did not consent: {customers:?}");
            assert!(!state.is_used(used.job, &used.nonce, &used.order));
            let line = open.line.clone();
            let after = state.next(Event::Opened(Box::new((open.clone(), used))), &now);
            assert!(matches!(decide(order.as_bytes(), &trust(1), &settings, &after, &now), Decision::IsOpen));
            assert_eq!(after.open.expect("it is open").line, line);
        }
        Decision::IsOpen => panic!("nothing was opened before"),
        Decision::Refuse(refusal) => {
            assert!(!refusal.code().as_str().is_empty() && !refusal.to_string().is_empty())
        }
    }
    // No seed is signed by this one.
    let state = State::new(UtcSecond::new(now.wall).expect("a second"));
    assert!(matches!(decide(data, &trust(9), &settings, &state, &now), Decision::Refuse(_)));
    files(data, &now);
}

fn files(data: &[u8], now: &Moment) {
    if let Ok(state) = State::parse(data) {
        assert_eq!(State::parse(&state.to_json().expect("it can be written")).expect("and read"), state);
        let left = state.left_s(now);
        let after = state.next(Event::Ticked, now);
        assert!(after.left_s(now) <= left, "time that passed makes a way last longer");
    }
    if let Ok(status) = BreakGlassStatus::parse(data) {
        let text = serde_json::to_vec(&status).expect("it can be written");
        assert_eq!(BreakGlassStatus::parse(&text).expect("and read"), status);
    }
    if let Ok(next) = log::append(data, now.wall, (log::Action::Closed, None), "closed") {
        let whole = [data.get(..next.whole).unwrap_or_default(), next.line.as_bytes()].concat();
        assert!(log::lines(&whole).is_ok(), "what is appended holds");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(settings) = Settings::parse(text) {
        assert!(!settings.ways.is_empty());
        for way in settings.ways.values() {
            assert!(way.from().iter().all(|from| !from.as_str().contains(['"', ',', ' ', '*', '!'])));
        }
    }
    if let Some(process) = processes::stat(text) {
        assert!(text.contains(&process.id.start.to_string()));
    }
    if let Some(group) = processes::login_group(text) {
        assert!(group.starts_with('/') && group.ends_with(".scope") && !group.contains(".."));
    }
}
