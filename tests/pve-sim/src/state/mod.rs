//! The state folder.
//!
//! ```text
//! STATE/etc/      user.cfg storage.cfg token.cfg shadow.cfg ticket.key interfaces cert.pem key.pem
//! STATE/lxc/      one .conf per guest
//! STATE/root/     the node's paths, re-rooted: mnt/labdir/images/…, var/lib/vz/…
//! STATE/tasks/    index, running tasks, logs
//! STATE/run/      marks that do not survive a "reboot": running guests, mounted and broken storages, the control socket
//! ```
pub mod seed;
pub mod seed_error;
pub mod volumes;

use std::path::{Path, PathBuf};

/// Names of the places in a state folder.
#[derive(Debug, Clone)]
pub struct Paths {
    base: PathBuf,
}

impl Paths {
    /// For this folder.
    #[must_use]
    pub fn new(base: &Path) -> Self {
        Self { base: base.to_owned() }
    }

    /// `STATE`
    #[must_use]
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// `STATE/etc/name`
    #[must_use]
    pub fn etc(&self, name: &str) -> PathBuf {
        self.base.join("etc").join(name)
    }

    /// `STATE/lxc`
    #[must_use]
    pub fn lxc(&self) -> PathBuf {
        self.base.join("lxc")
    }

    /// `STATE/root`
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.base.join("root")
    }

    /// `STATE/tasks`
    #[must_use]
    pub fn tasks(&self) -> PathBuf {
        self.base.join("tasks")
    }

    /// `STATE/run`
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.base.join("run")
    }

    /// The control socket.
    #[must_use]
    pub fn control(&self) -> PathBuf {
        self.run().join("control.sock")
    }

    /// Makes the folders.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn make(&self) -> std::io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        for dir in [
            self.base.join("etc"),
            self.lxc(),
            self.root(),
            self.tasks(),
            self.run().join("mounted"),
            self.run().join("offline"),
            self.run().join("guests"),
        ] {
            std::fs::create_dir_all(dir)?;
        }
        std::fs::set_permissions(self.base.join("etc"), std::fs::Permissions::from_mode(0o700))
    }
}
