//! Orders that open a way, and all those that open none.

use holdfast_protocol::break_glass::CloseCause;
use holdfast_protocol::break_glass::Closed;
use holdfast_trust::Policy;

use super::ssh_signer::{Hand, RIGHT, Shape, job};
use super::*;
use crate::moment::tests::{moment, second};
use crate::settings::tests::TEXT;
use crate::state::Event;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFhmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZm";

const PAYLOAD: &str = r#"{"schema":"holdfast.job/v1","job_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01","host_id":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02","host_epoch":3,"host":{"name":"box7","fingerprint":"4f2a-9c01-77de-b3a8-0c11"},"target":{"kind":"host"},"verb":"break_glass","args":{"way":"tunnel","minutes":30,"key":"KEY","customers":["acme","byte"]},"not_before":"BEGIN","expires_at":"END","nonce":"00112233445566778899aabbccddeeff","reason":"the agent hangs"}"#;

/// The clock of [`moment`] at its zero, and an order for it.
fn payload() -> String {
    let at = |s: i64| second(moment(s, 1, 0).wall.as_second()).to_string();
    PAYLOAD.replace("KEY", KEY).replace("BEGIN", &at(-60)).replace("END", &at(3_600))
}

fn ada() -> Hand {
    Hand::new(1)
}

fn acme() -> Hand {
    Hand::new(7)
}

fn cube() -> Hand {
    Hand::new(8)
}

fn consents(hand: &Hand, bytes: &[u8]) -> String {
    const NAMESPACE: &str = "holdfast-consent";
    hand.shaped(bytes, Shape { says: NAMESPACE, made_for: NAMESPACE, ..RIGHT })
}

fn trust(policy: &str) -> Trust {
    let operators = Operators::parse(&format!("{}{}", ada().line("ada"), Hand::new(2).line("bob"))).unwrap();
    let policy = Policy::parse(policy, &operators).unwrap();
    let keys = Operators::parse(&format!("{}{}", acme().line("acme"), cube().line("cube"))).unwrap();
    Trust { roster: Roster { operators, policy }, consent_keys: Some(keys) }
}

/// As the agent puts it down.
fn order(payload: &str, signers: &[&Hand], consenting: &[&Hand]) -> Vec<u8> {
    let bytes = payload.as_bytes();
    let signatures = signers.iter().map(|hand| hand.sign(bytes)).collect();
    let consents = consenting.iter().map(|hand| consents(hand, bytes)).collect();
    SignedJob { payload: bytes.to_vec(), signatures, consents }.to_json().unwrap().into_bytes()
}

fn good() -> Vec<u8> {
    order(&payload(), &[&ada()], &[&acme()])
}

fn judged(bytes: &[u8], state: &State, now: &Moment) -> Decision {
    decide(bytes, &trust("version = 1"), &Settings::parse(TEXT).unwrap(), state, now)
}

fn fresh() -> State {
    State::new(second(moment(0, 1, 0).wall.as_second()))
}

fn opened(decision: Decision) -> (OpenWay, UsedOrder) {
    match decision {
        Decision::Open(opened) => *opened,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(decision: Decision) -> (ErrorCode, String) {
    match decision {
        Decision::Refuse(refusal) => (refusal.code(), refusal.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_signed_order_with_its_consent_opens_exactly_what_it_names() {
    let now = moment(0, 1, 1_000);
    let (open, used) = opened(judged(&good(), &fresh(), &now));
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(open.order.way.as_str(), "tunnel");
    assert_eq!(open.order.consents.iter().map(ToString::to_string).collect::<Vec<_>>(), names(&["acme"]));
    assert_eq!(open.order.signers.iter().map(ToString::to_string).collect::<Vec<_>>(), names(&["ada"]));
    assert_eq!(open.order.closes_at.second() - open.order.opened_at.second(), 30 * 60);
    assert_eq!((open.term.up_end_s, open.run), (1_000 + 30 * 60, None));
    assert!(open.line.contains("from=\"10.77.0.0/24,fd00::7\"") && open.line.contains(KEY), "{}", open.line);
    assert_eq!(open.line.lines().count(), 1);
    assert_eq!(used.nonce.as_str(), "00112233445566778899aabbccddeeff");
}

/// Each differs from the good one in one thing.
#[test]
fn forged_orders_open_nothing() {
    let (ada, eve, text) = (ada(), Hand::new(9), payload());
    let with = |old: &str, new: &str| {
        assert!(text.contains(old), "{old}");
        order(&text.replacen(old, new, 1), &[&ada], &[&acme()])
    };
    let shaped = |shape: Shape| {
        let (payload, consents) = (text.as_bytes().to_vec(), vec![consents(&acme(), text.as_bytes())]);
        let signatures = vec![ada.shaped(text.as_bytes(), shape)];
        SignedJob { payload, signatures, consents }.to_json().unwrap().into_bytes()
    };
    let mut changed = SignedJob::parse(&good()).unwrap();
    let place = changed.payload.windows(2).position(|pair| pair == b"30").unwrap();
    changed.payload[place] = b'6';
    let changed = changed.to_json().unwrap().into_bytes();
    let consent = |sign: &dyn Fn(&[u8]) -> String| {
        let mut job = SignedJob::parse(&order(&text, &[&ada], &[])).unwrap();
        job.consents = vec![sign(text.as_bytes())];
        job.to_json().unwrap().into_bytes()
    };
    for (what, bytes, code) in [
        ("another's key", order(&text, &[&eve], &[&acme()]), ErrorCode::KeyUnknown),
        ("another's key next to a good one", order(&text, &[&ada, &eve], &[&acme()]), ErrorCode::KeyUnknown),
        (
            "no signature",
            br#"{"schema":"holdfast.signed-job/v1","payload":"","signatures":[]}"#.to_vec(),
            ErrorCode::Range,
        ),
        (
            "another namespace",
            shaped(Shape { says: "file", made_for: "file", ..RIGHT }),
            ErrorCode::Signature,
        ),
        ("a namespace that is only said", shaped(Shape { made_for: "file", ..RIGHT }), ErrorCode::Signature),
        (
            "a consent as a signature",
            shaped(Shape { says: "holdfast-consent", made_for: "holdfast-consent", ..RIGHT }),
            ErrorCode::Signature,
        ),
        (
            "a changed signature",
            shaped(Shape { touch: |bytes| bytes[9] ^= 1, ..RIGHT }),
            ErrorCode::Signature,
        ),
        ("a changed byte", changed, ErrorCode::Signature),
        ("bytes behind its end", [good(), b"x".to_vec()].concat(), ErrorCode::Syntax),
        ("half of it", good()[..200].to_vec(), ErrorCode::Syntax),
        ("another host's id", with("7a02", "7a05"), ErrorCode::NotYours),
        ("another host's name", with("box7", "box8"), ErrorCode::NotYours),
        ("another host's key", with("4f2a-9c01", "4f2a-9c02"), ErrorCode::HostKeyChanged),
        (
            "no host by name and key",
            with(r#""host":{"name":"box7","fingerprint":"4f2a-9c01-77de-b3a8-0c11"},"#, ""),
            ErrorCode::JobUnbound,
        ),
        ("another life of the host", with("\"host_epoch\":3", "\"host_epoch\":4"), ErrorCode::JobEpoch),
        ("an unknown way", with("\"tunnel\"", "\"cellar\""), ErrorCode::NotFound),
        ("a way with its own key", with("\"tunnel\"", "\"restart\""), ErrorCode::Range),
        ("no key", with(&format!(r#""key":"{KEY}","#), ""), ErrorCode::Range),
        (
            "a weak key",
            with(KEY, &format!("{}{}", &KEY[.."ssh-ed25519 ".len() + 25], "A".repeat(43))),
            ErrorCode::Range,
        ),
        ("too long a time", with("\"minutes\":30", "\"minutes\":61"), ErrorCode::Range),
        ("a time that none may have", with("\"minutes\":30", "\"minutes\":481"), ErrorCode::Range),
        (
            "an argument more",
            with("\"minutes\":30", "\"minutes\":30,\"user\":\"root\""),
            ErrorCode::UnknownField,
        ),
        (
            "another verb",
            with(
                &text[text.find("\"verb\"").unwrap()..text.find(",\"not_before\"").unwrap()],
                r#""verb":"cancel","args":{"job":"01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01"}"#,
            ),
            ErrorCode::Unsupported,
        ),
        ("no consent", job(text.as_bytes(), &[&ada]).into_bytes(), ErrorCode::ConsentMissing),
        ("another customer's consent", order(&text, &[&ada], &[&cube()]), ErrorCode::ConsentMissing),
        ("an operator's consent", order(&text, &[&ada], &[&ada]), ErrorCode::KeyUnknown),
        ("a consent to other bytes", consent(&|_| consents(&acme(), b"{}")), ErrorCode::Signature),
        ("a consent made as a job", consent(&|bytes| acme().sign(bytes)), ErrorCode::Signature),
        (
            "a customer that is not listed, without a consent",
            with(r#"["acme","byte"]"#, r#"["acme","cube"]"#),
            ErrorCode::ConsentMissing,
        ),
        (
            "customers left out",
            order(&text.replacen(r#","customers":["acme","byte"]"#, "", 1), &[&ada], &[]),
            ErrorCode::ConsentMissing,
        ),
    ] {
        assert_eq!(refused(judged(&bytes, &fresh(), &moment(0, 1, 0))).0, code, "{what}");
    }
    let many: Vec<String> = (0..65).map(|n| format!("\"c{n:02}\"")).collect();
    let many = text.replacen(r#""acme","byte""#, &many.join(","), 1);
    let decision = judged(&order(&many, &[&ada], &[&acme()]), &fresh(), &moment(0, 1, 0));
    assert_eq!(refused(decision).0, ErrorCode::Range, "more customers than a host has");
    let unlisted = text.replacen(r#"["acme","byte"]"#, r#"["acme","cube"]"#, 1);
    opened(judged(&order(&unlisted, &[&ada], &[&acme(), &cube()]), &fresh(), &moment(0, 1, 0)));
}

#[test]
fn an_order_has_its_time() {
    for (what, now, latest, code) in [
        ("not yet", moment(-61, 1, 0), -61, ErrorCode::JobNotYet),
        ("expired", moment(3_600, 1, 0), 0, ErrorCode::JobExpired),
        ("the clock was set back", moment(0, 1, 0), 121, ErrorCode::ClockBehind),
        ("set back by a day, and the order is of then", moment(0, 1, 0), 86_400, ErrorCode::ClockBehind),
    ] {
        let mut state = fresh();
        state.latest = second(moment(latest, 1, 0).wall.as_second());
        assert_eq!(refused(judged(&good(), &state, &now)).0, code, "{what}");
    }
    let settings = Settings::parse(TEXT).unwrap();
    let delayed = trust("version = 1\n[verbs.break_glass]\ndelay_s = 300\n");
    let at = |s: i64| decide(&good(), &delayed, &settings, &fresh(), &moment(s, 1, 0));
    // The order counts from a minute before zero.
    assert_eq!(refused(at(239)).0, ErrorCode::JobNotYet);
    opened(at(240));
}

#[test]
fn an_order_opens_once() {
    let now = moment(0, 1, 0);
    let after = fresh().next(Event::Opened(Box::new(opened(judged(&good(), &fresh(), &now)))), &now);
    assert!(matches!(judged(&good(), &after, &now), Decision::IsOpen), "the same, while it is open");
    assert_eq!(refused(judged(&good(), &after, &moment(1_800, 1, 1_800))).0, ErrorCode::JobReplayed, "over");
    let ada = ada();
    let other = |old: &str, new: &str| order(&payload().replacen(old, new, 1), &[&ada], &[&acme()]);
    let (id, nonce) = (other("7a01", "7a09"), other("eeff", "eefe"));
    let closed = Closed { at: second(moment(60, 1, 60).wall.as_second()), cause: CloseCause::Expired };
    let after = after.next(Event::Closed(closed), &moment(60, 1, 60));
    for (what, bytes) in [("the same", good()), ("its nonce", id), ("its id", nonce)] {
        assert_eq!(refused(judged(&bytes, &after, &moment(60, 1, 60))).0, ErrorCode::JobReplayed, "{what}");
    }
    opened(judged(&other(r#"7a01","host"#, r#"7a09","host"#).clone(), &fresh(), &now));
}

#[test]
fn one_way_at_a_time_and_as_many_a_day_as_the_policy_lets() {
    let (now, ada) = (moment(0, 1, 0), ada());
    let new = |n: u32| {
        let text = payload().replacen("7a01", &format!("7b0{n}"), 1).replacen("eeff", &format!("ee0{n}"), 1);
        order(&text, &[&ada], &[&acme()])
    };
    let settings = Settings::parse(TEXT).unwrap();
    let twice = trust("version = 1\n[verbs.break_glass]\nper_day = 2\n");
    let mut state = fresh();
    for n in 0..2 {
        let decision = decide(&new(n), &twice, &settings, &state, &now);
        state = state.next(Event::Opened(Box::new(opened(decision))), &now);
        if n == 0 {
            assert_eq!(refused(judged(&new(9), &state, &now)).0, ErrorCode::Busy);
        }
        let closed = Closed { at: state.latest, cause: CloseCause::ByRoot };
        state = state.next(Event::Closed(closed), &now);
    }
    assert_eq!(refused(decide(&new(2), &twice, &settings, &state, &now)).0, ErrorCode::Quota);
    let two = trust("version = 1\n[verbs.break_glass]\nsignatures = 2\n");
    let missing = decide(&good(), &two, &settings, &fresh(), &now);
    assert_eq!(refused(missing).0, ErrorCode::SignaturesMissing);
    let both = order(&payload(), &[&ada, &Hand::new(2)], &[&acme()]);
    opened(decide(&both, &two, &settings, &fresh(), &now));
}

#[test]
fn a_host_on_which_it_is_off_opens_nothing() {
    let off = Settings::parse(&TEXT.replacen("enabled = true", "enabled = false", 1)).unwrap();
    let decision = decide(&good(), &trust("version = 1"), &off, &fresh(), &moment(0, 1, 0));
    assert_eq!(refused(decision).0, ErrorCode::BreakGlassOff);
    let without_keys = Trust { consent_keys: None, ..trust("version = 1") };
    let settings = Settings::parse(TEXT).unwrap();
    let decision = decide(&good(), &without_keys, &settings, &fresh(), &moment(0, 1, 0));
    assert_eq!(refused(decision).0, ErrorCode::Unavailable);
}

#[test]
fn a_way_with_its_own_program_runs_that() {
    let text =
        payload().replacen("\"tunnel\"", "\"restart\"", 1).replacen(&format!(r#""key":"{KEY}","#), "", 1);
    let (open, _) = opened(judged(&order(&text, &[&ada()], &[&acme()]), &fresh(), &moment(0, 1, 0)));
    assert_eq!(open.run.unwrap(), ["/usr/bin/systemctl", "restart", "agentd"]);
    assert!(open.line.contains("from=\"10.77.0.9\""), "{}", open.line);
}
