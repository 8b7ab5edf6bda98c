//! What a runtime must know about a guest to run it.

use std::path::PathBuf;

use crate::archive::GuestPath;

use super::error::RuntimeError;
use super::net::Net;

/// What a runtime must know about a guest to run it: a copy of its configuration at the moment of the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestSpec {
    pub vmid: u32,
    pub hostname: String,
    /// The directory of its root file system.
    pub rootfs: PathBuf,
    /// Its other volumes.
    pub mounts: Vec<GuestMount>,
    /// What its first process finds in the environment.
    pub env: Vec<(String, String)>,
    /// Its network interfaces.
    pub nets: Vec<Net>,
    /// Proxmox's name for the distribution.
    pub ostype: String,
    /// What it may do beyond what every guest may.
    pub features: Features,
}

/// What a guest may do beyond what every guest may, as `features` of its configuration says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// It may run containers of its own.
    pub nesting: bool,
    /// It may use the kernel's keyrings.
    pub keyctl: bool,
}

/// A volume that the guest sees below its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestMount {
    /// Where it sees it.
    pub at: GuestPath,
    /// Where it is stored on the host.
    pub directory: PathBuf,
}

impl GuestSpec {
    /// Refuses what cannot be handed to a program or a kernel interface as it is.
    pub(super) fn check(&self) -> Result<(), RuntimeError> {
        let bad = |what: &'static str, value: &str| RuntimeError::BadValue {
            vmid: self.vmid,
            what,
            value: value.to_owned(),
        };
        let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
        if self.hostname.is_empty()
            || !self.hostname.bytes().all(is_host_byte)
            || self.hostname.starts_with('-')
        {
            return Err(bad("the hostname", &self.hostname));
        }
        for (name, value) in &self.env {
            let is_name =
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            // Only the name is shown: the value may be a secret.
            if !is_name || value.contains('\0') {
                return Err(bad("the environment variable", name));
            }
        }
        let mut names: Vec<&str> = Vec::new();
        for net in &self.nets {
            if !net.has_safe_names() {
                return Err(bad("the network interface", &net.name));
            }
            if names.contains(&net.name.as_str()) {
                return Err(RuntimeError::DuplicateInterface {
                    vmid: self.vmid,
                    interface: net.name.clone(),
                });
            }
            names.push(&net.name);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use super::*;
    use crate::runtime::net::Link;

    /// A guest on the loopback network with its root in a folder.
    pub(in crate::runtime) fn guest(vmid: u32, rootfs: &Path) -> GuestSpec {
        let net = Net {
            name: "eth0".to_owned(),
            bridge: "vmbr0".to_owned(),
            hwaddr: "BC:24:11:00:00:01".to_owned(),
            ip: Some("127.66.0.91/8".parse().expect("an address")),
            gw: None,
            link: Link::Up,
        };
        GuestSpec {
            vmid,
            hostname: format!("ct{vmid}"),
            rootfs: rootfs.to_owned(),
            mounts: Vec::new(),
            env: vec![("HOLDFAST_BOOTSTRAP".to_owned(), "claim".to_owned())],
            nets: vec![net],
            ostype: "debian".to_owned(),
            features: Features::default(),
        }
    }

    #[test]
    fn values_that_a_program_could_misread_are_refused() {
        let base = guest(100, Path::new("/nowhere"));
        assert!(base.check().is_ok());
        let refused = |change: fn(&mut GuestSpec)| {
            let mut spec = base.clone();
            change(&mut spec);
            spec.check().expect_err("refused").to_string()
        };
        assert!(refused(|spec| spec.hostname = "-M".to_owned()).contains("hostname"));
        assert!(refused(|spec| spec.hostname = "a b".to_owned()).contains("hostname"));
        assert!(refused(|spec| spec.nets[0].name = "eth0/../x".to_owned()).contains("interface"));
        assert!(refused(|spec| spec.nets[0].hwaddr = "BC:24".to_owned()).contains("interface"));
        assert!(refused(|spec| spec.nets.push(spec.nets[0].clone())).contains("two interfaces"));
        let secret = refused(|spec| spec.env[0] = ("A B".to_owned(), "hidden".to_owned()));
        assert!(secret.contains("A B") && !secret.contains("hidden"));
    }
}
