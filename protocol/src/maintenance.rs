//! Maintenance windows of a guest.
//!
//! In: what the document says of one guest. Out: the schedule of its windows. Each point of the schedule opens one, put off by
//! a part of the jitter, and it ends with the schedule's own window. Deliberately absent: the clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protection::{Schedule, Zone};
use crate::size::{JitterMinutes, WindowMinutes};

/// The rest of a window after the longest jitter: time for an upgrade, and a restart after it.
pub const OPEN_MIN: u32 = 60;

/// What may be done to a guest in its maintenance windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Maintenance {
    /// Whether its guest agent installs Debian's security upgrades.
    #[serde(default)]
    pub security_upgrades: SecurityUpgrades,
    /// When. Without it each night between 02:00 and 05:00 UTC, and then nothing is restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Schedule>,
    /// Whether the guest is restarted in a window, when its upgrades need that, or when its guest agent has been silent for long.
    #[serde(default)]
    pub restart: RestartRule,
}

/// Whether security upgrades are installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecurityUpgrades {
    /// In each window.
    #[default]
    On,
    /// Never by themselves.
    Off,
}

/// Whether a guest is restarted for its maintenance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestartRule {
    /// In a window that the document names.
    #[default]
    InWindow,
    /// By a person.
    ByHand,
}

impl Maintenance {
    /// When its windows are.
    #[must_use]
    pub fn schedule(&self) -> Option<Schedule> {
        self.windows.clone().or_else(usual)
    }

    /// Whether it may be restarted: only in windows that somebody chose.
    #[must_use]
    pub const fn restarts(&self) -> RestartRule {
        match (&self.windows, self.restart) {
            (Some(_), RestartRule::InWindow) => RestartRule::InWindow,
            (None, RestartRule::InWindow) | (_, RestartRule::ByHand) => RestartRule::ByHand,
        }
    }

    /// The rule that its windows break.
    #[must_use]
    pub fn mistake(&self) -> Option<&'static str> {
        let short =
            |windows: &Schedule| windows.window_min.get() < windows.jitter_min.get().saturating_add(OPEN_MIN);
        self.windows
            .as_ref()
            .is_some_and(short)
            .then_some("a maintenance window leaves an hour after its jitter: make window_min longer")
    }
}

/// Each night, guests one after another.
fn usual() -> Option<Schedule> {
    Some(Schedule {
        at: vec!["02:00".parse().ok()?],
        zone: Zone::try_from("UTC".to_owned()).ok()?,
        jitter_min: JitterMinutes::try_from(120).ok()?,
        window_min: WindowMinutes::try_from(180).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn windows(jitter: u32, window: u32) -> Maintenance {
        serde_json::from_value(json!({ "windows":
            { "at": ["Sun 03:00"], "zone": "Europe/Berlin", "jitter_min": jitter, "window_min": window } }))
        .unwrap()
    }

    #[test]
    fn without_a_word_upgrades_are_on_each_night_and_nothing_restarts() {
        let usual: Maintenance = serde_json::from_value(json!({})).unwrap();
        assert_eq!((usual.security_upgrades, usual.restarts()), (SecurityUpgrades::On, RestartRule::ByHand));
        assert_eq!(usual.schedule().unwrap().window_min.get(), 180);
        assert_eq!(windows(30, 120).restarts(), RestartRule::InWindow);
        let by_hand = Maintenance { restart: RestartRule::ByHand, ..windows(30, 120) };
        assert_eq!(by_hand.restarts(), RestartRule::ByHand);
    }

    #[test]
    fn a_window_leaves_an_hour_after_its_jitter() {
        assert_eq!(windows(60, 120).mistake(), None);
        assert!(windows(61, 120).mistake().unwrap().contains("an hour after its jitter"));
        assert_eq!(Maintenance::default().mistake(), None);
    }
}
