//! The step that restores an archive to a new VMID.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::Vmid;
use holdfast_protocol::secret::Secret;

use super::archive_check::archive;
use super::context::{Checked, Context, PENDING, Started, StepOutput};
use super::identity;
use super::trouble::StepError;
use super::{own_tasks, step_rebase, step_restore_copy, step_test};
use crate::model::net::ResolverText;
use crate::model::records::VolumeId;
use crate::operation::log::Finding;
use crate::operation::{Operation, Provision};
use crate::port::pve::restore::{Address, BootstrapEnv, NetSpec, Placing};
use crate::port::pve::{PveError, RestoreRequest, VmidUse};

pub(super) async fn probe(context: &Context<'_>) -> Result<Checked, StepError> {
    let vmid = identity::vmid(context)?;
    if context.ports.pve.vmid_use(vmid).await? == VmidUse::Free {
        return Ok(Checked::Not);
    }
    let Some(upid) = context.progress.upid(context.place) else {
        let text = format!("VMID {vmid} was taken by somebody else in the meantime: it is not touched");
        return Err(StepError::give_up(ErrorCode::VmidForeign, text));
    };
    let config = match context.ports.pve.guest_config(vmid).await {
        Ok(config) => config,
        Err(PveError::Permission { text, .. }) => return Err(leftover(context, vmid, &text).await),
        Err(error) => return Err(error.into()),
    };
    if let Some(lock) = &config.lock {
        return Err(leftover(context, vmid, &format!("lock {lock}")).await);
    }
    if config.rootfs.is_none() {
        return Err(leftover(context, vmid, "no root disk").await);
    }
    let mut facts = vec![Finding::RestoredBy(upid.to_owned())];
    facts.extend(config.volumes().iter().map(|id| Finding::Volume(VolumeId::new(id.as_str()))));
    Ok(Checked::Happened(StepOutput { facts, note: None }))
}

/// What an interrupted restore left. While the restore runs the guest looks the same, and the remedy would destroy it.
async fn leftover(context: &Context<'_>, vmid: Vmid, why: &str) -> StepError {
    if let Err(trouble) = at_rest(context, vmid).await {
        return trouble;
    }
    let text = format!(
        "the restore left guest {vmid} half-made ({why}), outside every pool, where no token of ours can clear it"
    );
    StepError::park(ErrorCode::Locked, text, format!("pct unlock {vmid}; pct destroy {vmid}"))
}

/// That the restore which made the guest is not at work on it any more.
pub(super) async fn at_rest(context: &Context<'_>, vmid: Vmid) -> Result<(), StepError> {
    match context.progress.restored_by() {
        Some(upid) if own_tasks::runs(context, upid).await? => Err(StepError::at_work(format!(
            "the restore of guest {vmid} still runs: it is followed to its end"
        ))),
        _ => Ok(()),
    }
}

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let provision = match &context.progress.operation {
        Operation::Provision(provision) => provision,
        Operation::RebaseGuest(_) => return step_rebase::restore(context).await,
        Operation::RestoreCopy(_) => return step_restore_copy::restore(context).await,
        Operation::RestoreTest(_) => return step_test::restore(context).await,
        other => return Err(StepError::fault(format!("a {} restores nothing", other.kind().as_str()))),
    };
    let request = request(context, provision)?;
    Ok(Started::Task(context.ports.pve.restore(&request).await?))
}

fn request(context: &Context<'_>, provision: &Provision) -> Result<RestoreRequest, StepError> {
    let guest = &provision.guest;
    let env = BootstrapEnv::new(Secret::new(PENDING.to_owned()))
        .map_err(|error| StepError::fault(error.to_string()))?;
    Ok(RestoreRequest {
        vmid: identity::vmid(context)?,
        archive: archive(provision.archive())?,
        disks: match provision.lost().and_then(|lost| lost.disks.clone()) {
            Some(disks) => Placing::Each(disks),
            None => Placing::AllOn(provision.storage.clone()),
        },
        pool: provision.pool.clone(),
        net0: NetSpec {
            bridge: guest.network.bridge.clone(),
            address: Address::Static { cidr: guest.network.address, gateway: guest.network.gateway },
            vlan: guest.network.vlan,
            hardware: provision.lost().and_then(|lost| lost.hardware),
            mtu: guest.network.mtu,
            rate: guest.network.rate,
            firewall: guest.network.firewall,
        },
        resolver: guest.network.resolver.as_ref().map(ResolverText::of).unwrap_or_default(),
        env,
        hostname: guest.name.clone(),
        memory: guest.size.memory_mib,
        swap: guest.size.swap_mib,
        cores: guest.size.cores,
    })
}
