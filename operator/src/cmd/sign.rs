//! `holdfast sign`: shows, confirms and signs one job.

use std::path::{Path, PathBuf};

use holdfast_protocol::break_glass::WayName;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::id::{GoldenVersion, GuestUid, JobId};
use holdfast_protocol::job::act::{Act, Sha256Text, Verb, args};
use holdfast_protocol::job::{Draft, Payload, SignedJob, Target};
use holdfast_protocol::operator::{DesiredVersion, HostDetail};
use holdfast_protocol::report::WaitingForSignature;
use holdfast_trust::signature::Namespace;
use serde::Serialize;

use super::image_builds::{self, DifferenceKnown};
use super::{approval, job, tunnel_token};
use crate::args::{BackupTier, LossArg, SignArgs};
use crate::error::CliError;
use crate::hub::Hub;
use crate::job_draft::{self, JobDraftError, StaysBehind};
use crate::job_file::{self, JobFile, JobFileError, Overwrite};
use crate::pins::{self, CheckedHost, ShownHost};
use crate::screen::Screen;
use crate::{clock, keygen, prompt, render};

/// A signed job: the document for programs.
#[derive(Debug, Serialize)]
struct SignOutcome {
    job: JobId,
    host: String,
    verb: Verb,
    guest: Option<GuestUid>,
    expires_at: String,
    keys: Vec<String>,
    file: PathBuf,
    submitted: bool,
}

pub async fn run(args: SignArgs, hub: &Hub, folder: &Path, screen: &Screen) -> Result<(), CliError> {
    // clap demands a host where it is not for all of them.
    let Some(host) = args.host.as_deref() else { return approval::sign(&args, hub, screen).await };
    let detail: HostDetail = hub.get(&["v1", "hosts", host]).await?;
    let checked = CheckedHost::of(&detail, folder)?;
    let tunnel = tunnel_token::draft(&args, &detail, hub, folder).await?;
    let (tunnel, tunnel_notice) = tunnel.map_or((None, None), |made| (Some(made.draft), Some(made.notice)));
    let (mut blob, entry, file) = match &args.also {
        Some(path) => (JobFile::read(path)?.0, None, path.clone()),
        None => {
            let (payload, entry) = payload(&args, tunnel, &detail, &checked.shown)?;
            let file = args.out.clone();
            let file = file.unwrap_or_else(|| PathBuf::from(format!("holdfast-{}.json", payload.job_id)));
            (unsigned(payload)?, entry, file)
        }
    };
    require_host(&blob.payload, &detail, host)?;
    pins::same_job(&blob.payload, &checked.shown)?;
    require_document(&blob.payload, hub, &detail).await?;
    let entry = entry.or_else(|| waiting_entry(&blob.payload, &detail));
    let name = detail.host.name.as_str();
    let known = if args.although_builds_differ { DifferenceKnown::Yes } else { DifferenceKnown::No };
    let builds = image_builds::before_approval(&blob.payload.act, hub, known).await?;
    let words = checked.notice().unwrap_or_default();
    let page = render::job::to_sign(&blob.payload, &detail, entry.as_ref(), clock::now());
    let notices = builds.unwrap_or_default() + &tunnel_notice.unwrap_or_default();
    screen.before_question(&(words + &page + &notices));
    let wanted = job_draft::name_to_type(&blob.payload, name);
    let owner = if wanted == name { "the host's" } else { "the guest's" };
    prompt::name(wanted, &format!("\nType {owner} name to sign for this:"), args.key.confirm.as_deref())?;
    checked.save(clock::now())?;
    let signature = keygen::sign(&blob.job.payload, &args.key.key, Namespace::Job)?;
    blob.add(signature.armoured, signature.key)?;
    let over = if args.also.is_some() { Overwrite::SameFile } else { Overwrite::Never };
    let text = blob.text()?;
    job_file::write(&file, &text, over)?;
    if args.submit {
        job::submit(hub, &detail, &blob.payload, text).await?;
    }
    show(&blob, &detail, &args, file, screen)
}

/// The bytes that will be signed.
fn unsigned(payload: Payload) -> Result<JobFile, JobFileError> {
    let bytes = payload.to_json().map_err(JobFileError::Unwritable)?.into_bytes();
    let job = SignedJob { payload: bytes, signatures: Vec::new(), consents: Vec::new() };
    Ok(JobFile { job, payload, keys: Vec::new() })
}

/// A bulk change is released under the document that the hub shows, or under none: the operator who signs examines the
/// change in that document.
async fn require_document(payload: &Payload, hub: &Hub, detail: &HostDetail) -> Result<(), CliError> {
    let Act::ReleaseBrake(release) = &payload.act else { return Ok(()) };
    let host = detail.host.name.to_string();
    let Some(document) = &release.document else {
        return Err(JobDraftError::NoDocument { host }.into());
    };
    let id = detail.host.id.to_string();
    let held: Option<DesiredVersion> = hub.find(&["v1", "hosts", &id, "desired"]).await?;
    let shown = held.and_then(|version| Desired::parse(version.document.as_bytes()).ok());
    let shown = shown.map(|desired| desired.numbered());
    let same = shown.is_some_and(|shown| {
        shown.generation == release.generation && Sha256Text::from(shown.content) == *document
    });
    if same {
        Ok(())
    } else {
        Err(JobDraftError::OtherDocument { host, generation: release.generation }.into())
    }
}

fn payload(
    args: &SignArgs,
    tunnel: Option<Draft>,
    detail: &HostDetail,
    shown: &ShownHost,
) -> Result<(Payload, Option<WaitingForSignature>), CliError> {
    let name = detail.host.name.to_string();
    let waiting = detail.sections.waiting.as_deref().unwrap_or_default();
    let (draft, entry) = match (
        tunnel.map_or_else(|| files(args, detail), |draft| Ok(Some(draft)))?,
        act(args, detail)?,
        args.what.as_deref(),
    ) {
        (Some(draft), _, _) => (draft, None),
        (_, Some(act), Some(guest)) => {
            let guests = detail.sections.guests.as_deref().unwrap_or_default();
            (job_draft::for_guest(act, &name, guests, guest)?, None)
        }
        (_, _, what) => {
            let (place, draft) = job_draft::choose(&name, waiting, what)?;
            (draft, waiting.get(place).cloned())
        }
    };
    // clap demands it where it is needed.
    let reason = args.reason.clone().ok_or(CliError::Reason("a job says why"))?;
    Ok((job_draft::complete(draft, shown, args.hours, reason, clock::now())?, entry))
}

/// The draft for the whole host: from the given files, or to open a way into it.
fn files(args: &SignArgs, detail: &HostDetail) -> Result<Option<Draft>, CliError> {
    if let Some(way) = &args.break_glass {
        return Ok(Some(break_glass(way.clone(), args, detail)?));
    }
    Ok(match (args.policy.as_deref(), args.draft.as_deref()) {
        (Some([operators, policy]), _) => Some(policy_update(operators, policy)?),
        (_, Some(draft)) => Some(job_file::draft(draft)?),
        _ => None,
    })
}

/// An action that the operator orders without a request by the host.
fn act(args: &SignArgs, detail: &HostDetail) -> Result<Option<Act>, CliError> {
    let tier = args.tier.map(BackupTier::tier);
    if args.backup_now {
        return Ok(Some(Act::BackupNow(args::BackupNow { tier })));
    }
    if args.restore_test {
        return Ok(Some(Act::RestoreTest(args::RestoreTest { tier })));
    }
    if let Some(archive) = args.delete_backup.clone() {
        let loses = args.loses.iter().copied().map(LossArg::loss).collect();
        return Ok(Some(Act::DeleteBackup(args::DeleteBackup { archive, loses })));
    }
    if let Some([volume, to]) = args.move_volume.as_deref() {
        let guests = detail.sections.guests.as_deref().unwrap_or_default();
        return Ok(Some(job_draft::move_volume(volume, detail.host.name.as_str(), guests, to)?));
    }
    if let Some(copy) = args.swap.as_deref() {
        let guests = detail.sections.guests.as_deref().unwrap_or_default();
        return Ok(Some(job_draft::swap(copy, &args.leave, detail.host.name.as_str(), guests)?));
    }
    if let Some(copy) = args.discard.as_deref() {
        let guests = detail.sections.guests.as_deref().unwrap_or_default();
        return Ok(Some(job_draft::discard(copy, detail.host.name.as_str(), guests)?));
    }
    if let Some(version) = &args.rebase {
        return Ok(Some(rebase(version, args, detail)?));
    }
    let back = args.roll_back.clone().map(|snapshot| Act::Rollback(args::Rollback { snapshot }));
    let restore = args.restore.clone().map(|archive| Act::Restore(args::Restore { archive }));
    Ok(back.or(restore))
}

/// The image as the host has it, and what stays behind as the guest reports it.
fn rebase(version: &GoldenVersion, args: &SignArgs, detail: &HostDetail) -> Result<Act, CliError> {
    let host = detail.host.name.as_str();
    let goldens = detail.sections.host.as_ref().map(|host| host.goldens.as_slice()).unwrap_or_default();
    let guests = detail.sections.guests.as_deref().unwrap_or_default();
    let given = if args.leave_behind { StaysBehind::Accepted } else { StaysBehind::Refused };
    let asked = args.what.as_deref().unwrap_or_default();
    let leaves = job_draft::leaves(host, guests, asked, given, clock::now())?;
    Ok(job_draft::rebase(version, host, goldens, leaves)?)
}

/// The order names every customer with guests on the host, as the host reports them: each is asked.
fn break_glass(way: WayName, args: &SignArgs, detail: &HostDetail) -> Result<Draft, CliError> {
    let key = args.let_in.as_deref().map(job_file::person_key).transpose()?;
    let guests = detail.sections.guests.iter().flatten();
    let customers = guests.filter_map(|guest| guest.customer.clone()).collect();
    let act = Act::BreakGlass(args::BreakGlass { way, minutes: args.minutes, key, customers });
    Ok(Draft { target: Target::Host {}, act })
}

fn policy_update(operators: &Path, policy: &Path) -> Result<Draft, CliError> {
    let read = |path: &Path| {
        let failed = |source| JobFileError::Io { verb: "read", path: path.to_owned(), source };
        std::fs::read_to_string(path).map_err(failed)
    };
    let (signers, policy) = (read(operators)?, read(policy)?);
    // What the host would refuse is not worth a signature.
    let known = holdfast_trust::Operators::parse(&signers)?;
    holdfast_trust::Policy::parse(&policy, &known)?;
    Ok(Draft { target: Target::Host {}, act: Act::PolicyUpdate(args::PolicyUpdate { signers, policy }) })
}

/// A job for another host, or another life of this one, would only be refused there.
fn require_host(payload: &Payload, detail: &HostDetail, asked: &str) -> Result<(), CliError> {
    if payload.host_id == detail.host.id {
        return Ok(());
    }
    let (found, wanted) = (detail.host.id.to_string(), payload.host_id.to_string());
    Err(CliError::OtherHost { host: asked.to_owned(), found, wanted })
}

/// What the host reports of the same request, for the operator who signs second.
fn waiting_entry(payload: &Payload, detail: &HostDetail) -> Option<WaitingForSignature> {
    let same = |draft: &Draft| draft.act == payload.act && draft.target == payload.target;
    let mut waiting = detail.sections.waiting.iter().flatten();
    waiting.rfind(|one| Draft::parse(one.payload.as_bytes()).is_ok_and(|draft| same(&draft))).cloned()
}

fn show(
    blob: &JobFile,
    detail: &HostDetail,
    args: &SignArgs,
    file: PathBuf,
    screen: &Screen,
) -> Result<(), CliError> {
    let payload = &blob.payload;
    let guest = match &payload.target {
        Target::Guest { uid, .. } => Some(*uid),
        Target::Host {} => None,
    };
    let signed = SignOutcome {
        job: payload.job_id,
        host: detail.host.name.to_string(),
        verb: payload.act.verb(),
        guest,
        expires_at: payload.expires_at.to_string(),
        keys: blob.keys.iter().map(holdfast_trust::OperatorKey::fingerprint).collect(),
        file,
        submitted: args.submit,
    };
    screen.show(&signed, |signed, _| {
        let (count, file) = (signed.keys.len(), signed.file.display());
        let signatures = if count == 1 { "1 signature".to_owned() } else { format!("{count} signatures") };
        let next = if signed.submitted {
            format!("Submitted to {0}. Follow it with `holdfast job watch {0} {1}`.", signed.host, signed.job)
        } else {
            format!(
                "Submit it with `holdfast job submit {0} {file}`, or have another operator sign it too: \
                 `holdfast sign {0} --also {file} --key KEY`.",
                signed.host
            )
        };
        format!("Signed ({signatures}) and written to {file}.\n{next}\n")
    })
}
