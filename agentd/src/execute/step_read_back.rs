//! Reading the whole guest again and holding it to the document: an operation is done when the state is as wanted, not
//! when every call said OK.

use holdfast_protocol::code::ErrorCode;

use super::attempt::{Acted, Context, Learnt};
use super::identity::{look_at, own_config, vmid};
use super::trouble::Trouble;
use crate::operation::{Operation, Provision};
use crate::port::pve::GuestConfig;
use crate::port::pve::config::Switch;
use crate::port::pve::read::Power;

pub(super) async fn act(context: &Context<'_>) -> Result<Acted, Trouble> {
    let Operation::Provision(provision) = &context.progress.operation else {
        return Err(Trouble::fault("only a provision is read back whole"));
    };
    let config = own_config(context).await?;
    let status = context.ports.pve.guest_status(vmid(context)?).await?;
    let mut wrong = differences(provision, &config);
    if status.power != Power::Running {
        wrong.push("it does not run".to_owned());
    }
    if wrong.is_empty() {
        return Ok(Acted::Learnt(Learnt::note("as wanted")));
    }
    let text = format!("the guest was made but is not as wanted: {}", wrong.join("; "));
    Err(Trouble::park(ErrorCode::Unavailable, text, look_at(vmid(context)?)))
}

fn differences(provision: &Provision, config: &GuestConfig) -> Vec<String> {
    let size = provision.guest.size;
    let mut wrong = Vec::new();
    let mut hold = |right: bool, what: String| {
        if !right {
            wrong.push(what);
        }
    };
    hold(
        config.memory_mib == u64::from(size.memory_mib.get()),
        format!("memory is {} MiB", config.memory_mib),
    );
    hold(config.swap_mib == u64::from(size.swap_mib.get()), format!("swap is {} MiB", config.swap_mib));
    hold(config.cores == Some(u64::from(size.cores.get())), format!("cores are {:?}", config.cores));
    hold(config.protection == Switch::On, "protection is off".to_owned());
    hold(config.unprivileged == Switch::On, "it is privileged".to_owned());
    hold(config.env.is_none(), "a ticket is left in its environment".to_owned());
    hold(config.lock.is_none(), format!("it is locked ({:?})", config.lock));
    hold(
        config.hostname.as_deref() == Some(provision.guest.name.as_str()),
        format!("its name is {:?}", config.hostname),
    );
    let root = config.rootfs.as_ref().and_then(|disk| disk.size);
    hold(
        root.is_some_and(|bytes| bytes >= u64::from(size.rootfs_gib.get()) << 30),
        format!("its root disk is {root:?}"),
    );
    for volume in &provision.guest.volumes {
        let mounted = config.mounts.values().any(|disk| disk.mount.as_deref() == Some(volume.mount.as_str()));
        hold(mounted, format!("volume {} is not mounted", volume.name));
    }
    wrong
}
