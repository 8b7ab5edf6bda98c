//! `holdfast sign --all-hosts` and `holdfast golden approvals`: image approvals for all hosts.
//!
//! In: an image's version, and what hosts report of it. Out: one approval, signed and submitted once; and which hosts
//! admitted it. Deliberately absent: every other verb. Its type has no place for one.

use std::path::{Path, PathBuf};

use holdfast_protocol::id::{GoldenVersion, JobId};
use holdfast_protocol::image_approval::{ImageApprovalDetail, ImageApprovalSubmit, ImageApprovalView};
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::job::{ImageApproval, SignedJob};
use holdfast_protocol::operator::HostDetail;
use holdfast_trust::signature::Namespace;
use serde::Serialize;
use serde_json::json;

use super::image_builds::{self, DifferenceKnown};
use crate::args::{ApprovalArgs, SignArgs};
use crate::cmd_errors::ApprovalError;
use crate::error::CliError;
use crate::hub::{Hub, HubError, WHOLE};
use crate::job_draft;
use crate::job_file::{self, JobFile, JobFileError, Overwrite};
use crate::screen::Screen;
use crate::{clock, keygen, prompt, render};

/// A signed approval: the document for programs.
#[derive(Debug, Serialize)]
struct SignedApproval {
    job: JobId,
    version: GoldenVersion,
    sha256: Sha256Text,
    expires_at: String,
    keys: Vec<String>,
    file: PathBuf,
    submitted: bool,
}

/// Signs an image for all hosts.
pub async fn sign(args: &SignArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let hosts = image_builds::all_hosts(hub).await?;
    let (mut blob, file) = match (&args.also, &args.golden) {
        (Some(path), _) => (JobFile::read_as(path, ImageApproval::parse)?.0, path.clone()),
        (None, Some(version)) => {
            let approval = approval(args, version, &hosts)?;
            let file = args.out.clone();
            let file = file.unwrap_or_else(|| PathBuf::from(format!("holdfast-{}.json", approval.job_id)));
            (unsigned(approval)?, file)
        }
        // clap demands one of them.
        (None, None) => return Err(ApprovalError::NoImage.into()),
    };
    let approval = &blob.payload;
    let known = if args.although_builds_differ { DifferenceKnown::Yes } else { DifferenceKnown::No };
    let builds = image_builds::builds_of(approval.sha256.as_str(), &hosts, known)?;
    let page = render::approval::to_sign(approval, hosts.len(), clock::now());
    screen.before_question(&(page + &builds));
    let question = "\nThis holds for all hosts. Type the image's version to sign for it:";
    prompt::name(approval.version.as_str(), question, args.key.confirm.as_deref())?;
    let signature = keygen::sign(&blob.job.payload, &args.key.key, Namespace::Job)?;
    blob.add(signature.armoured, signature.key)?;
    let over = if args.also.is_some() { Overwrite::SameFile } else { Overwrite::Never };
    let text = blob.text()?;
    job_file::write(&file, &text, over)?;
    if args.submit {
        submit(hub, blob.payload.job_id, text).await?;
    }
    show(&blob, file, args.submit, screen)
}

fn approval(
    args: &SignArgs,
    version: &GoldenVersion,
    hosts: &[HostDetail],
) -> Result<ImageApproval, CliError> {
    let sha256 = match &args.sha256 {
        Some(sha256) => sha256.clone(),
        None => digest(version, hosts)?,
    };
    let reason = args.reason.clone().ok_or(CliError::Reason("an approval says why"))?;
    Ok(job_draft::image_approval((version.clone(), sha256), args.days, reason, clock::now())?)
}

/// The one digest that hosts report of a version.
fn digest(version: &GoldenVersion, hosts: &[HostDetail]) -> Result<Sha256Text, ApprovalError> {
    let found = image_builds::digests(version, hosts);
    let mut digests = found.keys();
    match (digests.next(), digests.next()) {
        (Some(one), None) => Sha256Text::try_from(one.clone())
            .map_err(|_| ApprovalError::NotReported { version: version.clone() }),
        (None, _) => Err(ApprovalError::NotReported { version: version.clone() }),
        (Some(_), Some(_)) => {
            let line = |(digest, hosts): (&String, &Vec<String>)| format!("  {digest}  {}", hosts.join(", "));
            let list: Vec<String> = found.iter().map(line).collect();
            Err(ApprovalError::ManyImages { version: version.clone(), list: list.join("\n") })
        }
    }
}

/// The bytes that will be signed.
fn unsigned(approval: ImageApproval) -> Result<JobFile<ImageApproval>, JobFileError> {
    let payload = approval.to_json().map_err(JobFileError::Unwritable)?.into_bytes();
    let job = SignedJob { payload, signatures: Vec::new(), consents: Vec::new() };
    Ok(JobFile { job, payload: approval, keys: Vec::new() })
}

async fn submit(hub: &Hub, job: JobId, blob: String) -> Result<ImageApprovalView, HubError> {
    hub.post(&["v1", "image-approvals"], &ImageApprovalSubmit { job, blob }).await
}

fn show(
    blob: &JobFile<ImageApproval>,
    file: PathBuf,
    submitted: bool,
    screen: &Screen,
) -> Result<(), CliError> {
    let approval = &blob.payload;
    let signed = SignedApproval {
        job: approval.job_id,
        version: approval.version.clone(),
        sha256: approval.sha256.clone(),
        expires_at: approval.expires_at.to_string(),
        keys: blob.keys.iter().map(holdfast_trust::OperatorKey::fingerprint).collect(),
        file,
        submitted,
    };
    screen.show(&signed, |signed, _| {
        let (count, file) = (signed.keys.len(), signed.file.display());
        let signatures = if count == 1 { "1 signature".to_owned() } else { format!("{count} signatures") };
        let next = if signed.submitted {
            format!(
                "Submitted for all hosts. See who admitted it with `holdfast golden approvals {}`.",
                signed.job
            )
        } else {
            format!(
                "Submit it with `holdfast golden submit {file}`, or have another operator sign it too: \
                 `holdfast sign --all-hosts --also {file} --key KEY`."
            )
        };
        format!("Signed ({signatures}) and written to {file}.\n{next}\n")
    })
}

/// Submits a file.
pub async fn submit_file(file: &Path, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let (blob, text) = JobFile::read_as(file, ImageApproval::parse)?;
    let view = submit(hub, blob.payload.job_id, text).await?;
    screen.show(&vec![view], |views, style| render::approval::list(views, clock::now(), style))
}

/// Shows all of them, or each host of one.
pub async fn list(args: ApprovalArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let all: Vec<ImageApprovalView> = hub.list(&["v1", "image-approvals"], &[], WHOLE).await?;
    let Some(asked) = &args.job else {
        return screen.show(&all, |views, style| render::approval::list(views, clock::now(), style));
    };
    let id = find(&all, asked)?.to_string();
    let detail: ImageApprovalDetail = hub.get(&["v1", "image-approvals", &id]).await?;
    if let Some(path) = &args.save {
        job_file::write(path, &detail.blob, Overwrite::Never)?;
    }
    screen.show(&detail, |detail, style| render::approval::hosts(detail, clock::now(), style))
}

/// Takes one back from the hosts that have not seen it.
pub async fn withdraw(asked: &str, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let all: Vec<ImageApprovalView> = hub.list(&["v1", "image-approvals"], &[], WHOLE).await?;
    let id = find(&all, asked)?.to_string();
    let view: ImageApprovalView = hub.post(&["v1", "image-approvals", &id, "withdraw"], &json!({})).await?;
    screen.show(&vec![view], |views, style| render::approval::list(views, clock::now(), style))
}

/// By its id, or by how that begins where only one does.
fn find(all: &[ImageApprovalView], asked: &str) -> Result<JobId, ApprovalError> {
    let is = |id: JobId| asked.len() >= 4 && id.to_string().starts_with(asked);
    let mut found = all.iter().map(|view| view.id).filter(|id| is(*id));
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        _ => Err(ApprovalError::Unknown { asked: asked.to_owned() }),
    }
}
