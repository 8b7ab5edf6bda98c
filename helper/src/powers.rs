//! What root may do that others may not, laid down: nothing while reading and judging, one power for the deed itself.
//!
//! The bounding set is left alone: it matters only when a program is started, and from here on none is.

use std::collections::HashSet;

use caps::errors::CapsError;
use caps::{CapSet, Capability};

use crate::reply::{Refusal, refusal};
use crate::request::Verb;

const MOUNTING: Capability = Capability::CAP_SYS_ADMIN;

/// Proof that everything but mounting was given away, and that mounting is not in effect.
#[derive(Debug)]
pub struct Powers(());

impl Powers {
    /// Keeps mounting for later, gives away the rest, has nothing in effect.
    pub fn lay_down() -> Result<Self, Refusal> {
        let may = caps::has_cap(None, CapSet::Permitted, MOUNTING).map_err(refused)?;
        let kept: HashSet<Capability> = may.then_some(MOUNTING).into_iter().collect();
        caps::clear(None, CapSet::Ambient).map_err(refused)?;
        caps::set(None, CapSet::Effective, &HashSet::new()).map_err(refused)?;
        caps::set(None, CapSet::Inheritable, &HashSet::new()).map_err(refused)?;
        caps::set(None, CapSet::Permitted, &kept).map_err(refused)?;
        Ok(Self(()))
    }

    /// What the verb needs stays: mounting, or nothing for ever.
    pub fn for_verb(self, verb: Verb) -> Result<Self, Refusal> {
        if !verb.changes_something() {
            caps::set(None, CapSet::Permitted, &HashSet::new()).map_err(refused)?;
        } else if !caps::has_cap(None, CapSet::Permitted, MOUNTING).map_err(refused)? {
            return Err(refusal!(Caps, "the helper was started without CAP_SYS_ADMIN, which mounting needs"));
        }
        Ok(self)
    }

    /// Mounting is in effect while `deed` runs, and no longer.
    pub fn mounting<T>(&self, deed: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
        caps::set(None, CapSet::Effective, &HashSet::from([MOUNTING])).map_err(refused)?;
        let done = deed();
        caps::set(None, CapSet::Effective, &HashSet::new()).map_err(refused)?;
        done
    }
}

fn refused(error: CapsError) -> Refusal {
    refusal!(Caps, "the capabilities cannot be set: {error}")
}
