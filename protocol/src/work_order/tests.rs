//! Orders as text.

use uuid::Uuid;

use super::*;

fn acts() -> Vec<OrderAct> {
    let guest = GuestUid::new(Uuid::from_u128(7));
    vec![
        OrderAct::BackupNow { guest, tier: Some(Tier::Local) },
        OrderAct::Snapshot { guest, name: "before-update".parse().unwrap(), keep_s: None },
        OrderAct::RestartGuest { guest, timing: RestartTiming::InWindow },
        OrderAct::RestoreTestNow { guest, tier: None },
        OrderAct::Refresh {},
        OrderAct::CollectDiagnostics { name: DiagnosticName::Locks, guest: None },
    ]
}

#[test]
fn every_act_is_read_back_and_fits_its_text() {
    for act in acts() {
        let order = OrderText { act, expires_at: "2026-11-27T12:00:00Z".parse().unwrap() };
        let text = serde_json::to_string(&order).unwrap();
        assert!(text.contains(&format!("\"kind\":\"{}\"", order.act.as_str())), "{text}");
        assert!(text.len() < TEXT_BYTES_MAX);
        assert_eq!(OrderText::parse(&text).unwrap(), order);
    }
}

#[test]
fn nothing_destructive_and_no_command_can_be_expressed() {
    let guest = "00000000-0000-0000-0000-000000000007";
    for act in [
        format!(r#"{{"kind":"destroy_guest","guest":"{guest}"}}"#),
        format!(r#"{{"kind":"roll_back","guest":"{guest}","snapshot":"s1"}}"#),
        format!(r#"{{"kind":"delete_backup","guest":"{guest}"}}"#),
        r#"{"kind":"collect_diagnostics","name":"sh -c id"}"#.to_owned(),
        r#"{"kind":"collect_diagnostics","name":"doctor","command":"id"}"#.to_owned(),
        r#"{"kind":"refresh","guest":"all"}"#.to_owned(),
        format!(r#"{{"kind":"backup_now","guest":"{guest}","tier":"snapshot","tier":"local"}}"#),
    ] {
        let text = format!(r#"{{"act":{act},"expires_at":"2026-11-27T12:00:00Z"}}"#);
        assert!(OrderText::parse(&text).is_err(), "{text}");
    }
}
