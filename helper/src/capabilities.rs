//! Capabilities: none while reading and checking, one while mounting.
//!
//! The bounding set is left alone: it matters only when a program is started. The builder is the one that is, and since
//! nothing can be gained any more (`NO_NEW_PRIVS`) it has what is permitted here and no more.

use std::collections::HashSet;

use caps::errors::CapsError;
use caps::{CapSet, Capability};

use crate::reply::{Refusal, refusal};
use crate::request::Verb;

const MOUNTING: Capability = Capability::CAP_SYS_ADMIN;
/// What it takes to unpack a Debian into a folder, and to let its own scripts set it up in there.
const BUILDING: &str = "CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_FSETID CAP_KILL CAP_MKNOD CAP_SETFCAP CAP_SETGID \
                        CAP_SETUID CAP_SYS_ADMIN CAP_SYS_CHROOT";

/// Proof that all capabilities but those of one entry point were dropped, and that none is effective.
#[derive(Debug)]
pub struct Capabilities(());

impl Capabilities {
    /// Keeps permitted what this entry point may need, drops the rest, and leaves none effective.
    pub fn keep(verb: Option<Verb>) -> Result<Self, Refusal> {
        let may = caps::read(None, CapSet::Permitted).map_err(refused)?;
        let kept = may.intersection(&required(verb)?).copied().collect();
        caps::clear(None, CapSet::Ambient).map_err(refused)?;
        caps::set(None, CapSet::Effective, &HashSet::new()).map_err(refused)?;
        caps::set(None, CapSet::Inheritable, &HashSet::new()).map_err(refused)?;
        caps::set(None, CapSet::Permitted, &kept).map_err(refused)?;
        Ok(Self(()))
    }

    /// What the verb needs stays, or nothing for ever.
    pub fn restrict_to(self, verb: Verb) -> Result<Self, Refusal> {
        if !verb.changes_something() {
            caps::set(None, CapSet::Permitted, &HashSet::new()).map_err(refused)?;
        } else if !required(Some(verb))?.is_subset(&caps::read(None, CapSet::Permitted).map_err(refused)?) {
            return Err(refusal!(Caps, "{} needs more capabilities than it has here", verb.as_str()));
        }
        Ok(self)
    }

    /// Mounting is in effect while `action` runs, and no longer.
    pub fn mounting<T>(&self, action: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
        caps::set(None, CapSet::Effective, &HashSet::from([MOUNTING])).map_err(refused)?;
        let done = action();
        caps::set(None, CapSet::Effective, &HashSet::new()).map_err(refused)?;
        done
    }
}

fn required(verb: Option<Verb>) -> Result<HashSet<Capability>, Refusal> {
    match verb {
        Some(Verb::GoldenBuild) => {
            BUILDING.split(' ').map(str::parse).collect::<Result<_, _>>().map_err(refused)
        }
        _ => Ok(HashSet::from([MOUNTING])),
    }
}

fn refused(error: CapsError) -> Refusal {
    refusal!(Caps, "the capabilities cannot be set: {error}")
}
