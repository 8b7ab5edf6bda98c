//! *start*, *stop* and *restart_guest*: a guest's power.

use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::report::Running;
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{Facts, Holds, Spec, Subject, Takes, Target};
use super::step::Step;
use crate::gate::Effect;
use crate::model::field;

/// A guest to be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Start(pub Target);

/// A guest to be stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stop(pub Target);

/// A running guest to be shut down and started again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RestartGuest(pub Target);

impl Spec for Start {
    fn facts(&self) -> Facts<'_> {
        Facts { guest: self.0.guest(), holds: Holds::Guest, takes: Takes::Nothing }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::Start, Step::ConfirmRunning]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Start]
    }

    fn applied(&self) -> Option<AppliedBy> {
        AppliedBy::one(GuestField::Run, field::running(Running::Running).to_owned())
    }
}

impl Spec for Stop {
    fn facts(&self) -> Facts<'_> {
        Facts { guest: self.0.guest(), holds: Holds::Guest, takes: Takes::Nothing }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::ShutDown, Step::ConfirmStopped]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::StopOrRestart]
    }

    fn applied(&self) -> Option<AppliedBy> {
        AppliedBy::one(GuestField::Run, field::running(Running::Stopped).to_owned())
    }
}

impl Spec for RestartGuest {
    fn facts(&self) -> Facts<'_> {
        Facts { guest: self.0.guest(), holds: Holds::Guest, takes: Takes::Nothing }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::ShutDown, Step::ConfirmStopped, Step::Start, Step::ConfirmRunning]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::StopOrRestart, Effect::Start]
    }

    fn applied(&self) -> Option<AppliedBy> {
        AppliedBy::one(GuestField::Run, field::running(Running::Running).to_owned())
    }
}
