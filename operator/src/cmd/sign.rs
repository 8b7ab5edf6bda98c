//! `holdfast sign`: what waits on a host, shown, named by the person, signed with their own key, and written to a file.

use std::path::{Path, PathBuf};

use holdfast_protocol::desired::Desired;
use holdfast_protocol::id::{GuestUid, JobId};
use holdfast_protocol::job::act::{Act, Sha256Text, Verb, args};
use holdfast_protocol::job::{Draft, Payload, SignedJob, Target};
use holdfast_protocol::operator::{DesiredVersion, HostDetail};
use holdfast_protocol::report::WaitingForSignature;
use serde::Serialize;

use super::job;
use crate::args::{BackupTier, Loses, SignArgs};
use crate::blob::{self, Blob, BlobError, Over};
use crate::exit::CliError;
use crate::hub::Hub;
use crate::order::{self, OrderError};
use crate::pins::{self, Checked, Shown};
use crate::screen::Screen;
use crate::{ask, clock, keygen, render};

/// A signed job: the document for programs.
#[derive(Debug, Serialize)]
struct Signed {
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
    let detail: HostDetail = hub.get(&["v1", "hosts", &args.host]).await?;
    let checked = Checked::of(&detail, folder)?;
    let (mut blob, said, file) = match &args.also {
        Some(path) => (Blob::read(path)?.0, None, path.clone()),
        None => {
            let (payload, said) = payload(&args, &detail, &checked.shown)?;
            let file = args.out.clone();
            let file = file.unwrap_or_else(|| PathBuf::from(format!("holdfast-{}.json", payload.job_id)));
            (unsigned(payload)?, said, file)
        }
    };
    is_for(&blob.payload, &detail, &args.host)?;
    pins::same_job(&blob.payload, &checked.shown)?;
    holds_document(&blob.payload, hub, &detail).await?;
    let said = said.or_else(|| said_of(&blob.payload, &detail));
    let name = detail.host.name.as_str();
    let words = checked.words().unwrap_or_default();
    let page = render::job::to_sign(&blob.payload, &detail, said.as_ref(), clock::now());
    screen.before_question(&(words + &page));
    let wanted = order::name_to_type(&blob.payload, name);
    let whose = if wanted == name { "the host's" } else { "the guest's" };
    ask::name(wanted, &format!("\nType {whose} name to sign for this:"), args.key.confirm.as_deref())?;
    checked.keep(clock::now())?;
    let signature = keygen::sign(&blob.job.payload, &args.key.key)?;
    blob.add(signature.armoured, signature.key)?;
    let over = if args.also.is_some() { Over::Itself } else { Over::Nothing };
    let text = blob.text()?;
    blob::write(&file, &text, over)?;
    if args.submit {
        job::leave(hub, &detail, blob.payload.job_id, text).await?;
    }
    show(&blob, &detail, &args, file, screen)
}

/// The bytes that will be signed.
fn unsigned(payload: Payload) -> Result<Blob, BlobError> {
    let bytes = payload.to_json().map_err(BlobError::Unwritable)?.into_bytes();
    Ok(Blob { job: SignedJob { payload: bytes, signatures: Vec::new() }, payload, keys: Vec::new() })
}

/// A bulk change is let through under the document that the hub shows, or under none: who signs looks there what it is.
async fn holds_document(payload: &Payload, hub: &Hub, detail: &HostDetail) -> Result<(), CliError> {
    let Act::ReleaseBrake(release) = &payload.act else { return Ok(()) };
    let host = detail.host.name.to_string();
    let Some(document) = &release.document else {
        return Err(OrderError::NoDocument { host }.into());
    };
    let id = detail.host.id.to_string();
    let held: Option<DesiredVersion> = hub.find(&["v1", "hosts", &id, "desired"]).await?;
    let shown = held.and_then(|version| Desired::parse(version.document.as_bytes()).ok());
    let shown = shown.map(|desired| desired.numbered());
    let same = shown.is_some_and(|shown| {
        shown.generation == release.generation && Sha256Text::from(shown.content) == *document
    });
    if same { Ok(()) } else { Err(OrderError::OtherDocument { host, generation: release.generation }.into()) }
}

fn payload(
    args: &SignArgs,
    detail: &HostDetail,
    shown: &Shown,
) -> Result<(Payload, Option<WaitingForSignature>), CliError> {
    let name = detail.host.name.to_string();
    let waiting = detail.sections.waiting.as_deref().unwrap_or_default();
    let (draft, said) = match (files(args)?, act(args, detail)?, args.what.as_deref()) {
        (Some(draft), _, _) => (draft, None),
        (_, Some(act), Some(guest)) => {
            let guests = detail.sections.guests.as_deref().unwrap_or_default();
            (order::upon(act, &name, guests, guest)?, None)
        }
        (_, _, what) => {
            let (place, draft) = order::choose(&name, waiting, what)?;
            (draft, waiting.get(place).cloned())
        }
    };
    // clap demands it where it is needed.
    let reason = args.reason.clone().ok_or(CliError::Reason("a job says why"))?;
    Ok((order::complete(draft, shown, args.hours, reason, clock::now())?, said))
}

/// What files ask for.
fn files(args: &SignArgs) -> Result<Option<Draft>, CliError> {
    Ok(match (args.policy.as_deref(), args.draft.as_deref()) {
        (Some([operators, policy]), _) => Some(policy_update(operators, policy)?),
        (_, Some(draft)) => Some(blob::draft(draft)?),
        _ => None,
    })
}

/// What is ordered although no host asks for it.
fn act(args: &SignArgs, detail: &HostDetail) -> Result<Option<Act>, CliError> {
    let tier = args.tier.map(BackupTier::tier);
    if args.backup_now {
        return Ok(Some(Act::BackupNow(args::BackupNow { tier })));
    }
    if args.restore_test {
        return Ok(Some(Act::RestoreTest(args::RestoreTest { tier })));
    }
    if let Some(archive) = args.delete_backup.clone() {
        let loses = args.loses.iter().copied().map(Loses::loss).collect();
        return Ok(Some(Act::DeleteBackup(args::DeleteBackup { archive, loses })));
    }
    if let Some([volume, to]) = args.hand_over.as_deref() {
        let guests = detail.sections.guests.as_deref().unwrap_or_default();
        return Ok(Some(order::hand_over(volume, detail.host.name.as_str(), guests, to)?));
    }
    if let Some(copy) = args.swap.as_deref() {
        let guests = detail.sections.guests.as_deref().unwrap_or_default();
        return Ok(Some(order::swap(copy, &args.leave, detail.host.name.as_str(), guests)?));
    }
    let back = args.roll_back.clone().map(|snapshot| Act::Rollback(args::Rollback { snapshot }));
    let restore = args.restore.clone().map(|archive| Act::Restore(args::Restore { archive }));
    Ok(back.or(restore))
}

fn policy_update(operators: &Path, policy: &Path) -> Result<Draft, CliError> {
    let read = |path: &Path| {
        let failed = |source| BlobError::Io { verb: "read", path: path.to_owned(), source };
        std::fs::read_to_string(path).map_err(failed)
    };
    let (signers, policy) = (read(operators)?, read(policy)?);
    // What the host would refuse is not worth a signature.
    let known = holdfast_trust::Operators::parse(&signers)?;
    holdfast_trust::Policy::parse(&policy, &known)?;
    Ok(Draft { target: Target::Host {}, act: Act::PolicyUpdate(args::PolicyUpdate { signers, policy }) })
}

/// A job for another host, or another life of this one, would only be refused there.
fn is_for(payload: &Payload, detail: &HostDetail, asked: &str) -> Result<(), CliError> {
    if payload.host_id == detail.host.id {
        return Ok(());
    }
    let (found, wanted) = (detail.host.id.to_string(), payload.host_id.to_string());
    Err(CliError::OtherHost { host: asked.to_owned(), found, wanted })
}

/// What the host says of the same wish, for whoever signs second.
fn said_of(payload: &Payload, detail: &HostDetail) -> Option<WaitingForSignature> {
    let same = |draft: &Draft| draft.act == payload.act && draft.target == payload.target;
    let mut waiting = detail.sections.waiting.iter().flatten();
    waiting.rfind(|one| Draft::parse(one.payload.as_bytes()).is_ok_and(|draft| same(&draft))).cloned()
}

fn show(
    blob: &Blob,
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
    let signed = Signed {
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
            format!("Left for {0}. Follow it with `holdfast job watch {0} {1}`.", signed.host, signed.job)
        } else {
            format!(
                "Leave it for the host with `holdfast job submit {0} {file}`, or let another operator sign too: \
                 `holdfast sign {0} --also {file} --key KEY`.",
                signed.host
            )
        };
        format!("Signed ({signatures}) and written to {file}.\n{next}\n")
    })
}
