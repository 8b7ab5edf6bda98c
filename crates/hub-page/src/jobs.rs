//! Signed jobs: what waits for a signature, and what was signed.

use holdfast_protocol::job::{JobReport, JobState, SignedJob, Verb};
use holdfast_protocol::objection::{GuestJobView, ObjectionView};
use holdfast_protocol::operator::{JobDetail, JobView, QueueState};
use holdfast_protocol::report::WaitingForSignature;

use crate::RenderError;
use crate::frame::Frame;
use crate::sheet::{Command, Field, Form, Item, Link, Notice, Part, Sheet};
use crate::table::{Cell, Table};
use crate::words::{Tone, Word};

/// A host on which something waits.
pub struct WaitingOn<'a> {
    pub host: String,
    /// All of it, in the order in which `holdfast sign` counts.
    pub entries: &'a [WaitingForSignature],
}

/// What the page of all jobs is made of.
pub struct Jobs<'a> {
    /// None where the person may not see hosts.
    pub waiting: Option<&'a [WaitingOn<'a>]>,
    /// Whether more hosts have something that waits than were read.
    pub has_more_waiting: bool,
    /// One page of the jobs about guests, the newest first.
    pub jobs: &'a [GuestJobView],
    pub next: Option<&'a str>,
}

/// Jobs of all hosts.
///
/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, jobs: &Jobs<'_>) -> Result<String, RenderError> {
    let mut sheet = Sheet::new("Jobs").with_next(jobs.next, &[]);
    if let Some(waiting) = jobs.waiting {
        let items =
            waiting.iter().flat_map(|on| on.entries.iter().zip(1..).map(|(one, n)| entry(frame, on, one, n)));
        let mut part = Part::new("waiting", "Waits for a signature");
        part.items = items.collect();
        part.note = Some(if part.items.is_empty() {
            "Nothing waits for a signature.".to_owned()
        } else if jobs.has_more_waiting {
            "Sign on your own machine, where your key is (--key FILE or HOLDFAST_KEY). More hosts have something that \
             waits than are shown: holdfast host list --filter @attention-some."
                .to_owned()
        } else {
            "Sign on your own machine, where your key is (--key FILE or HOLDFAST_KEY).".to_owned()
        });
        sheet.parts.push(part);
    }
    let open: Vec<&GuestJobView> = jobs.jobs.iter().filter(|job| !job.state.is_end()).collect();
    if !open.is_empty() {
        let mut part = Part::new("open", "Signed, and not over");
        part.items = open.into_iter().map(|job| open_job(frame, job, None)).collect();
        sheet.parts.push(part);
    }
    let heads = ["Job", "Host", "Guest", "What", "State", "Taken", "Ended", "Objections"];
    let rows = jobs.jobs.iter().map(|job| {
        [
            Cell::link_where(job_page(frame, job), job.id),
            Cell::link_where(frame.host_page(&job.host), &job.host),
            Cell::link(format!("/hosts/{}/guests/{}", job.host, job.guest), job.guest),
            Cell::or_dash(job.verb.map(words_of)),
            Cell::state(state(job.state)),
            Cell::when(frame.when(job.taken_at)),
            Cell::when_or(job.ended_at.map(|at| frame.when(at)), "not yet"),
            Cell::number(job.objections.len()),
        ]
    });
    let table = Table::new("Jobs about guests", heads, rows);
    sheet.parts.push(Part::of_table("jobs", "Jobs about guests", table, "No job about a guest was signed."));
    sheet.render(frame)
}

fn job_page(frame: &Frame, job: &GuestJobView) -> Option<String> {
    frame.has_hosts().then(|| format!("/hosts/{}/jobs/{}", job.host, job.id))
}

fn entry(frame: &Frame, on: &WaitingOn<'_>, one: &WaitingForSignature, number: usize) -> Item {
    let head = vec![Cell::link_where(frame.host_page(&on.host), &on.host), Cell::text(&one.effect)];
    let mut item = Item::new(Word::new("waits", Tone::Warning), head);
    let last = one.last_backup.map(|at| format!("Newest backup {}.", frame.when(at).age));
    let proof = one.last_proof.map(|at| format!("Last proved by a restore {}.", frame.when(at).age));
    item.lines = std::iter::once(one.reason.clone()).chain(last).chain(proof).collect();
    if !one.payload.is_empty() {
        let which = if on.entries.len() > 1 { format!(" {number}") } else { String::new() };
        item.command = Some(Command::new(format!("holdfast sign {}{which}", on.host)));
        item.folded = Some(("What would be signed", one.payload.clone()));
    }
    item
}

/// `name` is the guest's, where it is known.
pub(crate) fn open_job(frame: &Frame, job: &GuestJobView, name: Option<&str>) -> Item {
    let what = job.verb.map_or_else(|| "a job".to_owned(), words_of);
    let head = vec![
        Cell::link_where(job_page(frame, job), what),
        Cell::text(match name {
            Some(name) => format!("{name} on {}", job.host),
            None => format!("guest {} on {}", job.guest, job.host),
        }),
    ];
    let mut item = Item::new(state(job.state), head);
    item.lines.extend(job.due_at.map(|at| format!("Its delay ends at {}.", frame.when(at).exact)));
    item.lines.extend(job.objections.iter().map(|one| objection(frame, one)));
    if job.state == JobState::Waiting {
        item.remedy =
            Some("An objection is a message to the operators. It stops nothing by itself: one of them signs a cancel.".to_owned());
        let field = Field::text("reason", "Object, because", "").required().with_hint("a sentence");
        let id = format!("object-{}", job.id);
        item.form = Some(Form::new(&id, format!("/jobs/{}/objection", job.id), "Object", vec![field]));
    }
    item
}

/// What a job does, as words.
fn words_of(verb: Verb) -> String {
    verb.as_str().replace('_', " ")
}

fn objection(frame: &Frame, one: &ObjectionView) -> String {
    format!("{} objects ({}): {}", one.by, frame.when(one.at).age, one.reason.as_str())
}

/// Jobs of one host.
///
/// # Errors
/// [`RenderError`].
pub fn of_host(
    frame: &Frame,
    host: &str,
    jobs: &[JobView],
    next: Option<&str>,
) -> Result<String, RenderError> {
    let heads = ["Job", "What", "State", "Signed by", "Left by", "Left", "Ended"];
    let rows = jobs.iter().map(|job| {
        let report = job.report.as_ref();
        [
            Cell::link(format!("/hosts/{host}/jobs/{}", job.id), job.id),
            Cell::or_dash(report.and_then(|report| report.verb).map(words_of)),
            Cell::state(progress(job)),
            Cell::text(report.map(signers).unwrap_or_default()),
            Cell::text(&job.by),
            Cell::when(frame.when(job.submitted_at)),
            Cell::when_or(report.and_then(|report| report.ended_at).map(|at| frame.when(at)), "not yet"),
        ]
    });
    let mut sheet = Sheet::new(format!("Jobs of {host}")).with_next(next, &[]);
    sheet.up = Some(Link::new(format!("/hosts/{host}"), host));
    let table = Table::new("Jobs", heads, rows);
    sheet.parts.push(Part::of_table("jobs", "", table, "No signed job was left for this host."));
    sheet.render(frame)
}

/// One job.
///
/// # Errors
/// [`RenderError`].
pub fn one(frame: &Frame, host: &str, detail: &JobDetail, notice: Notice<'_>) -> Result<String, RenderError> {
    let job = &detail.job;
    let mut sheet = Sheet::new(format!("Job {}", job.id)).with_notice(notice);
    sheet.up = Some(Link::new(format!("/hosts/{host}/jobs"), format!("Jobs of {host}")));
    sheet.state = Some(progress(job));
    sheet.facts = facts(frame, job);
    if let Some(problem) = job.report.as_ref().and_then(|report| report.problem.as_ref()) {
        let mut part = Part::new("problem", "Why not");
        part.note = Some(format!("{} ({})", problem.message, problem.code.as_str()));
        sheet.parts.push(part);
    }
    if !job.objections.is_empty() {
        let mut part = Part::new("objections", "Objections");
        part.text =
            Some(job.objections.iter().map(|one| objection(frame, one)).collect::<Vec<_>>().join("\n"));
        sheet.parts.push(part);
    }
    let mut part = Part::new("lines", "On your own machine");
    part.commands.push(Command::new(format!("holdfast job show {host} {}", job.id)));
    if !job.report.as_ref().is_some_and(|report| report.state.is_end())
        && job.queue_state != QueueState::Withdrawn
    {
        part.commands.push(Command::new(format!("holdfast job cancel {host} {}", job.id)));
    }
    sheet.parts.push(part);
    if job.queue_state == QueueState::Queued && frame.may_change() {
        let mut part = Part::new("withdraw", "Withdraw");
        part.note = Some("The host has not taken it yet: withdrawn, it never does.".to_owned());
        let action = format!("/hosts/{host}/jobs/{}/withdraw", job.id);
        part.forms.push(Form::new("withdraw", action, "Withdraw the job", Vec::new()));
        sheet.parts.push(part);
    }
    let mut part = Part::new("signed", "What was signed");
    part.text = Some(match SignedJob::parse(detail.blob.as_bytes()) {
        Ok(signed) => String::from_utf8_lossy(&signed.payload).into_owned(),
        Err(_) => detail.blob.clone(),
    });
    sheet.parts.push(part);
    sheet.render(frame)
}

fn facts(frame: &Frame, job: &JobView) -> Vec<(&'static str, Cell)> {
    let mut facts = vec![
        ("Left by", Cell::text(&job.by)),
        ("Left", Cell::when(frame.when(job.submitted_at))),
        ("Length", Cell::text(format!("{} bytes", job.bytes))),
    ];
    let Some(report) = &job.report else { return facts };
    facts.extend(report.verb.map(|verb| ("What", Cell::text(words_of(verb)))));
    facts.extend(report.guest.map(|guest| ("Guest", Cell::code(guest))));
    facts.push(("Signed by", Cell::text(signers(report))));
    facts.push(("Taken", Cell::when(frame.when(report.taken_at))));
    facts.extend(report.due_at.map(|at| ("Delay ends", Cell::when(frame.when(at)))));
    facts.extend(report.ended_at.map(|at| ("Ended", Cell::when(frame.when(at)))));
    facts.extend(report.operation.map(|operation| ("Operation", Cell::code(operation))));
    facts
}

fn signers(report: &JobReport) -> String {
    let names: Vec<&str> = report.signers.iter().map(|name| name.as_str()).collect();
    names.join(", ")
}

/// How far a job is, by its host where that has spoken.
fn progress(job: &JobView) -> Word {
    match (&job.report, job.queue_state) {
        (Some(report), _) => state(report.state),
        (None, QueueState::Queued) => Word::new("on its way", Tone::Warning),
        (None, QueueState::Answered) => Word::new("answered", Tone::Plain),
        (None, QueueState::Withdrawn) => Word::new("withdrawn", Tone::Plain),
    }
}

pub(crate) fn state(state: JobState) -> Word {
    let tone = match state {
        JobState::Done => Tone::Good,
        JobState::UnderWay | JobState::Cancelled => Tone::Plain,
        JobState::Waiting => Tone::Warning,
        JobState::Refused | JobState::Failed => Tone::Bad,
    };
    Word::new(state.as_str().replace('_', " "), tone)
}
