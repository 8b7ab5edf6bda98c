//! The replacement of one host by another.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::Stage;

/// The part of the simulator's folder that does not belong to the host.
const OUTSIDE: &str = "run/outside";

impl Stage {
    /// What is outside the host, as the simulator keeps it: a folder for each server.
    #[must_use]
    pub fn outside(&self) -> PathBuf {
        self.part("sim").join(OUTSIDE)
    }

    /// Switches the host off and renames its folder. Its place takes the host of another name, or an empty one. Neither
    /// its simulator nor its agent runs yet.
    ///
    /// # Errors
    /// When one of its programs does not end, or the disk refuses.
    pub fn change_box(&mut self, demoted: &str, from: Option<&str>) -> Result<()> {
        if let Some(mut agent) = self.agent.take() {
            agent.kill()?;
        }
        if let Some(mut simulator) = self.simulator.take() {
            simulator.stop()?;
        }
        for part in ["sim", "agent"] {
            let (here, named) = (self.part(part), |name: &str| self.part(&format!("{part}-{name}")));
            std::fs::rename(&here, named(demoted)).with_context(|| format!("cannot put the {part} aside"))?;
            match from {
                Some(name) => std::fs::rename(named(name), &here),
                None => std::fs::create_dir(&here),
            }
            .with_context(|| format!("cannot bring another {part}"))?;
        }
        let outside = self.outside();
        std::fs::create_dir_all(outside.parent().context("it lies in a folder")?)?;
        std::fs::rename(self.part(&format!("sim-{demoted}")).join(OUTSIDE), outside)
            .context("cannot leave what lies outside where it is")
    }
}
