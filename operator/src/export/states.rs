//! The state at both ends of the period.

use std::collections::BTreeSet;

use holdfast_protocol::filter::GuestFilter;
use holdfast_protocol::id::{CustomerId, GuestUid};
use holdfast_protocol::operator::GuestOnHost;
use holdfast_protocol::state::{Line, StateSnapshotView, StateWriter};
use jiff::{SignedDuration, Timestamp};

use super::ExportRun;
use super::row_file::RowFile;
use super::selection::Selection;
use crate::args::StateRef;
use crate::hub::WHOLE;
use crate::state::source::{Part, all_kept, read};
use crate::state::summary::StateSummary;
use crate::state_errors::{ExportError, StateCommandError};

/// A period that ends so lately ends now.
const NOW: SignedDuration = SignedDuration::from_mins(10);

/// The state in figures, for the summary.
#[derive(Debug)]
pub struct Picture {
    pub start: Option<StateSummary>,
    pub end: Option<StateSummary>,
}

/// Writes both, and says which hosts and guests the export has.
pub async fn write(
    run: &mut ExportRun<'_>,
    customer: Option<CustomerId>,
    filter: Option<GuestFilter>,
) -> Result<(Selection, Picture), ExportError> {
    run.screen.note("state at both ends …");
    let filtered = match &filter {
        Some(filter) => filtered(run, filter).await?,
        None => BTreeSet::new(),
    };
    let mut selection = Selection::new(customer, filter, filtered);
    let kept = all_kept(run.hub).await?;
    let period = run.period;
    let end = if period.now.duration_since(period.to) <= NOW {
        Some(StateRef::Now)
    } else {
        newest_until(&kept, period.to).map(StateRef::Number)
    };
    let start = newest_until(&kept, period.from).or_else(|| oldest_in(&kept, period.from, period.to));
    let start = start.map(StateRef::Number).filter(|start| Some(start) != end.as_ref());
    let start = one(run, "state-start.jsonl", start, &mut selection).await?;
    let end = one(run, "state-end.jsonl", end, &mut selection).await?;
    Ok((selection, Picture { start, end }))
}

async fn filtered(run: &ExportRun<'_>, filter: &GuestFilter) -> Result<BTreeSet<GuestUid>, ExportError> {
    let filter = filter.to_string();
    let query = [("filter", filter.as_str()), ("limit", "500")];
    let guests: Vec<GuestOnHost> = run.hub.list(&["v1", "guests"], &query, WHOLE).await?;
    Ok(guests.into_iter().filter_map(|found| found.guest.uid).collect())
}

fn newest_until(kept: &[StateSnapshotView], at: Timestamp) -> Option<u64> {
    let earlier = kept.iter().filter(|view| view.taken_at <= at);
    earlier.max_by_key(|view| view.taken_at).map(|view| view.number)
}

fn oldest_in(kept: &[StateSnapshotView], from: Timestamp, to: Timestamp) -> Option<u64> {
    let within = kept.iter().filter(|view| view.taken_at > from && view.taken_at <= to);
    within.min_by_key(|view| view.taken_at).map(|view| view.number)
}

async fn one(
    run: &mut ExportRun<'_>,
    name: &'static str,
    of: Option<StateRef>,
    selection: &mut Selection,
) -> Result<Option<StateSummary>, ExportError> {
    let mut file = run.folder.file(name)?;
    let Some(of) = of else {
        file.remark("the hub keeps no snapshot of state of that time");
        run.folder.add(file)?;
        return Ok(None);
    };
    let (mut summary, mut writer, mut failed) = (StateSummary::default(), None::<StateWriter>, None);
    let part = Part { customer: selection.customer.clone(), filter: None };
    let result = read(run.hub, &of, &part, |_, line| {
        line_of(line, &mut summary, &mut writer, (selection, &mut file)).map_err(|error| match error {
            ExportError::State(error) => error,
            other => {
                failed = Some(other);
                StateCommandError::None
            }
        })
    })
    .await;
    if let Some(error) = failed {
        return Err(error);
    }
    result?;
    run.folder.add(file)?;
    Ok(Some(summary))
}

/// Writes a line anew: the part that is selected is a document of its own.
fn line_of(
    line: Line,
    summary: &mut StateSummary,
    writer: &mut Option<StateWriter>,
    (selection, file): (&mut Selection, &mut RowFile),
) -> Result<(), ExportError> {
    let failed = |source| StateCommandError::Document { of: StateRef::Now, source };
    match (line, writer.as_mut()) {
        (Line::Head(mut head), _) => {
            head.scope = selection.state_scope();
            let (begun, text) = StateWriter::begin(head.clone()).map_err(failed)?;
            *writer = Some(begun);
            file.add(text.as_bytes())?;
            summary.take(Line::Head(head));
        }
        (Line::Host(host), Some(writing)) => {
            if let Some(host) = selection.take(*host) {
                summary.take(Line::Host(Box::new(host.clone())));
                let text = writing.host(host).map_err(failed)?;
                file.add(text.as_bytes())?;
            }
        }
        (Line::Tail(_), Some(_)) => {
            if let Some(writing) = writer.take() {
                let end = writing.end().map_err(failed)?;
                file.add(end.line.as_bytes())?;
                summary.take(Line::Tail(end.tail));
            }
        }
        (Line::Host(_) | Line::Tail(_), None) => {}
    }
    Ok(())
}
