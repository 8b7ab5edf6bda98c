//! The acceptance of a job by operators and policy.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::job::{Ordered, Payload, SignedJob, Verb};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::operators::{Operators, SigningRight};
use crate::policy::{Lane, Policy, Quorum, Rule};
use crate::scope::Here;
use crate::signature::{self, Namespace, SignatureError};

/// Operators and policy of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    pub operators: Operators,
    pub policy: Policy,
}

/// Whom the signed bytes name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// One host.
    OneHost,
    /// All hosts: they are the approval of an image, and name none.
    AllHosts,
}

/// A job that was signed by who may sign it. There is no other way to make one than [`Roster::accept`] and
/// [`Roster::accept_here`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    payload: Payload,
    reach: Reach,
    digest: [u8; 32],
    signers: BTreeSet<OperatorName>,
    rule: Rule,
    lane: Lane,
}

impl Accepted {
    /// What is ordered.
    #[must_use]
    pub const fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Whom the signed bytes name.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// SHA-256 of the signed bytes: what makes a repeat the same.
    #[must_use]
    pub const fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Who signed, each once.
    #[must_use]
    pub const fn signers(&self) -> &BTreeSet<OperatorName> {
        &self.signers
    }

    /// The rule it was accepted under.
    #[must_use]
    pub const fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Which way it was accepted.
    #[must_use]
    pub const fn lane(&self) -> Lane {
        self.lane
    }
}

/// Why a job is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// A signature does not hold. None may be among them that does not.
    #[error("signature {number} is refused")]
    Signature {
        /// Counted from 1.
        number: usize,
        #[source]
        source: SignatureError,
    },
    #[error(
        "key {fingerprint} is in no operators file of this host: sign with a listed key, or update the policy"
    )]
    KeyUnknown { fingerprint: String },
    /// A key that may not sign any more, or not this.
    #[error("{name}'s key may not sign jobs now: its time is over or has not come")]
    KeyRevoked { name: OperatorName },
    /// Somebody who may not sign this.
    #[error("{name} may not sign {verb} by the policy of this host", verb = .verb.as_str())]
    NotTheirs { name: OperatorName, verb: Verb },
    #[error("{verb} needs {needed} operators, {given} signed: let another one sign the same file", verb = .verb.as_str())]
    Missing {
        verb: Verb,
        needed: u8,
        /// So many did.
        given: usize,
    },
    /// The signed bytes are not a job.
    #[error(transparent)]
    Payload(#[from] holdfast_protocol::job::PayloadError),
}

impl Refused {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Signature { .. } => ErrorCode::Signature,
            Self::KeyUnknown { .. } => ErrorCode::KeyUnknown,
            Self::KeyRevoked { .. } | Self::NotTheirs { .. } => ErrorCode::KeyRevoked,
            Self::Missing { .. } => ErrorCode::SignaturesMissing,
            Self::Payload(error) => error.code(),
        }
    }
}

impl Roster {
    /// Checks every signature over the bytes, then reads the bytes, then counts. An approval for all hosts is refused:
    /// the caller means one host.
    ///
    /// # Errors
    /// [`Refused`], at the first reason.
    pub fn accept(&self, job: &SignedJob, at: Timestamp) -> Result<Accepted, Refused> {
        let signers = self.signers(job, at)?;
        let payload = Payload::parse(&job.payload)?;
        self.count((payload, Reach::OneHost), job, signers, at)
    }

    /// The same for a host that takes approvals for all hosts, too: one is a job of this host then.
    ///
    /// # Errors
    /// [`Refused`], at the first reason.
    pub fn accept_here(&self, job: &SignedJob, here: &Here) -> Result<Accepted, Refused> {
        let signers = self.signers(job, here.now)?;
        let ordered = match Ordered::parse(&job.payload)? {
            Ordered::OneHost(payload) => (*payload, Reach::OneHost),
            Ordered::AllHosts(approval) => (approval.for_host(here.host, here.epoch)?, Reach::AllHosts),
        };
        self.count(ordered, job, signers, here.now)
    }

    /// Who signed exactly these bytes, each once.
    fn signers(&self, job: &SignedJob, at: Timestamp) -> Result<BTreeSet<OperatorName>, Refused> {
        let mut signers = BTreeSet::new();
        for (number, armoured) in (1..).zip(&job.signatures) {
            let key = signature::check_known(&job.payload, armoured, Namespace::Job, |data| {
                self.operators.key(data)
            })
            .map_err(|source| Refused::Signature { number, source })?;
            match self.operators.right(&key, Namespace::Job, at) {
                SigningRight::May(name) => {
                    signers.insert(name.clone());
                }
                SigningRight::MayNot(name) => return Err(Refused::KeyRevoked { name: name.clone() }),
                SigningRight::Unknown => return Err(Refused::KeyUnknown { fingerprint: key.fingerprint() }),
            }
        }
        Ok(signers)
    }

    fn count(
        &self,
        (payload, reach): (Payload, Reach),
        job: &SignedJob,
        signers: BTreeSet<OperatorName>,
        at: Timestamp,
    ) -> Result<Accepted, Refused> {
        let verb = payload.act.verb();
        let able = self.operators.able(Namespace::Job, at);
        let (rule, lane) = self.policy.rule_for(verb, Quorum { signed: signers.len(), able });
        let may = |name: &OperatorName| rule.signers.is_empty() || rule.signers.contains(name);
        if let Some(name) = signers.iter().find(|name| !may(name)) {
            return Err(Refused::NotTheirs { name: name.clone(), verb });
        }
        // One person with two keys is one person.
        if signers.len() < usize::from(rule.signatures) {
            return Err(Refused::Missing { verb, needed: rule.signatures, given: signers.len() });
        }
        Ok(Accepted { payload, reach, digest: Sha256::digest(&job.payload).into(), signers, rule, lane })
    }
}
