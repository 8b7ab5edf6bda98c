//! The part of a host that concerns some of its guests.
//!
//! What comes in: a host, and which guests. What goes out: the host with these guests, or nothing where it has none of
//! them. Of the host itself stay its name, whether it is heard of, and its versions: all else may name what belongs to
//! others.

use super::guest::StateGuest;
use super::host::{DesiredSettings, DesiredState, StateHost};
use crate::id::CustomerId;

impl StateHost {
    /// The part that concerns the guests that are kept.
    #[must_use]
    pub fn narrowed(self, keep: impl Fn(&StateGuest) -> bool) -> Option<Self> {
        let Self { id, name, state, maintenance_until, desired, held, versions, guests, observed, .. } = self;
        let guests: Vec<StateGuest> = guests.into_iter().filter(|guest| keep(guest)).collect();
        if guests.is_empty() {
            return None;
        }
        let desired = desired.map(|desired| DesiredState {
            generation: desired.generation,
            // A digest of the whole changes with what belongs to others; author and reason may be about them.
            content: None,
            by: None,
            reason: None,
            put_at: desired.put_at,
            settings: desired.settings.map(|settings| narrowed_settings(settings, &guests)),
        });
        Some(Self {
            id,
            name,
            state,
            labels: Vec::new(),
            maintenance_until,
            desired,
            held,
            refused: None,
            versions,
            storages: Vec::new(),
            targets: Vec::new(),
            conditions: Vec::new(),
            conditions_left_out: 0,
            waiting: Vec::new(),
            guests,
            observed,
        })
    }

    /// The part that one customer may see.
    #[must_use]
    pub fn of_customer(self, customer: &CustomerId) -> Option<Self> {
        self.narrowed(|guest| guest.customer.as_ref() == Some(customer))
    }
}

/// Policies that these guests are under; no targets, which others use too.
fn narrowed_settings(settings: DesiredSettings, guests: &[StateGuest]) -> DesiredSettings {
    let DesiredSettings { poll_interval_s, observe_interval_s, alarm_after_s, levels, mut policies, .. } =
        settings;
    policies.retain(|policy| {
        let mut desired = guests.iter().filter_map(|guest| guest.desired.as_ref());
        desired.any(|guest| guest.policy.as_ref() == Some(&policy.name))
    });
    DesiredSettings {
        poll_interval_s,
        observe_interval_s,
        alarm_after_s,
        levels,
        policies,
        targets: Vec::new(),
    }
}
