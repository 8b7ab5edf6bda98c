//! Keys of groups.

use std::fmt;

use holdfast_protocol::condition::{Cause, ConditionCode, Subject};
use holdfast_protocol::id::{CustomerId, ReceiverName};
use serde::{Deserialize, Serialize};

use crate::incident::Incident;
use crate::name::RuleName;
use crate::rules::GroupLabel;

/// What the incidents of a group have in common, within one host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupKey {
    /// The route that they took.
    pub route: RuleName,
    /// Who hears of them.
    pub receiver: ReceiverName,
    /// Their cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Their code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ConditionCode>,
    /// Their customer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerId>,
    /// Their subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
}

impl GroupKey {
    /// The group of an incident.
    #[must_use]
    pub fn of(incident: &Incident, route: &RuleName, receiver: &ReceiverName, by: &[GroupLabel]) -> Self {
        let has = |label| by.contains(&label);
        Self {
            route: route.clone(),
            receiver: receiver.clone(),
            cause: has(GroupLabel::Cause).then(|| incident.code.spec().cause),
            code: has(GroupLabel::Code).then_some(incident.code),
            customer: incident.labels.customer.clone().filter(|_| has(GroupLabel::Customer)),
            subject: has(GroupLabel::Subject).then(|| incident.subject.clone()),
        }
    }
}

/// One line that no other key of the scope has.
impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.route, self.receiver)?;
        if let Some(cause) = self.cause {
            write!(f, "/cause={cause}")?;
        }
        if let Some(code) = self.code {
            write!(f, "/code={code}")?;
        }
        if let Some(customer) = &self.customer {
            write!(f, "/customer={customer}")?;
        }
        if let Some(subject) = &self.subject {
            write!(f, "/subject={subject}")?;
        }
        Ok(())
    }
}
