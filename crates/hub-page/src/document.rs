//! Pages of a host's whole document: its text, its editor, its versions.

use askama::Template;
use holdfast_protocol::desired::DesiredDocument;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::operator::DesiredVersion;
use holdfast_protocol::resource::DocumentDiff;
use holdfast_protocol::resource::diff::volume_words;

use crate::RenderError;
use crate::edit::ProblemLine;
use crate::frame::{Frame, When};
use crate::json_text::{Line, lines};
use crate::review::{ChangeRow, rows};

/// Lines of a document on a page at most; the editor has all.
const LINES_SHOWN_MAX: usize = 5_000;

/// As many lines of a text as a page shows, and how many more there are.
fn shown(text: &str) -> (Vec<Line<'_>>, usize) {
    let mut all = lines(text);
    let left_out = all.len().saturating_sub(LINES_SHOWN_MAX);
    all.truncate(LINES_SHOWN_MAX);
    (all, left_out)
}

/// Whether the person may change the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayChange {
    Yes,
    No,
}

struct PartRow {
    name: String,
    words: String,
    path: String,
}

struct VersionHead {
    number: Generation,
    author: String,
    at: When,
    reason: String,
}

fn head(frame: &Frame, version: &DesiredVersion) -> VersionHead {
    VersionHead {
        number: version.generation,
        author: version.author.to_string(),
        at: frame.when(version.put_at),
        reason: version.reason.as_str().to_owned(),
    }
}

/// The newest document.
pub struct Newest<'a> {
    pub version: &'a DesiredVersion,
    /// The same, read; none where this hub cannot read it any more.
    pub document: Option<&'a DesiredDocument>,
}

#[derive(Template)]
#[template(path = "document.html")]
struct DocumentPage<'a> {
    frame: &'a Frame,
    host: &'a str,
    newest: Option<VersionHead>,
    held: Generation,
    may_change: bool,
    guests: Vec<PartRow>,
    policies: Vec<PartRow>,
    targets: Vec<PartRow>,
    lines: Vec<Line<'a>>,
    left_out: usize,
}

/// The document by its parts and as its text.
///
/// # Errors
/// [`RenderError`].
pub fn render(
    frame: &Frame,
    host: &str,
    newest: Option<&Newest<'_>>,
    (held, may): (Generation, MayChange),
) -> Result<String, RenderError> {
    let document = newest.and_then(|newest| newest.document);
    let part = |kind: &str, key: &str, name: &str, words: String| PartRow {
        name: name.to_owned(),
        words,
        path: format!("/hosts/{host}/{kind}/{key}"),
    };
    let guests = document.iter().flat_map(|document| &document.guests).map(|guest| {
        let size = guest.size;
        let volumes: String = guest
            .volumes
            .iter()
            .map(|volume| format!("; {} {}", volume.name, volume_words(volume)))
            .collect();
        let words = format!(
            "{}, {}, {}, {}{volumes}",
            size.cores, size.memory_mib, size.rootfs_gib, guest.network.address
        );
        part("guests", &guest.uid.to_string(), guest.name.as_str(), words)
    });
    let policies = document.iter().flat_map(|document| &document.policies).map(|policy| {
        let tiers = [
            policy.tiers.snapshot.as_ref().map(|tier| format!("snapshots {}", tier.schedule)),
            policy.tiers.local.as_ref().map(|tier| format!("local {} to {}", tier.schedule, tier.target)),
            policy
                .tiers
                .off_site
                .as_ref()
                .map(|tier| format!("off-site {} to {}", tier.backup.schedule, tier.backup.target)),
        ];
        let words = tiers.into_iter().flatten().collect::<Vec<_>>().join("; ");
        part("policies", policy.name.as_str(), policy.name.as_str(), words)
    });
    let targets = document.iter().flat_map(|document| &document.storage).map(|target| {
        let words = format!(
            "{}, {}, {}, {}",
            target.backend,
            target.role.as_str(),
            target.class.as_str(),
            target.state.as_str()
        );
        part("storage-targets", target.name.as_str(), target.name.as_str(), words)
    });
    let (lines, left_out) = newest.map(|newest| shown(&newest.version.document)).unwrap_or_default();
    let page = DocumentPage {
        frame,
        host,
        newest: newest.map(|newest| head(frame, newest.version)),
        held,
        may_change: may == MayChange::Yes,
        guests: guests.collect(),
        policies: policies.collect(),
        targets: targets.collect(),
        lines,
        left_out,
    };
    page.render()
}

/// The editor of the whole text.
pub struct Editor<'a> {
    pub host: &'a str,
    pub seen: Generation,
    pub text: &'a str,
    pub reason: &'a str,
    pub problem: Option<EditorProblem>,
}

/// Why a text was refused.
pub struct EditorProblem {
    pub message: String,
    /// The line of the mistake, where it has one.
    pub line: Option<usize>,
    pub is_of_reason: bool,
}

#[derive(Template)]
#[template(path = "document_edit.html")]
struct EditorPage<'a> {
    frame: &'a Frame,
    editor: &'a Editor<'a>,
    problems: Vec<ProblemLine>,
    /// The lines around the mistake.
    around: Vec<Line<'a>>,
    bad_line: usize,
    is_reason_bad: bool,
    rows: usize,
}

/// Lines shown before and after a mistake.
const AROUND: usize = 3;

/// # Errors
/// [`RenderError`].
pub fn editor(frame: &Frame, editor: &Editor<'_>) -> Result<String, RenderError> {
    let problem = editor.problem.as_ref();
    let bad_line = problem.and_then(|problem| problem.line).unwrap_or(0);
    let is_reason_bad = problem.is_some_and(|problem| problem.is_of_reason);
    let all = lines(editor.text);
    let rows = all.len().clamp(20, 60);
    let is_near = |line: &Line<'_>| bad_line > 0 && line.number.abs_diff(bad_line) <= AROUND;
    let line = |problem: &EditorProblem| ProblemLine {
        target: Some(if problem.is_of_reason { "field-reason" } else { "field-text" }.to_owned()),
        label: match (problem.is_of_reason, problem.line) {
            (true, _) => "Reason".to_owned(),
            (false, Some(line)) => format!("Line {line}"),
            (false, None) => "Text".to_owned(),
        },
        message: problem.message.clone(),
    };
    let page = EditorPage {
        frame,
        editor,
        problems: problem.map(line).into_iter().collect(),
        around: all.into_iter().filter(is_near).collect(),
        bad_line,
        is_reason_bad,
        rows,
    };
    page.render()
}

#[derive(Template)]
#[template(path = "document_history.html")]
struct HistoryPage<'a> {
    frame: &'a Frame,
    host: &'a str,
    versions: Vec<VersionHead>,
    next: Option<&'a str>,
}

/// Who put what, when and why, the newest first.
///
/// # Errors
/// [`RenderError`].
pub fn history(
    frame: &Frame,
    host: &str,
    versions: &[DesiredVersion],
    next: Option<&str>,
) -> Result<String, RenderError> {
    let versions = versions.iter().map(|version| head(frame, version)).collect();
    HistoryPage { frame, host, versions, next }.render()
}

/// One version.
pub struct Version<'a> {
    pub host: &'a str,
    pub version: &'a DesiredVersion,
    /// What it changed; none where that cannot be read any more.
    pub diff: Option<&'a DocumentDiff>,
    pub newest: Generation,
    pub held: Generation,
    pub may_change: MayChange,
    /// Why a rollback was refused.
    pub problem: Option<&'a str>,
    pub reason: &'a str,
}

#[derive(Template)]
#[template(path = "document_version.html")]
struct VersionPage<'a> {
    frame: &'a Frame,
    one: &'a Version<'a>,
    head: VersionHead,
    rows: Vec<ChangeRow>,
    lines: Vec<Line<'a>>,
    left_out: usize,
    problems: Vec<ProblemLine>,
    can_roll_back: bool,
    is_newest: bool,
    is_held: bool,
}

/// # Errors
/// [`RenderError`].
pub fn version(frame: &Frame, one: &Version<'_>) -> Result<String, RenderError> {
    let is_newest = one.version.generation == one.newest;
    let line = |message: &str| ProblemLine {
        target: Some("field-reason".to_owned()),
        label: "Reason".to_owned(),
        message: message.to_owned(),
    };
    let (lines, left_out) = shown(&one.version.document);
    let page = VersionPage {
        frame,
        one,
        head: head(frame, one.version),
        rows: one.diff.map(rows).unwrap_or_default(),
        lines,
        left_out,
        problems: one.problem.map(line).into_iter().collect(),
        can_roll_back: !is_newest && one.may_change == MayChange::Yes,
        is_newest,
        is_held: one.held >= one.version.generation,
    };
    page.render()
}
