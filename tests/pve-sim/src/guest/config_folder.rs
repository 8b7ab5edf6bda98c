//! All configurations, in memory and as one file each.
//!
//! In: changes by VMID. Out: the same after a restart. Every write is a whole file put in place by rename.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::config::GuestConfig;
use crate::fail::{Fallible, Refusal, host};
use crate::task::index::write_whole;

/// The folder of guest configurations.
#[derive(Debug)]
pub struct ConfigFolder {
    dir: PathBuf,
    node: String,
    held: BTreeMap<u32, GuestConfig>,
    writable: Writable,
}

/// Whether the cluster's file system accepts writes. Without quorum it does not, even if the disks are fine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writable {
    Yes,
    /// It does not.
    No,
}

impl ConfigFolder {
    /// Reads the folder.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(dir: &Path, node: &str) -> std::io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        let mut held = BTreeMap::new();
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            let vmid = path
                .file_name()
                .and_then(|name| name.to_str())
                .and_then(|name| name.strip_suffix(".conf"))
                .and_then(|id| id.parse().ok());
            if let Some(vmid) = vmid {
                held.insert(vmid, GuestConfig::parse(&std::fs::read_to_string(&path)?));
            }
        }
        Ok(Self { dir: dir.to_owned(), node: node.to_owned(), held, writable: Writable::Yes })
    }

    /// Takes the right to write away, or gives it back.
    pub const fn set_writable(&mut self, writable: Writable) {
        self.writable = writable;
    }

    fn need_writable(&self, vmid: u32) -> Fallible<()> {
        match self.writable {
            Writable::Yes => Ok(()),
            Writable::No => Err(Refusal::die(format!(
                "unable to open file '/etc/pve/nodes/{}/lxc/{vmid}.conf.tmp.{}' - Permission denied",
                self.node,
                std::process::id()
            ))),
        }
    }

    fn path(&self, vmid: u32) -> PathBuf {
        self.dir.join(format!("{vmid}.conf"))
    }

    #[must_use]
    pub const fn all(&self) -> &BTreeMap<u32, GuestConfig> {
        &self.held
    }

    /// Whether a VMID is taken.
    #[must_use]
    pub fn has(&self, vmid: u32) -> bool {
        self.held.contains_key(&vmid)
    }

    /// A configuration.
    ///
    /// # Errors
    /// The real sentence for a VMID that is not there.
    pub fn get(&self, vmid: u32) -> Fallible<&GuestConfig> {
        let missing = || {
            Refusal::die(format!("Configuration file 'nodes/{}/lxc/{vmid}.conf' does not exist", self.node))
        };
        self.held.get(&vmid).ok_or_else(missing)
    }

    /// Writes a configuration.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(&mut self, vmid: u32, mut config: GuestConfig) -> Fallible<()> {
        self.need_writable(vmid)?;
        drop_used(&mut config);
        write_whole(&self.path(vmid), &config.print())
            .map_err(|error| host("write of guest configuration", &error))?;
        // Memory holds what the file says, as a fresh read would give it.
        self.held.insert(vmid, GuestConfig::parse(&config.print()));
        Ok(())
    }

    /// Changes a configuration in place.
    ///
    /// # Errors
    /// When it is not there, the change refuses, or the file cannot be written.
    pub fn change<T>(
        &mut self,
        vmid: u32,
        change: impl FnOnce(&mut GuestConfig) -> Fallible<T>,
    ) -> Fallible<T> {
        let mut config = self.get(vmid)?.clone();
        let result = change(&mut config)?;
        self.put(vmid, config)?;
        Ok(result)
    }

    /// Removes a configuration.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn remove(&mut self, vmid: u32) -> Fallible<()> {
        self.need_writable(vmid)?;
        self.held.remove(&vmid);
        match std::fs::remove_file(self.path(vmid)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(host("removal of guest configuration", &error))
            }
            _ => Ok(()),
        }
    }
}

/// Removes each `unusedN` entry whose volume is in use again.
fn drop_used(config: &mut GuestConfig) {
    let used: Vec<String> = config
        .main
        .values
        .iter()
        .filter(|(key, _)| super::options::is_volume_key(key))
        .filter_map(|(_, value)| value.split(',').next().map(str::to_owned))
        .collect();
    config.main.values.retain(|key, value| !(key.starts_with("unused") && used.contains(value)));
}
