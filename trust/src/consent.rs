//! Customers' consents to a job: signatures over its exact bytes.
//!
//! In: a signed job, and the consent keys that root laid down (the form of the operators file, with customers for names).
//! Out: the customers that consented, or why one of the consents is refused. A consent is signed in a namespace of its
//! own, so an operator's signature is none. Deliberately absent: which customers must consent.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{CustomerId, OperatorName};
use holdfast_protocol::job::SignedJob;
use jiff::Timestamp;

use crate::operators::{Operators, SigningRight};
use crate::signature::{self, Namespace, SignatureError};

/// Why the consents of a job are refused, all of them.
#[derive(Debug, thiserror::Error)]
pub enum ConsentRefused {
    #[error("consent {number} is refused")]
    Signature {
        /// Counted from 1.
        number: usize,
        #[source]
        source: SignatureError,
    },
    #[error("a consent is signed with {fingerprint}, which is not among this host's consent keys")]
    KeyUnknown { fingerprint: String },
    #[error("{name}'s key may not consent now: its time is over or has not come")]
    KeyRevoked { name: OperatorName },
    #[error("the consent keys of this host name {name}, which is no customer's id")]
    NoCustomer { name: OperatorName },
}

impl ConsentRefused {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Signature { .. } => ErrorCode::Signature,
            Self::KeyUnknown { .. } => ErrorCode::KeyUnknown,
            Self::KeyRevoked { .. } => ErrorCode::KeyRevoked,
            Self::NoCustomer { .. } => ErrorCode::Range,
        }
    }
}

/// Checks every consent of a job, and says who consented.
///
/// # Errors
/// [`ConsentRefused`], at the first one that does not hold: none may be among them that does not.
pub fn given(
    job: &SignedJob,
    keys: &Operators,
    at: Timestamp,
) -> Result<BTreeSet<CustomerId>, ConsentRefused> {
    let mut customers = BTreeSet::new();
    for (number, armoured) in (1..).zip(&job.consents) {
        let known = |data: &_| keys.key(data);
        let key = signature::check_known(&job.payload, armoured, Namespace::Consent, known)
            .map_err(|source| ConsentRefused::Signature { number, source })?;
        let name = match keys.right(&key, Namespace::Consent, at) {
            SigningRight::May(name) => name,
            SigningRight::MayNot(name) => return Err(ConsentRefused::KeyRevoked { name: name.clone() }),
            SigningRight::Unknown => {
                return Err(ConsentRefused::KeyUnknown { fingerprint: key.fingerprint() });
            }
        };
        let customer = name.as_str().parse();
        customers.insert(customer.map_err(|_| ConsentRefused::NoCustomer { name: name.clone() })?);
    }
    Ok(customers)
}
