//! Rates of failed sign-ins, by address and by name.
//!
//! An attempt takes from both buckets, and a right one gives back, so that only failures count and many at once are counted
//! too. No account is ever locked. One address empties its own bucket long before that of a name; and when many addresses
//! empty that of a name, its operator still signs in from an address that they signed in from lately.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::OperatorName;
use jiff::Timestamp;
use net::admission::Origin;
use net::rate::{Rates, TooOften};
use net::server::Refused;

use crate::api::problem::ApiError;
use crate::api::since_epoch;
use crate::store::SharedStore;

/// Failures of one address in a minute.
const PER_ADDRESS: u32 = 10;

/// Failures of one name in a minute, from all addresses.
const PER_NAME: u32 = 60;

/// Wrong codes with a right password: five at once, then one in two and a half minutes. So who has a password guesses the
/// code of a day with a chance of one in six hundred.
const WRONG_CODES: u32 = 5;

/// How many times slower the buckets of codes fill than rates do.
const CODES_SLOWER: u32 = 12;

pub(super) struct Throttle {
    addresses: Rates<Origin>,
    names: Rates<OperatorName>,
    codes: Rates<OperatorName>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self {
            addresses: Rates::per_minute(PER_ADDRESS),
            names: Rates::per_minute(PER_NAME),
            codes: Rates::per_minute(WRONG_CODES),
        }
    }
}

/// An attempt that was let through.
pub(super) struct Attempt {
    from: Origin,
    name: Option<OperatorName>,
    code: Option<OperatorName>,
}

impl Throttle {
    /// Lets an attempt through, or says when to try again.
    pub(super) async fn admit(
        &self,
        store: &SharedStore,
        (from, name): (Origin, &OperatorName),
        now: Timestamp,
    ) -> Result<Attempt, ApiError> {
        let mut attempt = self.admit_address(from, now)?;
        match self.names.take(name.clone(), since_epoch(now)) {
            Ok(()) => attempt.name = Some(name.clone()),
            Err(_) if store.has_signed_in_from(name.clone(), from.to_string()).await? => {}
            Err(often) => return Err(too_often(often.retry_after_s)),
        }
        Ok(attempt)
    }

    /// The same for an attempt that names nobody.
    pub(super) fn admit_address(&self, from: Origin, now: Timestamp) -> Result<Attempt, ApiError> {
        let taken = self.addresses.take(from, since_epoch(now));
        taken.map_err(|TooOften { retry_after_s }| too_often(retry_after_s))?;
        Ok(Attempt { from, name: None, code: None })
    }

    /// The password was right, and a code is looked at.
    pub(super) async fn admit_code(
        &self,
        store: &SharedStore,
        attempt: &mut Attempt,
        (name, now): (&OperatorName, Timestamp),
    ) -> Result<(), ApiError> {
        let slowed: Duration = since_epoch(now) / CODES_SLOWER;
        match self.codes.take(name.clone(), slowed) {
            Ok(()) => attempt.code = Some(name.clone()),
            Err(_) if store.has_signed_in_from(name.clone(), attempt.from.to_string()).await? => {}
            Err(often) => return Err(too_often(often.retry_after_s.saturating_mul(CODES_SLOWER))),
        }
        Ok(())
    }

    /// It was right: it does not count.
    pub(super) fn succeeded(&self, attempt: Attempt) {
        self.addresses.give_back(&attempt.from);
        if let Some(name) = attempt.name {
            self.names.give_back(&name);
        }
        if let Some(name) = attempt.code {
            self.codes.give_back(&name);
        }
    }
}

fn too_often(retry_after_s: u32) -> ApiError {
    let says = format!("too many sign-ins were refused: try again in {retry_after_s} seconds");
    let problem = ErrorBody::new(ErrorCode::RateLimited, says);
    Refused { retry_after_s: Some(retry_after_s), ..Refused::new(problem) }.into()
}
