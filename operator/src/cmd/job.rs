//! `holdfast job`: submits, follows and cancels signed jobs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{HostName, JobId};
use holdfast_protocol::job::act::{Act, args};
use holdfast_protocol::job::{Draft, JobState, Payload, SignedJob, Target};
use holdfast_protocol::objection::ObjectionRequest;
use holdfast_protocol::operator::{
    HostDetail, HostState, HostView, JobDetail, JobSubmit, JobView, QueueState,
};
use holdfast_trust::signature::Namespace;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::guest_job;
use crate::args::{CancelArgs, JobCommand};
use crate::error::CliError;
use crate::hub::{Hub, HubError, WHOLE};
use crate::job_draft;
use crate::job_file::{self, JobFile, JobFileError, Overwrite};
use crate::pins::CheckedHost;
use crate::screen::Screen;
use crate::{clock, keygen, render};

/// The agent reports a change within a second.
const POLL: Duration = Duration::from_millis(500);

/// A job with its host: the document for programs.
#[derive(Debug, Serialize)]
struct OnHost {
    host: HostName,
    #[serde(flatten)]
    job: JobView,
}

pub async fn run(command: JobCommand, hub: &Hub, folder: &Path, screen: &Screen) -> Result<(), CliError> {
    match command {
        JobCommand::Submit { host, file } => {
            let (blob, text) = JobFile::read(&file)?;
            let detail: HostDetail = hub.get(&["v1", "hosts", &host]).await?;
            if blob.payload.host_id != detail.host.id {
                let (found, wanted) = (detail.host.id.to_string(), blob.payload.host_id.to_string());
                return Err(CliError::OtherHost { host, found, wanted });
            }
            let job = submit(hub, &detail, &blob.payload, text).await?;
            show_one(detail.host.name, job, screen)
        }
        JobCommand::List { host } => list(hub, host, screen).await,
        JobCommand::Show { host, job, save } => {
            let (name, id) = find(hub, &host, &job).await?;
            let found: JobDetail = hub.get(&["v1", "hosts", &host, "jobs", &id.to_string()]).await?;
            if let Some(path) = save {
                job_file::write(&path, &found.blob, Overwrite::Never)?;
            }
            let read = JobFile::parse(found.blob.as_bytes(), "what the hub holds").ok();
            screen
                .show(&found, |found, _| render::job::detail(&name, &found.job, read.as_ref(), clock::now()))
        }
        JobCommand::Watch { host, job, timeout } => watch(hub, &host, &job, timeout, screen).await,
        JobCommand::Payload { file, out } => payload(&file, &out, screen),
        JobCommand::Consent { file, consents } => consent(&file, &consents, screen),
        JobCommand::Guests => guest_job::list(hub, screen).await,
        JobCommand::Object { job, reason } => {
            guest_job::object(&job.to_string(), &ObjectionRequest { reason }, hub, screen).await
        }
        JobCommand::Cancel(args) => cancel(hub, args, folder, screen).await,
    }
}

/// A file that was written for a job: the document for programs.
#[derive(Debug, Serialize)]
struct Written {
    job: JobId,
    file: PathBuf,
    consents: usize,
}

/// The bytes that a customer consents to: exactly those that operators signed.
fn payload(file: &Path, out: &Path, screen: &Screen) -> Result<(), CliError> {
    let (blob, _) = JobFile::read(file)?;
    let text = String::from_utf8_lossy(&blob.job.payload);
    job_file::write(out, &text, Overwrite::Never)?;
    let written =
        Written { job: blob.payload.job_id, file: out.to_owned(), consents: blob.job.consents.len() };
    screen.show(&written, |written, _| {
        let out = written.file.display();
        format!(
            "Written to {out}. A customer reads it and consents with\n  ssh-keygen -Y sign -n holdfast-consent -f KEY {out}\n\
             Add the signature with `holdfast job consent {} {out}.sig`.\n",
            file.display()
        )
    })
}

fn consent(file: &Path, consents: &[PathBuf], screen: &Screen) -> Result<(), CliError> {
    let (mut blob, _) = JobFile::read(file)?;
    for path in consents {
        let key = blob.add_consent(job_file::consent(path)?, path)?;
        screen.note(&format!("{}: signed with {}", path.display(), key.fingerprint()));
    }
    job_file::write(file, &blob.text()?, Overwrite::SameFile)?;
    let consents = blob.job.consents.len();
    let written = Written { job: blob.payload.job_id, file: file.to_owned(), consents };
    screen.show(&written, |written, _| {
        format!(
            "{} has {} consents now. The host compares their keys with its own.\n",
            written.file.display(),
            written.consents
        )
    })
}

/// Leaves a signed job with the hub.
pub async fn submit(
    hub: &Hub,
    detail: &HostDetail,
    payload: &Payload,
    blob: String,
) -> Result<JobView, HubError> {
    let id = detail.host.id.to_string();
    let tunnel = match &payload.act {
        Act::SetTunnelToken(args) => Some(args.tunnel.clone()),
        _ => None,
    };
    hub.post(&["v1", "hosts", &id, "jobs"], &JobSubmit { job: payload.job_id, blob, tunnel }).await
}

fn show_one(host: HostName, job: JobView, screen: &Screen) -> Result<(), CliError> {
    screen.show(&OnHost { host, job }, |on_host, style| {
        render::job::jobs(&[(&on_host.host, &on_host.job)], clock::now(), style)
    })
}

async fn list(hub: &Hub, host: Option<String>, screen: &Screen) -> Result<(), CliError> {
    let hosts: Vec<(HostName, String)> = match host {
        Some(host) => {
            let detail: HostDetail = hub.get(&["v1", "hosts", &host]).await?;
            vec![(detail.host.name, detail.host.id.to_string())]
        }
        None => {
            let all: Vec<HostView> = hub.list(&["v1", "hosts"], &[], WHOLE).await?;
            let kept = all.into_iter().filter(|host| host.state != HostState::Revoked);
            kept.map(|host| (host.name, host.id.to_string())).collect()
        }
    };
    let mut jobs = Vec::new();
    for (name, id) in hosts {
        let found: Vec<JobView> = hub.list(&["v1", "hosts", &id, "jobs"], &[], WHOLE).await?;
        jobs.extend(found.into_iter().map(|job| OnHost { host: name.clone(), job }));
    }
    jobs.sort_by_key(|on_host| std::cmp::Reverse(on_host.job.submitted_at));
    screen.show(&jobs, |jobs, style| {
        let pairs: Vec<_> = jobs.iter().map(|on_host| (&on_host.host, &on_host.job)).collect();
        render::job::jobs(&pairs, clock::now(), style)
    })
}

/// A job by its id, or by how that begins where only one does.
async fn find(hub: &Hub, host: &str, asked: &str) -> Result<(HostName, JobId), CliError> {
    let detail: HostDetail = hub.get(&["v1", "hosts", host]).await?;
    if let Ok(id) = asked.parse() {
        return Ok((detail.host.name, id));
    }
    let all: Vec<JobView> = hub.list(&["v1", "hosts", host, "jobs"], &[], WHOLE).await?;
    let mut found = all.iter().filter(|job| asked.len() >= 4 && job.id.to_string().starts_with(asked));
    match (found.next(), found.next()) {
        (Some(job), None) => Ok((detail.host.name, job.id)),
        _ => Err(CliError::NoJob { host: host.to_owned(), job: asked.to_owned() }),
    }
}

async fn watch(hub: &Hub, host: &str, job: &str, timeout_s: u64, screen: &Screen) -> Result<(), CliError> {
    let (name, id) = find(hub, host, job).await?;
    let (begin, mut said) = (Instant::now(), String::new());
    loop {
        let found: JobDetail = hub.get(&["v1", "hosts", host, "jobs", &id.to_string()]).await?;
        let job = found.job;
        // How long it still waits is no news every second.
        let changes_since =
            job.report.as_ref().map_or_else(String::new, |report| report.state.as_str().to_owned());
        if changes_since != said || said.is_empty() && begin.elapsed() < POLL {
            screen.note(&render::clean(&render::job::line(&job, clock::now())));
            said = changes_since;
        }
        let state = job.report.as_ref().map(|report| report.state);
        if job.queue_state == QueueState::Withdrawn || state.is_some_and(JobState::is_end) {
            let end = end_result(host, &job);
            show_one(name, job, screen)?;
            return end;
        }
        if begin.elapsed().as_secs() >= timeout_s {
            return Err(CliError::JobTimedOut {
                host: host.to_owned(),
                job: id.to_string(),
                seconds: timeout_s,
            });
        }
        sleep(POLL).await;
    }
}

fn end_result(host: &str, view: &JobView) -> Result<(), CliError> {
    let (host, job) = (host.to_owned(), view.id.to_string());
    let Some(report) = view.report.as_ref().filter(|_| view.queue_state != QueueState::Withdrawn) else {
        return Err(CliError::JobCancelled { host, job });
    };
    let problem =
        report.problem.as_ref().map_or_else(|| "it does not say why".to_owned(), ToString::to_string);
    match report.state {
        JobState::Refused => Err(CliError::JobRefused { host, job, problem }),
        JobState::Failed => Err(CliError::JobFailed { host, job, problem }),
        JobState::Cancelled => Err(CliError::JobCancelled { host, job }),
        JobState::Done | JobState::Waiting | JobState::UnderWay => Ok(()),
    }
}

async fn cancel(hub: &Hub, args: CancelArgs, folder: &Path, screen: &Screen) -> Result<(), CliError> {
    let (name, id) = find(hub, &args.host, &args.job).await?;
    let path = ["v1", "hosts", &args.host, "jobs", &id.to_string(), "withdraw"];
    match hub.post::<JobView>(&path, &json!({})).await {
        Ok(job) => return show_one(name, job, screen),
        // The host has it: only a signature stops it there.
        Err(HubError::Refused { problem, .. }) if problem.code == ErrorCode::UnderWay => {}
        Err(error) => return Err(error.into()),
    }
    let Some(key) = args.key else { return Err(CliError::CancelNeedsKey { host: args.host }) };
    let detail: HostDetail = hub.get(&["v1", "hosts", &args.host]).await?;
    let checked = CheckedHost::of(&detail, folder)?;
    let draft = Draft { target: Target::Host {}, act: Act::Cancel(args::Cancel { job: id }) };
    let payload = job_draft::complete(draft, &checked.shown, 1, args.reason, clock::now())?;
    if let Some(words) = checked.notice() {
        screen.before_question(&words);
    }
    checked.save(clock::now())?;
    let bytes = payload.to_json().map_err(JobFileError::Unwritable)?.into_bytes();
    let signature = keygen::sign(&bytes, &key, Namespace::Job)?;
    let signed = SignedJob { payload: bytes, signatures: vec![signature.armoured], consents: Vec::new() };
    let text = signed.to_json().map_err(JobFileError::Unwritable)?;
    screen.note(&format!(
        "{name} has job {id} already: a signed cancel, job {}, was submitted.",
        payload.job_id
    ));
    let job = submit(hub, &detail, &payload, text).await?;
    show_one(name, job, screen)
}
