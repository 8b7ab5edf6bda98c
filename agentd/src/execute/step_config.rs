//! Steps that change configuration lines.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::GuestLimits;

use super::context::{Checked, Context, Started, StepOutput};
use super::identity::{own_config, vmid};
use super::trouble::StepError;
use super::{archive_check, step_filter};
use crate::model::mark::{self, Mark};
use crate::model::net::{NetLine, ResolverText};
use crate::operation::{KeepProtection, Operation, Reconfigure};
use crate::port::pve::change::{Description, NameKey, NetSlot, Tag};
use crate::port::pve::config::Switch;
use crate::port::pve::{ConfigChange, ConfigUpdate, GuestConfig};

pub(super) async fn is_marked(context: &Context<'_>) -> Result<Checked, StepError> {
    let config = own_config(context).await?;
    // Also when the mark came from a backup: nothing is marked, kept or started before it.
    if let Operation::Provision(provision) = &context.progress.operation {
        archive_check::provisioned(&config, provision)?;
    }
    let mark = mark::read(&config.tags, &config.description);
    let limited = limits_of_new(context, &config).is_empty();
    Ok((limited && mark == Mark::Of(context.progress.operation.uid())).then(StepOutput::nothing).into())
}

pub(super) async fn set_mark(context: &Context<'_>) -> Result<Started, StepError> {
    let config = own_config(context).await?;
    // A new guest has its limits before it is started: the same call sets both.
    let changes = mark_changes(context)?.into_iter().chain(limits_of_new(context, &config)).collect();
    send(context, config, changes).await
}

/// What a guest that is made lacks of the limits of its document.
fn limits_of_new(context: &Context<'_>, config: &GuestConfig) -> Vec<ConfigChange> {
    let Operation::Provision(provision) = &context.progress.operation else { return Vec::new() };
    let missing = provision.guest.limits.and_then(|limits| config.cpu().missing(&limits));
    missing.iter().flat_map(limit_changes).collect()
}

fn limit_changes(limits: &GuestLimits) -> impl Iterator<Item = ConfigChange> {
    let cpu = limits.cpu.map(ConfigChange::CpuLimit);
    cpu.into_iter().chain(limits.cpu_weight.map(ConfigChange::CpuWeight))
}

pub(super) async fn is_protected(context: &Context<'_>) -> Result<Checked, StepError> {
    let config = own_config(context).await?;
    Ok((config.protection == Switch::On).then(StepOutput::nothing).into())
}

pub(super) async fn protect(context: &Context<'_>) -> Result<Started, StepError> {
    let config = own_config(context).await?;
    change(context, config, vec![ConfigChange::Protect]).await
}

pub(super) async fn is_configured(context: &Context<'_>) -> Result<Checked, StepError> {
    let config = own_config(context).await?;
    let wanted = sizes(context)?;
    let filtered = match &wanted.filter {
        Some(goal) => step_filter::missing(context, goal).await?.is_empty(),
        None => true,
    };
    let happened = filtered && differing_fields(wanted, &config).is_empty();
    Ok(happened.then(StepOutput::nothing).into())
}

pub(super) async fn configure(context: &Context<'_>) -> Result<Started, StepError> {
    let config = own_config(context).await?;
    let wanted = sizes(context)?;
    if let Some(goal) = &wanted.filter {
        step_filter::act(context, goal).await?;
    }
    let config = without_waiting_names(context, wanted, config).await?;
    let changes = differing_fields(wanted, &config);
    send(context, config, changes).await
}

async fn send(
    context: &Context<'_>,
    config: GuestConfig,
    changes: Vec<ConfigChange>,
) -> Result<Started, StepError> {
    if changes.is_empty() {
        return Ok(Started::Done);
    }
    change(context, config, changes).await
}

/// Name servers that wait for a guest's next start are not removed by a `delete`, which Proxmox answers with success
/// and does not do (`23-net-name`): they are withdrawn first.
async fn without_waiting_names(
    context: &Context<'_>,
    wanted: &Reconfigure,
    config: GuestConfig,
) -> Result<GuestConfig, StepError> {
    let deletes = |change: &ConfigChange| matches!(change, ConfigChange::HostNames(_));
    if !differing_fields(wanted, &config).iter().any(deletes) {
        return Ok(config);
    }
    change(context, config, vec![ConfigChange::WithdrawNames]).await?;
    own_config(context).await
}

/// Sends changes, bound to the state they were decided on.
pub(super) async fn change(
    context: &Context<'_>,
    config: GuestConfig,
    changes: Vec<ConfigChange>,
) -> Result<Started, StepError> {
    let update =
        ConfigUpdate::new(config.digest, changes).map_err(|error| StepError::fault(error.to_string()))?;
    context.ports.pve.configure(vmid(context)?, &update).await?;
    Ok(Started::Done)
}

pub(super) fn mark_changes(context: &Context<'_>) -> Result<Vec<ConfigChange>, StepError> {
    let uid = context.progress.operation.uid();
    let tags = mark::tags(uid).iter().map(|tag| tag.parse::<Tag>()).collect::<Result<Vec<_>, _>>();
    let tags = tags.map_err(|error| StepError::fault(error.to_string()))?;
    let text =
        Description::try_from(mark::description(uid)).map_err(|error| StepError::fault(error.to_string()))?;
    Ok(vec![ConfigChange::Tags(tags), ConfigChange::Description(text)])
}

fn sizes<'a>(context: &'a Context<'_>) -> Result<&'a Reconfigure, StepError> {
    match &context.progress.operation {
        Operation::Reconfigure(change) => Ok(change),
        other => {
            let text = format!("a {} has no sizes to set", other.kind().as_str());
            Err(StepError::give_up(ErrorCode::Internal, text))
        }
    }
}

/// The changes that make the guest's configuration the wanted one.
fn differing_fields(wanted: &Reconfigure, config: &GuestConfig) -> Vec<ConfigChange> {
    let mut changes = Vec::new();
    if let Some(cores) = wanted.cores.filter(|cores| config.cores != Some(u64::from(cores.get()))) {
        changes.push(ConfigChange::Cores(cores));
    }
    if let Some(memory) = wanted.memory.filter(|memory| config.memory_mib != u64::from(memory.get())) {
        changes.push(ConfigChange::Memory(memory));
    }
    if let Some(swap) = wanted.swap.filter(|swap| config.swap_mib != u64::from(swap.get())) {
        changes.push(ConfigChange::Swap(swap));
    }
    let limits = wanted.limits.and_then(|limits| config.cpu().missing(&limits));
    changes.extend(limits.iter().flat_map(limit_changes));
    if let Some(name) = wanted.name.as_ref().filter(|name| config.hostname.as_deref() != Some(name.as_str()))
    {
        changes.push(ConfigChange::Hostname(name.clone()));
    }
    let line = config.nets.get(&0).and_then(|line| line.parse::<NetLine>().ok());
    if let Some((place, line)) = wanted.network.as_ref().zip(line) {
        let new_line = line.at(place);
        changes.extend((new_line != line).then(|| ConfigChange::Net(NetSlot(0), new_line)));
    }
    if let Some(resolver) = &wanted.resolver {
        changes.extend(names(&ResolverText::of(resolver), &config.resolver()));
    }
    if wanted.protection == KeepProtection::PutBack && config.protection == Switch::Off {
        changes.push(ConfigChange::Protect);
    }
    changes
}

/// What makes a guest's resolver the one that is wanted.
fn names(wanted: &ResolverText, seen: &ResolverText) -> Vec<ConfigChange> {
    let parts =
        [(NameKey::Servers, &wanted.servers, &seen.servers), (NameKey::Search, &wanted.search, &seen.search)];
    let differ = parts.into_iter().filter(|(_, wanted, seen)| wanted != seen);
    let (set, gone): (Vec<_>, Vec<_>) = differ.partition(|(_, wanted, _)| wanted.is_some());
    let set = set.into_iter().filter_map(|(key, wanted, _)| Some(ConfigChange::Names(key, wanted.clone()?)));
    let gone: Vec<NameKey> = gone.into_iter().map(|(key, ..)| key).collect();
    set.chain((!gone.is_empty()).then_some(ConfigChange::HostNames(gone))).collect()
}
