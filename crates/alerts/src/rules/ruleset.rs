//! Checked rules, with the channels that exist.

use holdfast_protocol::condition::ConditionCode;
use holdfast_protocol::id::{CustomerId, ReceiverName};

use super::{Escalation, Flap, GraceRule, GroupLabel, Route, Rules, RulesError, check};
use crate::label::{Labelled, all_match};
use crate::name::RuleName;
use crate::quiet::QuietHours;

/// Checked rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruleset {
    rules: Rules,
    /// The default route, with its receivers filled in. It is the last.
    routes: Vec<Route>,
    channels: Vec<ReceiverName>,
}

/// How often a route sends, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Before the first notice of a group.
    pub group_wait_s: u32,
    /// Between two notices of a group.
    pub group_interval_s: u32,
    /// Between two notices that say the same.
    pub repeat_interval_s: u32,
}

/// The route that an incident takes.
#[derive(Clone, Debug)]
pub struct RouteTaken<'a> {
    /// Its name.
    pub name: &'a RuleName,
    /// Where it leads, without receivers of other customers.
    pub receivers: Vec<&'a ReceiverName>,
    /// Who hears of what lasts.
    pub escalate: Option<&'a Escalation>,
}

impl Rules {
    /// Checks the rules against the channels that exist.
    ///
    /// # Errors
    /// Each fault with its path.
    pub fn resolve(self, channels: &[ReceiverName]) -> Result<Ruleset, Vec<RulesError>> {
        let faults = check::faults(&self, channels);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Ruleset::checked(self, channels))
    }
}

impl Ruleset {
    /// The default rules without a channel: everything is in the log, and nothing is sent.
    #[must_use]
    pub fn without_channels() -> Self {
        Self::checked(Rules::default(), &[])
    }

    fn checked(rules: Rules, channels: &[ReceiverName]) -> Self {
        let fallback = &rules.default_route;
        let of_customer = |channel: &ReceiverName| {
            rules.receiver.iter().any(|rule| rule.name == *channel && rule.customer.is_some())
        };
        let everyone = channels.iter().filter(|channel| !of_customer(channel));
        let everywhere = fallback.receivers.is_empty();
        let receivers = if everywhere { everyone.cloned().collect() } else { fallback.receivers.clone() };
        let last = Route {
            name: RuleName::default_route(),
            matchers: Vec::new(),
            severity: fallback.severity,
            receivers,
            group_wait_s: None,
            group_interval_s: None,
            repeat_interval_s: None,
            escalate: fallback.escalate.clone(),
            goes_on: false,
        };
        let routes = rules.route.iter().cloned().chain([last]).collect();
        Self { routes, channels: channels.to_vec(), rules }
    }

    /// As they were written.
    #[must_use]
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The routes that an incident takes, in their order; none where it goes nowhere. A route that leads to receivers of
    /// other customers alone does not take it.
    #[must_use]
    pub fn routes(&self, labelled: &Labelled<'_>) -> Vec<RouteTaken<'_>> {
        let customer = labelled.labels.customer.as_ref();
        let takes =
            |route: &&Route| labelled.severity >= route.severity && all_match(&route.matchers, labelled);
        let mut taken = Vec::new();
        for route in self.routes.iter().filter(takes) {
            let may_hear = |receiver: &&ReceiverName| self.may_hear(receiver, customer);
            let receivers: Vec<&ReceiverName> = route.receivers.iter().filter(may_hear).collect();
            let of_others = receivers.is_empty() && !route.receivers.is_empty();
            if !receivers.is_empty() {
                taken.push(RouteTaken { name: &route.name, receivers, escalate: route.escalate.as_ref() });
            }
            if !of_others && !route.goes_on {
                break;
            }
        }
        taken
    }

    /// The escalation of an incident: that of the first route that it takes and that has one.
    #[must_use]
    pub fn escalation(&self, labelled: &Labelled<'_>) -> Option<(&RuleName, &Escalation)> {
        self.routes(labelled).into_iter().find_map(|route| Some((route.name, route.escalate?)))
    }

    /// Whether a receiver may hear of something of a customer, or of no one customer.
    #[must_use]
    pub fn may_hear(&self, receiver: &ReceiverName, customer: Option<&CustomerId>) -> bool {
        let rule = self.rules.receiver.iter().find(|rule| rule.name == *receiver);
        let owner = rule.and_then(|rule| rule.customer.as_ref());
        owner.is_none_or(|owner| customer == Some(owner))
    }

    /// How often a route sends. A route that was removed sends like the default one.
    #[must_use]
    pub fn pace(&self, route: &RuleName) -> Pace {
        let route = self.routes.iter().find(|known| known.name == *route);
        let own = |of: fn(&Route) -> Option<u32>, usual: u32| route.and_then(of).unwrap_or(usual);
        Pace {
            group_wait_s: own(|route| route.group_wait_s, self.rules.group_wait_s),
            group_interval_s: own(|route| route.group_interval_s, self.rules.group_interval_s),
            repeat_interval_s: own(|route| route.repeat_interval_s, self.rules.repeat_interval_s),
        }
    }

    /// Whether a receiver exists.
    #[must_use]
    pub fn has_receiver(&self, receiver: &ReceiverName) -> bool {
        self.channels.contains(receiver)
    }

    /// Whether a receiver hears when an incident is over.
    #[must_use]
    pub fn sends_resolved(&self, receiver: &ReceiverName) -> bool {
        let rule = self.rules.receiver.iter().find(|rule| rule.name == *receiver);
        rule.is_none_or(|rule| rule.send_resolved)
    }

    /// How long a condition must last before it fires, in seconds.
    #[must_use]
    pub fn fire_after_s(&self, labelled: &Labelled<'_>) -> u32 {
        let own = self.grace(labelled, |rule| rule.fire_after_s);
        own.unwrap_or_else(|| labelled.code.spec().grace_s)
    }

    /// How long a condition must be away before it is resolved, in seconds.
    #[must_use]
    pub fn clear_after_s(&self, labelled: &Labelled<'_>) -> u32 {
        self.grace(labelled, |rule| rule.clear_after_s).unwrap_or(self.rules.clear_after_s)
    }

    fn grace(&self, labelled: &Labelled<'_>, of: fn(&GraceRule) -> Option<u32>) -> Option<u32> {
        let matching = self.rules.grace.iter().filter(|rule| all_match(&rule.matchers, labelled));
        matching.filter_map(of).next()
    }

    /// Whether one condition mutes another of the same host.
    #[must_use]
    pub fn inhibits(&self, source: ConditionCode, target: ConditionCode) -> bool {
        let by_rule = |rule: &super::InhibitRule| rule.source == source && rule.targets.contains(&target);
        source != target
            && (source.spec().inhibits.covers(target.spec().cause) || self.rules.inhibit.iter().any(by_rule))
    }

    /// What a group has in common.
    #[must_use]
    pub fn group_by(&self) -> &[GroupLabel] {
        &self.rules.group_by
    }

    /// When an incident flaps.
    #[must_use]
    pub const fn flap(&self) -> Flap {
        self.rules.flap
    }

    /// The quiet hours.
    #[must_use]
    pub fn quiet_hours(&self) -> &[QuietHours] {
        &self.rules.quiet_hours
    }
}
