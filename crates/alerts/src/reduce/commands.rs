//! What operators ask for.

use holdfast_protocol::id::{GuestUid, OperatorName};
use jiff::Timestamp;

use super::Work;
use crate::incident::Ack;
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

    pub(super) fn guest_deleted(&mut self, uid: GuestUid) {
        let of_guest = self.state.incidents.values().filter(|incident| incident.subject.guest() == Some(uid));
        let numbers: Vec<u64> = of_guest.map(|incident| incident.id.number).collect();
        self.close(&numbers);
    }

    pub(super) fn host_removed(&mut self) {
        self.close(&self.numbers());
        self.state.row.host_state = None;
        self.state.row.maintenance.clear();
    }

    fn close(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.state.incidents.remove(number);
            for group in self.state.groups.values_mut() {
                group.members.remove(number);
            }
            self.log(Some(*number), LogKind::Closed {});
        }
    }
}
