//! Tests of every bound, and of exact sentences.

use std::collections::BTreeSet;

use base64::engine::general_purpose::STANDARD_NO_PAD;
use holdfast_protocol::job::Verb;

use super::*;
use crate::OperatorKey;
use crate::operators::SigningRight;
use crate::policy::{ALONE_DELAY_S, Lane, Rule};

/// `text` with comments up to a length.
fn filled(text: &str, length: usize) -> String {
    format!("{text}\n#{}", "x".repeat(length - text.len() - 2))
}

#[test]
fn a_key_is_known_by_the_fingerprint_that_openssh_prints() {
    let alice = Hand::plain(1);
    let line = alice.line("alice");
    let key = OperatorKey::from_openssh(line.split_once(' ').unwrap().1).unwrap();
    let print = format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(alice.blob())));
    assert_eq!(key.fingerprint(), print);
    assert_eq!(format!("{key:?}"), print);
}

#[test]
fn an_operators_file_is_as_long_as_it_may_be_and_no_longer() {
    let line = Hand::plain(1).line("alice");
    assert!(Operators::parse(&filled(&line, 64 * 1024)).is_ok());
    assert!(matches!(
        Operators::parse(&filled(&line, 64 * 1024 + 1)),
        Err(OperatorsError::Size(size)) if size == 64 * 1024 + 1
    ));
}

#[test]
fn operators_count_once_and_all_keys_are_listed() {
    let (one, two, three) = (Hand::plain(1), Hand::token(2, 1), Hand::plain(3));
    let lines = [one.line("alice"), two.line("alice"), three.line("bob")].join("\n");
    let operators = Operators::parse(&lines).unwrap();
    assert_eq!(operators.operators(), 2);
    assert_eq!(
        operators.holders().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["alice", "alice", "bob"]
    );
}

#[test]
fn no_option_stands_twice_and_a_space_in_quotes_is_none() {
    let alice = Hand::plain(1);
    let line = |options: &str| alice.line(&format!("alice {options}"));
    for options in [
        r#"valid-after="20261121Z",valid-after="20261121Z""#,
        r#"valid-before="20261121Z",valid-before="20261121Z""#,
        r#"valid-after="20261121Z",namespaces="a",valid-after="20261121Z""#,
        r#"namespaces="holdfast-job"#,
        r#"namespaces="a namespaces="holdfast-job""#,
        r#"namespaces=holdfast-job""#,
        r#"valid-after="20261121 Z""#,
        r#"valid-after="2026112Z""#,
    ] {
        let error = Operators::parse(&line(options)).unwrap_err();
        assert!(
            matches!(
                error,
                OperatorsError::Line { line: 1, source: LineError::Option(_) | LineError::Time(_) }
            ),
            "{options}: {error:?}"
        );
    }
    let spaced =
        Operators::parse(&line(r#"namespaces="a b,holdfast-job",valid-before="20271121Z""#)).unwrap();
    let key = OperatorKey::from_openssh(alice.line("alice").split_once(' ').unwrap().1).unwrap();
    assert!(matches!(spaced.right(&key, Namespace::Job, now()), SigningRight::May(_)));
}

/// A comma within quotes separates no options, wherever it is and however long the quoted text is.
#[test]
fn options_are_parted_by_the_commas_outside_quotes() {
    let alice = Hand::plain(1);
    let key = OperatorKey::from_openssh(alice.line("alice").split_once(' ').unwrap().1).unwrap();
    let line = |options: &str| Operators::parse(&alice.line(&format!("alice {options}")));
    for length in 1..=8 {
        let other = "x".repeat(length);
        for options in [
            format!(r#"namespaces="{other},holdfast-job""#),
            format!(r#"namespaces="{other},holdfast-job",valid-before="20271121Z""#),
            format!(r#"valid-before="20271121Z",namespaces="holdfast-job,{other}""#),
        ] {
            let operators = line(&options).unwrap();
            assert!(
                matches!(operators.right(&key, Namespace::Job, now()), SigningRight::May(_)),
                "{options}"
            );
        }
        let elsewhere = line(&format!(r#"namespaces="{other},{other}",valid-before="20271121Z""#)).unwrap();
        assert!(matches!(elsewhere.right(&key, Namespace::Job, now()), SigningRight::MayNot(_)), "{other}");
    }
}

/// Each way of writing a time says the same moment, and the key may sign from it on, or up to it.
#[test]
fn times_are_taken_to_the_second() {
    let alice = Hand::plain(1);
    let key = OperatorKey::from_openssh(alice.line("alice").split_once(' ').unwrap().1).unwrap();
    for (text, edge) in [
        ("20261121Z", "2026-11-21T00:00:00Z"),
        ("202611211430Z", "2026-11-21T14:30:00Z"),
        ("20261121143001Z", "2026-11-21T14:30:01Z"),
    ] {
        let second = jiff::SignedDuration::from_secs(1);
        let (edge, just_before) = (at(edge), at(edge).checked_sub(second).unwrap());
        let after = Operators::parse(&alice.line(&format!("alice valid-after=\"{text}\""))).unwrap();
        let before = Operators::parse(&alice.line(&format!("alice valid-before=\"{text}\""))).unwrap();
        let may = |operators: &Operators, at| {
            matches!(operators.right(&key, Namespace::Job, at), SigningRight::May(_))
        };
        assert!(may(&after, edge) && !may(&after, just_before), "{text}");
        assert!(!may(&before, edge) && may(&before, just_before), "{text}");
    }
    let stranger = OperatorKey::from_openssh(Hand::plain(9).line("x").split_once(' ').unwrap().1).unwrap();
    let operators = Operators::parse(&alice.line("alice")).unwrap();
    assert_eq!(operators.right(&stranger, Namespace::Job, now()), SigningRight::Unknown);
}

#[test]
fn a_policy_is_as_long_as_it_may_be_and_asks_for_as_many_as_there_are() {
    let both = [Hand::plain(1).line("alice"), Hand::plain(2).line("bob")].join("\n");
    let operators = Operators::parse(&both).unwrap();
    let parse = |text: &str| Policy::parse(text, &operators);
    assert!(parse(&filled("version = 1", 16 * 1024)).is_ok());
    assert!(matches!(parse(&filled("version = 1", 16 * 1024 + 1)), Err(PolicyError::Size(_))));
    let of = |rule: &str| parse(&format!("version = 1\n[verbs.destroy_guest]\n{rule}"));
    assert!(of("signatures = 2").is_ok());
    assert!(matches!(of("signatures = 3"), Err(PolicyError::OutOfReach { needed: 3, operators: 2, .. })));
    assert!(of("signatures = 1\nsigners = [\"bob\"]").is_ok());
    let few = of("signatures = 2\nsigners = [\"bob\"]");
    assert!(matches!(few, Err(PolicyError::OutOfReach { needed: 2, operators: 1, .. })), "{few:?}");
    assert!(of("signatures = 2\nsigners = [\"alice\", \"bob\"]").is_ok());
}

/// The rules of a host that was given no policy.
#[test]
fn without_a_policy_what_destroys_waits_and_is_counted() {
    for verb in Verb::ALL {
        let (delay_s, per_day) = match verb {
            Verb::DeleteBackup
            | Verb::DestroyGuest
            | Verb::DiscardCopy
            | Verb::PolicyUpdate
            | Verb::Rollback => (600, 10),
            Verb::LoosenPolicy => (600, 1_000),
            Verb::AttachStorage
            | Verb::BreakGlass
            | Verb::DetachStorage
            | Verb::RestoreHost
            | Verb::SetTunnelToken => (0, 10),
            _ => (0, 1_000),
        };
        let rule = Rule { signatures: 1, delay_s, per_day, signers: BTreeSet::new() };
        assert_eq!(Rule::first(*verb), rule, "{verb:?}");
        assert_eq!(Policy::first().rule(*verb), rule, "{verb:?}");
    }
}

/// Who changes who may sign does so with another one, or leaves the others a day to stop it.
#[test]
fn one_of_two_who_changes_who_may_sign_waits_for_a_day() {
    assert_eq!(ALONE_DELAY_S, 86_400, "a day");
    let (alice, again, bob) = (Hand::plain(1), Hand::plain(2), Hand::plain(3));
    let update = PAYLOAD.replace(
        r#""verb":"destroy_guest","args":{}"#,
        r#""verb":"policy_update","args":{"signers":"x","policy":"y"}"#,
    );
    let start = update.find(r#""target":"#).unwrap();
    let end = update.find(r#","verb""#).unwrap();
    let update = [&update[..start], r#""target":{"kind":"host"}"#, &update[end..]].concat();
    let (one, other) = (alice.line("alice"), bob.line("bob"));
    let two = [one.clone(), other.clone()];
    let ended = [one.clone(), bob.line("bob valid-before=\"20260101Z\"")];
    let soon = [one.clone(), bob.line("bob valid-after=\"20271121Z\"")];
    let elsewhere = [one.clone(), bob.line("bob namespaces=\"git\"")];
    let spare = [one.clone(), again.line("alice")];
    let plain = "version = 1";
    type Row<'a> = (&'a str, &'a [String], &'a str, &'a [&'a Hand], Lane, u32);
    let cases: [Row<'_>; 9] = [
        ("the only one", &two[..1], plain, &[&alice], Lane::Rule, 600),
        ("one of two", &two, plain, &[&alice], Lane::Alone, ALONE_DELAY_S),
        ("two of two", &two, plain, &[&alice, &bob], Lane::Rule, 600),
        ("the other's key ended", &ended, plain, &[&alice], Lane::Rule, 600),
        ("the other's key is not in use yet", &soon, plain, &[&alice], Lane::Rule, 600),
        ("the other's key is for other things", &elsewhere, plain, &[&alice], Lane::Rule, 600),
        ("one person with two keys, alone", &spare, plain, &[&alice, &again], Lane::Rule, 600),
        (
            "one person with two keys, of two people",
            &[one.clone(), again.line("alice"), other.clone()],
            plain,
            &[&alice, &again],
            Lane::Alone,
            ALONE_DELAY_S,
        ),
        (
            "the policy says so",
            &two,
            "version = 1\n[verbs.policy_update]\ndelay_s = 60",
            &[&alice],
            Lane::Rule,
            60,
        ),
    ];
    for (name, lines, policy, hands, lane, delay_s) in cases {
        let accepted = roster(lines, policy).accept(&job(&update, hands), now()).unwrap();
        assert_eq!((accepted.lane(), accepted.rule().delay_s), (lane, delay_s), "{name}");
    }
    // Every other verb is as it was.
    let accepted = roster(&two, plain).accept(&job(PAYLOAD, &[&alice]), now()).unwrap();
    assert_eq!((accepted.lane(), accepted.rule().delay_s), (Lane::Rule, 600));
}

#[test]
fn a_signature_is_as_long_as_it_may_be() {
    let check = |text: &str| signature::check(b"x", text, Namespace::Job).unwrap_err();
    assert!(matches!(check(&"x".repeat(2 * 1024)), SignatureError::Form(_)));
    assert!(matches!(check(&"x".repeat(2 * 1024 + 1)), SignatureError::Size(size) if size == 2 * 1024 + 1));
}

#[test]
fn an_unused_order_to_restore_a_host_may_count_for_a_year() {
    let operators = Operators::parse(&Hand::plain(1).line("alice")).unwrap();
    let policy = Policy::parse("version = 1\n[restore]\nunused_ends_h = 8760", &operators).unwrap();
    assert_eq!(policy.restore.unused_ends_h, 8_760);
}

/// Each refusal says why by its own code.
#[test]
fn a_refusal_names_key_and_owner() {
    let (alice, eve) = (Hand::plain(1), Hand::plain(2));
    let mine = roster(&[alice.line("alice")], "version = 1");
    let two = SignedJob {
        payload: PAYLOAD.into(),
        signatures: vec![alice.sign(PAYLOAD.as_bytes()), "none".to_owned()],
        consents: Vec::new(),
    };
    let refused = mine.accept(&two, now()).unwrap_err();
    assert!(matches!(refused, Refused::Signature { number: 2, .. }), "{refused:?}");
    match mine.accept(&job(PAYLOAD, &[&eve]), now()).unwrap_err() {
        Refused::KeyUnknown { fingerprint } => {
            let print = format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(eve.blob())));
            assert_eq!(fingerprint, print);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(code(mine.accept(&job("{}", &[&alice]), now())), ErrorCode::Missing);
    let accepted = mine.accept(&job(PAYLOAD, &[&alice]), now()).unwrap();
    assert_eq!(accepted.digest(), <[u8; 32]>::from(Sha256::digest(PAYLOAD)));
}
