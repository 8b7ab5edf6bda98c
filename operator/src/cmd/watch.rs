//! Progress of a host towards its document: bars or plain lines.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_protocol::desired::DesiredDocument;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::operation::OperationView;
use holdfast_protocol::operator::HostDetail;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::time::{Instant, sleep};

use crate::error::CliError;
use crate::hub::Hub;
use crate::progress::{Convergence, assess, changes_since, current_step, outcome_line, steps_done};
use crate::render::clean;
use crate::screen::Screen;

/// The agent reports a step within a second.
const POLL: Duration = Duration::from_millis(500);

/// Follows. `before` is the host as it was before the document was put: what was ended then is no news.
pub async fn watch(
    hub: &Hub,
    before: &HostDetail,
    wanted: &DesiredDocument,
    timeout_s: u64,
    screen: &Screen,
) -> Result<(), CliError> {
    let (id, host) = (before.host.id.to_string(), before.host.name.to_string());
    let begin = Instant::now();
    let mut known = before.sections.operations.clone().unwrap_or_default();
    let mut view = View::new(screen);
    loop {
        let detail: HostDetail = hub.get(&["v1", "hosts", &id]).await?;
        let operations = detail.sections.operations.clone().unwrap_or_default();
        view.show(&known, &operations);
        known = operations;
        match assess(wanted, &detail.sections) {
            Convergence::Reached => {
                let count = wanted.guests.len();
                let guests = if count == 1 { "guest has" } else { "guests have" };
                screen.note(&format!(
                    "{host}: {count} {guests} converged after {} s.",
                    begin.elapsed().as_secs()
                ));
                return Ok(());
            }
            Convergence::Refused(problem) => {
                return Err(CliError::RefusedByAgent {
                    host,
                    generation: wanted.generation.number(),
                    problem,
                });
            }
            Convergence::NeedsSignature(effects) => {
                return Err(CliError::NeedsSignature { host, effects: effects.join("; ") });
            }
            Convergence::Stuck(reasons) => return Err(CliError::Stuck { host, reasons: reasons.join("; ") }),
            Convergence::Underway(missing) if begin.elapsed().as_secs() >= timeout_s => {
                return Err(CliError::TimedOut { host, seconds: timeout_s, missing: few(&missing) });
            }
            Convergence::Underway(missing) => {
                // While work is under way its steps are shown; otherwise what is waited for is shown.
                if known.iter().all(|operation| operation.status.is_end()) {
                    view.waiting(&few(&missing));
                }
                sleep(POLL).await;
            }
        }
    }
}

/// The first three, and how many more.
fn few(all: &[String]) -> String {
    let first: Vec<&str> = all.iter().take(3).map(String::as_str).collect();
    match all.len().saturating_sub(first.len()) {
        0 => first.join("; "),
        more => format!("{}; and {more} more", first.join("; ")),
    }
}

/// Shows the work: every line by itself, and on a terminal a bar for each open operation below them.
struct View<'a> {
    screen: &'a Screen,
    bars: Option<Bars>,
    waited_for: String,
}

impl<'a> View<'a> {
    fn new(screen: &'a Screen) -> Self {
        Self { screen, bars: screen.is_live().then(Bars::default), waited_for: String::new() }
    }

    /// Said once, until it is another thing that is waited for.
    fn waiting(&mut self, missing: &str) {
        if self.waited_for != missing {
            missing.clone_into(&mut self.waited_for);
            self.line(&format!("waiting for {missing}"));
        }
    }

    fn show(&mut self, before: &[OperationView], after: &[OperationView]) {
        let Some(bars) = &mut self.bars else {
            changes_since(before, after).iter().for_each(|line| self.line(line));
            return;
        };
        let ended = bars.show(before, after);
        ended.iter().for_each(|line| self.line(line));
    }

    /// Writes a line while the progress bars are hidden.
    fn line(&self, line: &str) {
        let line = clean(line);
        match &self.bars {
            Some(bars) => bars.all.suspend(|| self.screen.note(&line)),
            None => self.screen.note(&line),
        }
    }
}

/// One bar for each open operation; an ended one leaves a line.
#[derive(Default)]
struct Bars {
    all: MultiProgress,
    open: BTreeMap<OperationId, ProgressBar>,
}

impl Bars {
    fn show(&mut self, before: &[OperationView], after: &[OperationView]) -> Vec<String> {
        let mut ended = Vec::new();
        for now in after {
            if now.status.is_end() {
                if let Some(bar) = self.open.remove(&now.id) {
                    bar.finish_and_clear();
                }
                if !before.iter().any(|was| was.id == now.id && was.status.is_end()) {
                    ended.push(outcome_line(now));
                }
                continue;
            }
            let (done, total) = steps_done(now);
            let bar = self.open.entry(now.id).or_insert_with(|| self.all.add(bar(now, total)));
            bar.set_length(total);
            bar.set_position(done);
            bar.set_message(clean(&current_step(now)));
        }
        ended
    }
}

/// Nothing half-drawn stays behind, whatever ended the following.
impl Drop for Bars {
    fn drop(&mut self) {
        // A terminal that went away shows nothing anyway.
        let _ = self.all.clear();
    }
}

fn bar(operation: &OperationView, total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total).with_prefix(format!("{}  {}", operation.name, operation.kind.as_str()));
    // The template is fixed; were it wrong, the plain bar would do.
    match ProgressStyle::with_template("{prefix:28} [{bar:20}] {pos}/{len} {wide_msg}") {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}
