//! Which receivers hear of an incident, and escalation.

use holdfast_protocol::id::ReceiverName;
use jiff::Timestamp;

use super::Work;
use crate::group::{Entry, Group, Member, Sent};
use crate::group_key::GroupKey;
use crate::incident::Incident;
use crate::log::LogKind;
use crate::name::RuleName;
use crate::suppression::Suppression;
use crate::time::after;

impl Work<'_> {
    /// Routes what began to fire, and what got worse.
    pub(super) fn route(&mut self) {
        for number in self.numbers() {
            let Some(incident) = self.state.incidents.get(&number) else { continue };
            let worse = incident.routed.is_none_or(|routed| routed < incident.severity);
            if incident.firing_since().is_none() || !worse {
                continue;
            }
            let first = incident.routed.is_none();
            let ways = self.ways_of(incident);
            if ways.is_empty() && first {
                let why = Suppression::Unrouted {};
                self.log(Some(number), LogKind::Suppressed { receiver: None, why });
            }
            for (route, receiver) in ways {
                self.join(number, &route, &receiver, Member::new(Entry::Route));
            }
            if let Some(incident) = self.state.incidents.get_mut(&number) {
                incident.routed = Some(incident.severity);
            }
        }
    }

    /// The receivers that hear of an incident, each with the route that leads to it.
    fn ways_of(&self, incident: &Incident) -> Vec<(RuleName, ReceiverName)> {
        let routes = self.setting.rules.routes(&self.labelled(incident));
        let ways = routes.iter().flat_map(|route| route.receivers.iter().map(|to| (route.name, *to)));
        ways.map(|(name, to)| (name.clone(), to.clone())).collect()
    }

    /// An incident that a receiver knows of stays in its group there, whatever the rules say now.
    fn join(&mut self, number: u64, route: &RuleName, receiver: &ReceiverName, member: Member) {
        let mut groups = self.state.groups.values();
        if groups.any(|group| group.key.receiver == *receiver && group.members.contains_key(&number)) {
            return;
        }
        let Some(incident) = self.state.incidents.get(&number) else { return };
        let key = GroupKey::of(incident, route, receiver, self.setting.rules.group_by());
        let new = || Group::new(key.clone(), self.now);
        let group = self.state.groups.entry(key.clone()).or_insert_with(new);
        let others = !group.members.is_empty();
        group.members.insert(number, member);
        if others {
            let why = Suppression::Grouped { into: Box::new(key) };
            self.log(Some(number), LogKind::Suppressed { receiver: Some(receiver.clone()), why });
        }
    }

    /// Lets more receivers hear of what lasts. Whether they do is decided like any other notice.
    pub(super) fn escalate(&mut self) {
        for number in self.numbers() {
            let Some(incident) = self.state.incidents.get(&number) else { continue };
            if self.escalation_due(incident).is_none_or(|at| at > self.now) {
                continue;
            }
            let rules = self.setting.rules;
            let Some((route, escalation)) = rules.escalation(&self.labelled(incident)) else { continue };
            let (name, receivers) = (route.clone(), escalation.receivers.clone());
            for receiver in &receivers {
                self.join(number, &name, receiver, Member::new(Entry::Escalation));
            }
            if let Some(incident) = self.state.incidents.get_mut(&number) {
                incident.escalated = Some(self.now);
            }
            self.log(Some(number), LogKind::Escalated { to: receivers });
        }
    }

    /// When an incident is escalated, as far as nothing changes.
    pub(super) fn escalation_due(&self, incident: &Incident) -> Option<Timestamp> {
        let since = incident.firing_since()?;
        if incident.ack.is_some() || incident.escalated.is_some() || incident.absent_since.is_some() {
            return None;
        }
        let (_, escalation) = self.setting.rules.escalation(&self.labelled(incident))?;
        Some(after(self.counted_from(since), escalation.after_s))
    }

    /// Moves incidents of receivers that are gone, and those that no route took before, to where the rules lead now.
    /// These receivers hear of them with the next repeat, so a change of rules sends nothing.
    pub(super) fn adopt(&mut self) {
        let rules = self.setting.rules;
        let gone = self.state.groups.keys().filter(|key| !rules.has_receiver(&key.receiver));
        for key in gone.cloned().collect::<Vec<_>>() {
            let Some(group) = self.state.groups.remove(&key) else { continue };
            for number in group.members.into_keys() {
                let (receiver, why) = (Some(key.receiver.clone()), Suppression::ReceiverRemoved {});
                self.log(Some(number), LogKind::Suppressed { receiver, why });
            }
        }
        for number in self.numbers() {
            let Some(incident) = self.state.incidents.get(&number) else { continue };
            let routed = incident.firing_since().is_some() && incident.routed.is_some();
            if !routed || self.state.is_grouped(number) {
                continue;
            }
            for (route, receiver) in self.ways_of(incident) {
                let member = Member { sent: Sent::Inherited {}, ..Member::new(Entry::Route) };
                self.join(number, &route, &receiver, member);
            }
        }
    }
}
