//! The privileges of this process.
//!
//! Input: the kernel's data about this process. Output: [`Unprivileged`], the proof that the composition root requires
//! before it opens anything, or the reason why the agent will not run. Deliberately absent: dropping privileges. An
//! agent that was started with too much was set up wrongly, and that should be seen and corrected.

use caps::{CapSet, CapsHashSet};

/// Proof that this process is not root and holds no capability.
#[derive(Debug)]
pub struct Unprivileged(());

/// Why the agent will not run like this.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    #[error(
        "agentd runs customers' guests and must not be root: start it by its unit (`systemctl start agentd`), or as the user `holdfast`"
    )]
    Root,
    /// A capability is held.
    #[error("agentd must hold no capability, but its {set} set holds {names}: remove them from the unit")]
    Capability { set: &'static str, names: String },
    /// The kernel would not say.
    #[error("the kernel does not tell this process's capabilities: /proc must be mounted")]
    Unknown(#[source] caps::errors::CapsError),
}

/// The privileges of a process, from the kernel.
#[derive(Debug, Default)]
pub struct Privileges {
    /// Real and effective user.
    pub uids: [u32; 2],
    /// The sets that let a process do something, or let it gain something. The bounding set does neither.
    pub sets: Vec<(&'static str, CapsHashSet)>,
}

impl Privileges {
    /// Reads them from the kernel.
    ///
    /// # Errors
    /// [`PrivilegeError::Unknown`].
    pub fn of_this_process() -> Result<Self, PrivilegeError> {
        let asked = [
            ("effective", CapSet::Effective),
            ("permitted", CapSet::Permitted),
            ("inheritable", CapSet::Inheritable),
            ("ambient", CapSet::Ambient),
        ];
        let mut sets = Vec::with_capacity(asked.len());
        for (name, set) in asked {
            sets.push((name, caps::read(None, set).map_err(PrivilegeError::Unknown)?));
        }
        let (real, effective) = (rustix::process::getuid().as_raw(), rustix::process::geteuid().as_raw());
        Ok(Self { uids: [real, effective], sets })
    }

    /// Judges them.
    ///
    /// # Errors
    /// [`PrivilegeError`].
    pub fn none(&self) -> Result<Unprivileged, PrivilegeError> {
        if self.uids.contains(&0) {
            return Err(PrivilegeError::Root);
        }
        for (set, held) in &self.sets {
            if !held.is_empty() {
                let mut names: Vec<String> = held.iter().map(ToString::to_string).collect();
                names.sort();
                return Err(PrivilegeError::Capability { set, names: names.join(", ") });
            }
        }
        Ok(Unprivileged(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_refused_even_without_capabilities() {
        for uids in [[0, 0], [1000, 0], [0, 1000]] {
            assert!(matches!(Privileges { uids, sets: Vec::new() }.none(), Err(PrivilegeError::Root)));
        }
    }

    #[test]
    fn one_capability_in_any_set_is_refused_by_name() {
        for set in ["effective", "permitted", "inheritable", "ambient"] {
            let held = CapsHashSet::from([caps::Capability::CAP_SYS_ADMIN]);
            let error = Privileges { uids: [1000; 2], sets: vec![(set, held)] }.none().unwrap_err();
            let text = error.to_string();
            assert!(text.contains(set) && text.contains("CAP_SYS_ADMIN"), "{text}");
        }
        assert!(Privileges { uids: [1000; 2], sets: vec![("effective", CapsHashSet::new())] }.none().is_ok());
    }

    #[test]
    fn the_kernel_is_asked_for_this_very_process() {
        let privileges = Privileges::of_this_process().unwrap();
        assert_eq!(privileges.uids[1] == 0, rustix::process::geteuid().is_root());
        assert_eq!(privileges.sets.len(), 4);
    }
}
