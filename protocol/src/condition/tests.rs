//! Tests of the table, and of what travels.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::*;
use crate::id::GuestUid;
use crate::protection::Tier;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn guest(number: u128) -> Subject {
    Subject::Guest { uid: GuestUid::new(Uuid::from_u128(number)) }
}

fn crashed(number: u128) -> ReportedCondition {
    ReportedCondition::new(ConditionCode::GuestCrashed, guest(number), at(0), "web-1 stopped")
}

#[test]
fn codes_are_unique_sorted_and_read_back() {
    let texts: Vec<&str> = ConditionCode::ALL.iter().map(|code| code.as_str()).collect();
    let sorted: BTreeSet<&str> = texts.iter().copied().collect();
    assert_eq!(texts, sorted.into_iter().collect::<Vec<_>>());
    for code in ConditionCode::ALL {
        assert!(code.as_str().bytes().all(|b| b.is_ascii_uppercase() || b == b'_'), "{code}");
        let json = serde_json::to_string(code).unwrap();
        assert_eq!(json, format!("\"{code}\""));
        assert_eq!(serde_json::from_str::<ConditionCode>(&json).unwrap(), *code);
        assert_eq!(code.as_str().parse(), Ok(*code));
    }
    assert!("GUEST_RETURNED".parse::<ConditionCode>().is_err(), "the end of a condition is none");
}

#[test]
fn each_row_is_complete_and_bounded() {
    for spec in ConditionCode::table() {
        let code = spec.code;
        assert!(spec.grace_s <= 7 * 86_400, "{code}");
        assert!(!spec.subjects.is_empty(), "{code}");
        for sentence in [spec.meaning, spec.remedy] {
            assert!(sentence.ends_with('.') && sentence.chars().count() <= 200, "{code}: {sentence}");
            assert_eq!(ConditionText::clipped(sentence).as_str(), sentence, "{code}");
            assert_eq!(sentence.matches('`').count() % 2, 0, "{code}");
        }
    }
}

/// What the hub promises to report.
#[test]
fn the_table_has_what_operators_must_hear_of() {
    for code in [
        "GUEST_CRASHED GUEST_BROKEN GUEST_MISSING GUEST_FROZEN GUEST_PARKED",
        "BACKUP_FAILED BACKUP_MISSED BACKUP_LATE BACKUP_CRASH_CONSISTENT",
        "RESTORE_TEST_FAILED RESTORE_TEST_OVERDUE STORAGE_GONE STORAGE_FILLING STORAGE_WRONG",
        "PROXMOX_AWAY CLOCK_UNKEPT DISK_FULL GOLDEN_OLD ESCROW_MISSING ESCROW_DRILL",
        "CERTIFICATE_EXPIRING TOKEN_EXPIRING CONTROLLER_UNAPPROVED NEEDS_SIGNATURE BULK_CHANGE_HELD",
        "UPDATE_HELD UPDATE_ROLLED_BACK HUB_DISK_FULL HUB_DATABASE_FAILING HUB_BACKUP_OLD",
        "HOST_OFFLINE HOST_LATE AUDIT_CHAIN_BROKEN DISK_FAILING PROXMOX_TOKEN_OLD",
    ]
    .iter()
    .flat_map(|row| row.split(' '))
    {
        assert!(code.parse::<ConditionCode>().is_ok(), "{code}");
    }
}

#[test]
fn each_kind_of_subject_and_each_cause_has_a_code() {
    let subjects: BTreeSet<SubjectKind> =
        ConditionCode::table().flat_map(|spec| spec.subjects.iter().copied()).collect();
    assert_eq!(subjects.len(), 14);
    let causes: BTreeSet<Cause> = ConditionCode::table().map(|spec| spec.cause).collect();
    assert_eq!(causes.len(), Cause::ALL.len());
}

#[test]
fn an_offline_host_inhibits_all_but_tampering() {
    let offline = ConditionCode::HostOffline.spec().inhibits;
    for spec in ConditionCode::table() {
        assert_eq!(offline.covers(spec.cause), spec.cause != Cause::Tampering, "{}", spec.code);
    }
    let proxmox = ConditionCode::ProxmoxAway.spec().inhibits;
    assert!(
        proxmox.covers(Cause::Guest) && !proxmox.covers(Cause::Escrow) && !proxmox.covers(Cause::Proxmox)
    );
}

#[test]
fn subjects_travel_and_are_closed() {
    let tier = Subject::Tier { uid: GuestUid::new(Uuid::from_u128(7)), tier: Tier::OffSite };
    let json = serde_json::to_string(&tier).unwrap();
    assert_eq!(json, r#"{"kind":"tier","uid":"00000000-0000-0000-0000-000000000007","tier":"off_site"}"#);
    assert_eq!(serde_json::from_str::<Subject>(&json).unwrap(), tier);
    for bad in [
        r#"{"kind":"host","uid":"x"}"#,
        r#"{"kind":"hub","name":"x"}"#,
        r#"{"kind":"disk","serial":"a b"}"#,
        r#"{"kind":"token","token":""}"#,
        r#"{"kind":"planet"}"#,
    ] {
        assert!(serde_json::from_str::<Subject>(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_condition_travels_and_is_closed() {
    let json = serde_json::to_string(&crashed(1)).unwrap();
    assert_eq!(serde_json::from_str::<ReportedCondition>(&json).unwrap(), crashed(1));
    let open = json.replacen('{', r#"{"extra":1,"#, 1);
    assert!(serde_json::from_str::<ReportedCondition>(&open).is_err());
}

#[test]
fn a_text_is_made_to_fit() {
    assert_eq!(ConditionText::clipped("a\nb").as_str(), "a b");
    assert_eq!(ConditionText::clipped("").as_str(), "-");
    assert_eq!(ConditionText::clipped(&"ä".repeat(1000)).as_str().chars().count(), 400);
}

#[test]
fn a_set_is_sorted_distinct_and_bounded() {
    let set = ConditionSet::collect([crashed(2), crashed(1), crashed(2)]);
    assert_eq!(set.conditions(), [crashed(1), crashed(2)]);
    let json = serde_json::to_string(&set).unwrap();
    assert_eq!(serde_json::from_str::<ConditionSet>(&json).unwrap(), set);
    let twice = json.replace("000000000001\"", "000000000002\"");
    assert!(serde_json::from_str::<ConditionSet>(&twice).unwrap_err().to_string().contains("twice"));
    let wrong = json.replace("GUEST_CRASHED", "HUB_DISK_FULL");
    let says = serde_json::from_str::<ConditionSet>(&wrong).unwrap_err().to_string();
    assert!(says.contains("HUB_DISK_FULL is about hub, never about a guest"), "{says}");
}

#[test]
fn the_least_urgent_are_left_out_and_counted() {
    let broken = ReportedCondition::new(ConditionCode::GuestBroken, guest(1), at(0), "broken");
    let many = (0..600).map(crashed).chain([broken.clone()]);
    let set = ConditionSet::collect(many);
    assert_eq!((set.conditions().len(), set.left_out()), (set::CONDITIONS_MAX, 89));
    assert!(set.conditions().contains(&broken));
}
