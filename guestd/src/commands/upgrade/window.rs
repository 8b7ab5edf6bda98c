//! Work due in a maintenance window. Pure.
//!
//! In: the window as the agent reported it, what was done in windows before, whether programs wait for a restart, and
//! now. Out: an upgrade first, then a restart, each once in a window.

use holdfast_protocol::local::desired::MaintenanceView;
use holdfast_protocol::maintenance::{RestartRule, SecurityUpgrades};
use jiff::Timestamp;

use super::record::Record;

/// Whether a restart brings something into use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    Needed,
    NotNeeded,
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub enum DueWork {
    Upgrade,
    Restart,
    Nothing(String),
}

pub fn due(view: &MaintenanceView, record: &Record, restart: Restart, now: Timestamp) -> DueWork {
    let Some(window) = view.window else {
        return DueWork::Nothing("the agent names no maintenance window".to_owned());
    };
    if !window.is_open(now) {
        return DueWork::Nothing(format!("the next maintenance window begins at {}", window.begins));
    }
    let before = |at: Option<Timestamp>| at.is_none_or(|at| at < window.begins);
    if view.security_upgrades == SecurityUpgrades::On && before(record.attempted) {
        return DueWork::Upgrade;
    }
    if restart == Restart::Needed && window.restart == RestartRule::InWindow && before(record.restarted) {
        return DueWork::Restart;
    }
    DueWork::Nothing("nothing is left to do in this maintenance window".to_owned())
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::local::desired::MaintenanceWindow;

    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(hour * 3_600).unwrap()
    }

    fn view(security_upgrades: SecurityUpgrades, restart: RestartRule) -> MaintenanceView {
        let window = Some(MaintenanceWindow { begins: at(10), ends: at(12), restart });
        MaintenanceView { security_upgrades, window }
    }

    fn record(attempted: Option<i64>, restarted: Option<i64>) -> Record {
        let mut record = Record::default();
        (record.attempted, record.restarted) = (attempted.map(at), restarted.map(at));
        record
    }

    #[test]
    fn upgrades_come_first_and_each_is_done_once_in_a_window() {
        let usual = view(SecurityUpgrades::On, RestartRule::InWindow);
        let judged = |record: Record, hour| due(&usual, &record, Restart::Needed, at(hour));
        for outside in [9, 12] {
            assert!(matches!(judged(record(None, None), outside), DueWork::Nothing(_)), "{outside}");
        }
        assert_eq!(judged(record(None, None), 10), DueWork::Upgrade);
        assert_eq!(judged(record(Some(9), Some(9)), 11), DueWork::Upgrade, "that was another window");
        assert_eq!(judged(record(Some(10), None), 11), DueWork::Restart);
        assert!(matches!(judged(record(Some(10), Some(11)), 11), DueWork::Nothing(_)));
    }

    #[test]
    fn only_wanted_and_needed_work_is_due() {
        let off = view(SecurityUpgrades::Off, RestartRule::InWindow);
        assert_eq!(due(&off, &record(None, None), Restart::Needed, at(11)), DueWork::Restart);
        let by_hand = view(SecurityUpgrades::On, RestartRule::ByHand);
        let tried = record(Some(10), None);
        assert!(matches!(due(&by_hand, &tried, Restart::Needed, at(11)), DueWork::Nothing(_)));
        let usual = view(SecurityUpgrades::On, RestartRule::InWindow);
        assert!(matches!(due(&usual, &tried, Restart::NotNeeded, at(11)), DueWork::Nothing(_)));
        let none = MaintenanceView { window: None, ..usual };
        assert!(matches!(due(&none, &record(None, None), Restart::Needed, at(11)), DueWork::Nothing(_)));
    }
}
