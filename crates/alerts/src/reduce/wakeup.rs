//! When a tick is needed.

use jiff::Timestamp;

use super::Work;
use crate::time::after;

impl Work<'_> {
    /// The earliest time at which something happens without a signal. It is later than now.
    pub(super) fn due(&self) -> Option<Timestamp> {
        let incidents = self.state.incidents.values().flat_map(|incident| {
            [
                self.transition_due(incident),
                self.escalation_due(incident),
                incident.ack.as_ref().and_then(|ack| ack.until).filter(|_| incident.is_active()),
                Self::dropped_at(incident).filter(|_| !self.state.is_grouped(incident.id.number)),
            ]
        });
        let groups = self.state.groups.values().map(|group| self.group_due(group));
        let earliest = incidents.chain(groups).flatten().min();
        earliest.map(|at| at.max(after(self.now, 1)))
    }
}
