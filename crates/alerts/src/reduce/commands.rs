//! What operators ask for.

use holdfast_protocol::id::{GuestUid, OperatorName};
use jiff::Timestamp;

use super::Work;
use crate::ending::Ending;
use crate::incident::{Ack, Phase};
use crate::log::LogKind;
use crate::signal::Maintenance;

/// As many maintenance windows as are kept of one host.
const WINDOWS_MAX: usize = 16;

impl Work<'_> {
    pub(super) fn acknowledge(&mut self, number: u64, by: &OperatorName, until: Option<Timestamp>) {
        let ack = Ack { by: by.clone(), at: self.now, until };
        let incident = self.state.incidents.get_mut(&number).filter(|incident| incident.is_active());
        let what = match incident {
            Some(incident) => {
                incident.ack = Some(ack);
                LogKind::Acknowledged { by: by.clone(), until }
            }
            None => LogKind::UnknownIncident {},
        };
        self.log(Some(number), what);
    }

    pub(super) fn unacknowledge(&mut self, number: u64, by: &OperatorName) {
        let ack = self.state.incidents.get_mut(&number).and_then(|incident| incident.ack.take());
        let what = match ack {
            Some(_) => LogKind::Unacknowledged { by: by.clone() },
            None => LogKind::UnknownIncident {},
        };
        self.log(Some(number), what);
    }

    pub(super) fn maintenance(&mut self, windows: &[Maintenance]) {
        let current = windows.iter().filter(|window| window.until > self.now).take(WINDOWS_MAX).cloned();
        self.state.row.maintenance = current.collect();
        let windows = u32::try_from(self.state.row.maintenance.len()).unwrap_or(u32::MAX);
        self.log(None, LogKind::MaintenanceChanged { windows });
    }

    pub(super) fn guest_deleted(&mut self, uid: GuestUid, by: Option<&OperatorName>) {
        let of_guest = self.state.incidents.values().filter(|incident| incident.subject.guest() == Some(uid));
        let numbers: Vec<u64> = of_guest.map(|incident| incident.id.number).collect();
        self.close(&numbers, &Ending::GuestDeleted { by: by.cloned() });
    }

    pub(super) fn host_revoked(&mut self, by: &OperatorName) {
        self.close(&self.numbers(), &Ending::HostRevoked { by: by.clone() });
        self.state.row.host_state = None;
        self.state.row.maintenance.clear();
    }

    /// Ends incidents whether their conditions hold or not. Receivers that heard of one hear why it is over.
    fn close(&mut self, numbers: &[u64], why: &Ending) {
        for number in numbers {
            let Some(incident) = self.state.incidents.get_mut(number) else { continue };
            match incident.phase {
                // Its end is announced already, or soon.
                Phase::Resolved { .. } => continue,
                Phase::Pending { .. } => drop(self.state.incidents.remove(number)),
                Phase::Firing { since } => {
                    incident.phase = Phase::Resolved { fired: since, at: self.now };
                    incident.ending = Some(why.clone());
                    (incident.flapping, incident.absent_since, incident.stale_since) = (None, None, None);
                }
            }
            self.log(Some(*number), LogKind::Closed { why: Some(why.clone()) });
        }
    }
}
