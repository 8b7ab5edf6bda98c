//! Pages of signed jobs, before and after signing.

use holdfast_protocol::id::HostName;
use holdfast_protocol::job::act::ReleaseKind;
use holdfast_protocol::job::{Act, JobReport, JobState, Payload, Target};
use holdfast_protocol::operator::{HostDetail, JobView, QueueState};
use holdfast_protocol::protection::compare;
use holdfast_protocol::report::{Running, WaitingForSignature};
use holdfast_protocol::storage::{Approval, Backend};
use jiff::Timestamp;

use super::guest_job::objections;
use super::table::{Field, NOTHING, Tone, list, plain, table};
use super::time::{ago, stamp, when};
use crate::job_file::JobFile;
use crate::screen::Style;

/// What a person must see before they sign. All that binds is read from the payload; what the host or hub only says is
/// marked as theirs.
pub fn to_sign(
    payload: &Payload,
    detail: &HostDetail,
    said: Option<&WaitingForSignature>,
    now: Timestamp,
) -> String {
    let mut pairs = act(payload);
    if let Target::Guest { uid, .. } = &payload.target {
        let report = detail.sections.guests.iter().flatten().find(|guest| guest.uid == Some(*uid));
        let run = report.map_or("not reported", |guest| match guest.run {
            Running::Running => "yes, it runs now",
            Running::Stopped => "no, it is stopped",
            Running::Unknown => "unknown to the host",
        });
        pairs.push(("Runs", run.to_owned()));
    }
    if let Some(said) = said {
        let never = |what: &str| format!("never: {what}");
        let backup = said.last_backup.map_or_else(|| never("no backup of it is known"), |at| when(at, now));
        let proof = said
            .last_proof
            .map_or_else(|| never("no backup of it was proved by a restore"), |at| when(at, now));
        if said.guest.is_some() {
            pairs.extend([("Last backup", backup), ("Last proof", proof)]);
        }
        pairs.push(("The host says", format!("{}: {}", said.effect, said.reason)));
    }
    pairs.extend(order(payload, &detail.host.name, now));
    list(&pairs)
}

/// A storage target, whole: it is the place to which data would flow.
fn target(title: &'static str, approval: &Approval) -> Vec<(&'static str, String)> {
    let Approval { name, backend, class, role, creds } = approval;
    let mut pairs = vec![(title, format!("{name} ({}): {backend}", backend.kind()))];
    pairs.push(("", format!("{class}, for {role}")));
    if let Backend::Pbs { fingerprint, key, .. } = backend {
        pairs.push(("", format!("server's certificate {fingerprint}")));
        pairs.push(("", format!("backups encrypted with {key}")));
    }
    pairs.extend(creds.iter().map(|hash| ("", format!("sealed credentials {}", hash.as_str()))));
    pairs
}

/// The action of a job and its target.
fn act(payload: &Payload) -> Vec<(&'static str, String)> {
    let mut pairs = vec![("Sign for", payload.act.verb().as_str().to_owned())];
    if let Target::Guest { uid, vmid, fingerprint } = &payload.target {
        pairs.push(("Guest", fingerprint.name.to_string()));
        pairs.extend(fingerprint.customer.iter().map(|customer| ("Customer", customer.to_string())));
        pairs.push(("VMID", vmid.map_or_else(|| "none".to_owned(), |vmid| vmid.to_string())));
        pairs.push(("Uid", uid.to_string()));
        let mut volumes = fingerprint.volumes.iter();
        pairs.push(("Volumes", volumes.next().cloned().unwrap_or_else(|| "none".to_owned())));
        pairs.extend(volumes.map(|volume| ("", volume.clone())));
    }
    match &payload.act {
        Act::DestroyGuest(_) => {}
        Act::DiscardCopy(args) => {
            let copy = &args.copy;
            pairs.push(("Destroys", format!("{}, VMID {}", copy.fingerprint.name, copy.vmid)));
            pairs.extend(copy.fingerprint.volumes.iter().map(|volume| ("", volume.clone())));
            pairs.push((
                "Then",
                "what is on these volumes is gone; the guest itself is not touched".to_owned(),
            ));
        }
        Act::DeleteBackup(args) => {
            pairs.push(("Deletes", args.archive.as_str().to_owned()));
            pairs.extend(listed("Loses", args.loses.iter().map(|loss| loss.as_str().to_owned()).collect()));
            pairs.push(("Then", "the backup is gone for good".to_owned()));
        }
        Act::BackupNow(args) => pairs.extend(args.tier.map(|tier| ("Tier", tier.to_string()))),
        Act::RestoreTest(args) => {
            let tier = args.tier.map_or_else(|| "the newest of any tier".to_owned(), |tier| tier.to_string());
            pairs.push(("Tries", tier));
        }
        Act::WithdrawRestore(args) => {
            pairs.push(("Takes back", format!("order {}", args.order.as_str())));
            pairs.push(("Then", "no machine becomes this host by that order".to_owned()));
        }
        Act::RestoreHost(args) => {
            pairs.extend(args.new_key.map(|key| ("New box's key", key.to_string())));
            pairs
                .push(("Then", "a new machine becomes this host, and the old one stops for good".to_owned()));
        }
        Act::AttachStorage(args) => {
            pairs.extend(args.from.iter().flat_map(|from| target("In force", from)));
            pairs.extend(target("Storage", &args.to));
        }
        Act::DetachStorage(args) => {
            pairs.extend(target("Lets go", &args.from));
            pairs.push(("Then it is", args.to.as_str().to_owned()));
        }
        Act::AllowGrowth(args) => {
            pairs.push(("Guest", args.name.to_string()));
            pairs.push(("Uid", args.guest.to_string()));
            pairs.extend(listed("Is now", args.from.as_ref().map(|from| from.lines()).unwrap_or_default()));
            pairs.extend(listed("May become", args.to.lines()));
        }
        Act::AdoptGuest(args) => {
            pairs.push(("Customer", args.customer.to_string()));
            pairs.push(("Golden", args.golden.to_string()));
        }
        Act::ReassignVolume(args) => {
            pairs.push(("Hands over", args.volume.as_str().to_owned()));
            pairs.push(("To guest", args.to.fingerprint.name.to_string()));
            pairs.push(("", format!("VMID {}, uid {}", args.to.vmid, args.to.uid)));
            pairs.extend(args.to.fingerprint.volumes.iter().map(|volume| ("", volume.clone())));
        }
        Act::RebaseGuest(args) => {
            pairs.push(("Onto golden", args.version.to_string()));
            pairs.push(("SHA-256", args.sha256.as_str().to_owned()));
            pairs.push(("Down", "the guest is down for the time of the exchange".to_owned()));
            pairs.push((
                "Moves over",
                "every volume above but the root disk, with the path of its mount".to_owned(),
            ));
            let name = match &payload.target {
                Target::Guest { fingerprint, .. } => fingerprint.name.as_str(),
                Target::Host {} => NOTHING,
            };
            pairs.push((
                "Stays behind",
                "all that was written to the root disk outside of volumes".to_owned(),
            ));
            pairs.extend(super::root_disk::signed(&args.leaves).into_iter().map(|line| ("", line)));
            pairs.push((
                "",
                format!("with {name}-former: kept, stopped and unplugged, until a person removes it"),
            ));
        }
        Act::ApproveRelease(args) => {
            let kind = match args.kind {
                ReleaseKind::Controller => "controller",
                ReleaseKind::Golden => "golden",
            };
            pairs.push(("Release", format!("{kind} {}", args.version.as_str())));
            pairs.push(("SHA-256", args.sha256.as_str().to_owned()));
        }
        Act::BreakGlass(args) => {
            pairs.push(("Opens way", args.way.to_string()));
            pairs.push(("For", format!("{} minutes from its opening", args.minutes.minutes())));
            let key = args.key.as_ref().map_or("the key that root's settings name", |key| key.as_str());
            pairs.push(("Lets in", key.to_owned()));
            pairs.extend(listed("Customers", args.customers.iter().map(ToString::to_string).collect()));
            pairs.push((
                "Then",
                "a person has root on the host, recorded, and can read what is not sealed".to_owned(),
            ));
        }
        Act::SetTunnelToken(args) => {
            pairs.push(("Tunnel", args.tunnel.to_string()));
            let digest = args.sealed.digest().map(String::from).unwrap_or_default();
            pairs.push(("Token", format!("sealed, SHA-256 {digest}")));
            let copies = args.copies.iter().count();
            pairs.extend((copies > 0).then(|| ("Copies", format!("{copies}, sealed for operators"))));
            pairs.push(("Then", "its service is restarted with the new token".to_owned()));
        }
        Act::Cancel(args) => pairs.push(("Job", args.job.to_string())),
        Act::LoosenPolicy(args) => {
            pairs.extend(listed("In force", args.from.lines()));
            pairs.extend(listed("Then", args.to.lines()));
            let loosened = compare(&args.from, &args.to).loosened;
            pairs.extend(listed("Weaker", loosened.iter().map(ToString::to_string).collect()));
        }
        Act::PolicyUpdate(args) => {
            pairs.extend(lines("Operators", &args.signers));
            pairs.extend(lines("Policy", &args.policy));
            // What the host's own policy says of it is not known here.
            pairs.push((
                "Waits",
                "24 h if one operator signs alone and another could, 10 min if two sign".to_owned(),
            ));
            pairs.push((
                "",
                "the same file (`--also`) before it is left; unless the host's policy says".to_owned(),
            ));
            pairs.push(("", "otherwise. `holdfast job cancel` stops it meanwhile".to_owned()));
        }
        Act::ReleaseBrake(args) => {
            pairs.push(("Document", format!("generation {}", args.generation)));
            pairs.extend(args.document.iter().map(|sha256| ("", format!("content {}", sha256.as_str()))));
            for change in &args.changes {
                let text = format!("{} {} ({})", change.operation.as_str(), change.name, change.guest);
                pairs.push(("Lets pass", text));
            }
        }
        Act::Restore(args) => pairs.push(("Archive", args.archive.as_str().to_owned())),
        Act::SwapGuest(args) => {
            let copy = &args.copy;
            pairs.push(("Its place takes", copy.fingerprint.name.to_string()));
            pairs.push(("", format!("VMID {}", copy.vmid)));
            pairs.extend(copy.fingerprint.volumes.iter().map(|volume| ("", volume.clone())));
            let left = args.leaves.iter().map(|volume| volume.as_str().to_owned()).collect();
            pairs.extend(listed("Stays behind", left));
            pairs.push((
                "Then",
                "the guest is set aside: kept under its VMID, stopped, without network".to_owned(),
            ));
        }
        Act::Rollback(args) => pairs.push(("Snapshot", args.snapshot.to_string())),
    }
    pairs
}

/// Several lines, the first under the name.
fn listed(name: &'static str, lines: Vec<String>) -> Vec<(&'static str, String)> {
    if lines.is_empty() {
        return vec![(name, "nothing".to_owned())];
    }
    let place = |n| if n == 0 { name } else { "" };
    lines.into_iter().enumerate().map(|(n, line)| (place(n), line)).collect()
}

/// A file, line by line, its first under the name.
fn lines(name: &'static str, text: &str) -> Vec<(&'static str, String)> {
    let place = |n| if n == 0 { name } else { "" };
    text.lines().enumerate().map(|(n, line)| (place(n), line.to_owned())).collect()
}

/// Who ordered it, for which host, and how long it is valid.
fn order(payload: &Payload, host: &HostName, now: Timestamp) -> Vec<(&'static str, String)> {
    let name = payload.host.as_ref().map_or(host, |seen| &seen.name);
    let mut pairs = vec![("Host", format!("{name} ({}), epoch {}", payload.host_id, payload.host_epoch))];
    pairs.extend(payload.host.iter().map(|seen| ("Fingerprint", seen.fingerprint.to_string())));
    pairs.extend([
        ("Until", when(payload.expires_at.at(), now)),
        ("Reason", payload.reason.as_str().to_owned()),
        ("Job", payload.job_id.to_string()),
    ]);
    pairs
}

const HEADER: [&str; 7] = ["JOB", "HOST", "STATE", "WHAT", "BY", "LEFT", "NOTES"];

/// Jobs, in the order given.
pub fn jobs(jobs: &[(&HostName, &JobView)], now: Timestamp, style: Style) -> String {
    if jobs.is_empty() {
        return "No signed job. `holdfast sign HOST` signs what waits.\n".to_owned();
    }
    let rows = jobs.iter().map(|(host, job)| {
        let report = job.report.as_ref();
        let what = report.and_then(|report| report.verb).map_or(NOTHING, |verb| verb.as_str());
        vec![
            plain(job.id),
            plain(host),
            state(job),
            plain(what),
            plain(&job.by),
            plain(ago(job.submitted_at, now)),
            remark(job, now),
        ]
    });
    table(&HEADER, rows, style)
}

fn state(job: &JobView) -> Field {
    let (word, tone) = match (job.queue_state, job.report.as_ref().map(|report| report.state)) {
        (QueueState::Withdrawn, _) => ("withdrawn", Tone::Plain),
        (_, Some(state)) => (words(state), tone(state)),
        (_, None) => ("on its way", Tone::Look),
    };
    (word.to_owned(), tone)
}

pub(super) const fn words(state: JobState) -> &'static str {
    match state {
        JobState::Refused => "refused",
        JobState::Waiting => "waiting",
        JobState::UnderWay => "under way",
        JobState::Done => "done",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    }
}

pub(super) const fn tone(state: JobState) -> Tone {
    match state {
        JobState::Refused | JobState::Failed => Tone::Bad,
        JobState::Waiting | JobState::UnderWay => Tone::Look,
        JobState::Done => Tone::Good,
        JobState::Cancelled => Tone::Plain,
    }
}

/// An objection comes before what the host says: somebody must decide while the job waits.
fn remark(job: &JobView, now: Timestamp) -> Field {
    let said = job.report.as_ref().map_or_else(|| NOTHING.to_owned(), |report| notes(report, now));
    if job.objections.is_empty() {
        return plain(said);
    }
    let (text, tone) = objections(&job.objections);
    (format!("objection: {text}; {said}"), tone)
}

pub(super) fn notes(report: &JobReport, now: Timestamp) -> String {
    if let Some(problem) = &report.problem {
        return problem.to_string();
    }
    match (report.state, report.due_at) {
        (JobState::Waiting, Some(due)) if due > now => format!("begins {}", ago(due, now)),
        (JobState::Waiting, _) => "waits for its guest's lane".to_owned(),
        _ => NOTHING.to_owned(),
    }
}

/// One line with the state of a job, for a person who watches it.
pub fn line(job: &JobView, now: Timestamp) -> String {
    let word = state(job).0;
    let notes = job.report.as_ref().map(|report| notes(report, now)).filter(|notes| notes != NOTHING);
    notes.map_or_else(|| word.clone(), |notes| format!("{word}: {notes}"))
}

/// One job: what is in it as far as its bytes say, and what its host says became of it.
pub fn detail(host: &HostName, job: &JobView, blob: Option<&JobFile>, now: Timestamp) -> String {
    let mut pairs = Vec::new();
    match blob {
        Some(blob) => {
            pairs.extend(act(&blob.payload));
            pairs.extend(order(&blob.payload, host, now));
            pairs.extend(blob.keys.iter().map(|key| ("Signed with", key.fingerprint())));
        }
        None => {
            pairs.push(("Job", format!("{} (its bytes are no signed job that this holdfast reads)", job.id)))
        }
    }
    pairs.push(("Left", format!("{} by {}, {} bytes", when(job.submitted_at, now), job.by, job.bytes)));
    pairs.push(("State", line(job, now)));
    for objection in &job.objections {
        let (by, at) = (&objection.by, when(objection.at, now));
        pairs.push(("Objection", format!("{} ({by}, {at})", objection.reason.as_str())));
    }
    pairs.extend(job.correlation_id.map(|id| ("Correlation", id.to_string())));
    if let Some(report) = &job.report {
        if !report.signers.is_empty() {
            let names: Vec<&str> = report.signers.iter().map(|name| name.as_str()).collect();
            pairs.push(("Signers", names.join(", ")));
        }
        pairs.push(("Read", stamp(report.taken_at)));
        pairs.extend(report.operation.map(|operation| ("Operation", operation.to_string())));
        pairs.extend(report.ended_at.map(|at| ("Ended", when(at, now))));
    }
    list(&pairs)
}
