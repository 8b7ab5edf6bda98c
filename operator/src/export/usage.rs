//! Use of hosts and guests in the period.

use holdfast_protocol::id::{GuestUid, HostId, HostName};
use holdfast_protocol::usage::{Unit, UsageMetric, UsagePoint, UsageSeries, UsageSpan};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::ExportRun;
use super::folder::Period;
use super::row_file::RowFile;
use super::selection::Selection;
use crate::state_errors::ExportError;

/// Guests whose use is read, at most.
const GUESTS_MAX: usize = 2_000;

#[derive(Debug, Serialize)]
struct UsageRow<'a> {
    host: &'a HostName,
    #[serde(skip_serializing_if = "Option::is_none")]
    guest: Option<GuestUid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guest_name: Option<&'a str>,
    metric: UsageMetric,
    unit: &'static str,
    /// Seconds that each point stands for.
    step_s: u32,
    points: usize,
    mean: u64,
    max: u64,
    max_at: Timestamp,
    first_at: Timestamp,
    last_at: Timestamp,
}

const fn unit(metric: UsageMetric) -> &'static str {
    match metric.spec().unit {
        Unit::Permille => "thousandths",
        Unit::Centi => "hundredths",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytes per second",
    }
}

/// The finest span that reaches back to the begin of the period.
fn span(period: &Period) -> UsageSpan {
    let back = period.now.duration_since(period.from);
    let reaches = |span: &UsageSpan| back <= SignedDuration::from_secs(span.kept_s().into());
    UsageSpan::ALL.into_iter().find(reaches).unwrap_or(UsageSpan::Days400)
}

type Subject<'a> = (&'a HostName, Option<(GuestUid, &'a str)>);

fn row<'a>(
    (host, guest): Subject<'a>,
    (metric, step_s): (UsageMetric, u32),
    points: &[UsagePoint],
) -> Option<UsageRow<'a>> {
    let (first, last) = (points.first()?, points.last()?);
    let highest = points.iter().max_by_key(|point| point.max)?;
    let sum: u128 = points.iter().map(|point| u128::from(point.mean)).sum();
    let mean = sum.checked_div(points.len() as u128)?;
    Some(UsageRow {
        host,
        guest: guest.map(|(uid, _)| uid),
        guest_name: guest.map(|(_, name)| name),
        metric,
        unit: unit(metric),
        step_s,
        points: points.len(),
        mean: u64::try_from(mean).unwrap_or(u64::MAX),
        max: highest.max,
        max_at: highest.at,
        first_at: first.at,
        last_at: last.at,
    })
}

async fn one(
    run: &ExportRun<'_>,
    host: HostId,
    subject: Subject<'_>,
    file: &mut RowFile,
) -> Result<(), ExportError> {
    let (host, span) = (host.to_string(), span(&run.period));
    let uid = subject.1.map(|(uid, _)| uid.to_string());
    let guest = uid.as_ref().map(|uid| ("guest", uid.as_str()));
    let query: Vec<(&str, &str)> = guest.into_iter().chain([("span", span.as_str())]).collect();
    let path = ["v1", "hosts", &host, "usage"];
    let Some(series): Option<UsageSeries> = run.hub.find_with(&path, &query).await? else {
        return Ok(());
    };
    for (metric, points) in series.metrics {
        let points: Vec<UsagePoint> = points.into_iter().filter(|point| run.period.has(point.at)).collect();
        if let Some(row) = row(subject, (metric, series.step_s), &points) {
            file.push(&row)?;
        }
    }
    Ok(())
}

/// Writes it.
pub async fn write(run: &mut ExportRun<'_>, selection: &Selection) -> Result<(), ExportError> {
    run.screen.note("use …");
    let mut file = run.folder.file("usage.jsonl")?;
    if selection.is_everything() {
        for (id, name) in &selection.hosts {
            one(run, *id, (name, None), &mut file).await?;
        }
    } else {
        file.remark("the use of whole hosts is left out: guests of others are part of it");
    }
    for (uid, guest) in selection.guests.iter().take(GUESTS_MAX) {
        let Some(name) = selection.host_name(guest.host) else { continue };
        one(run, guest.host, (name, Some((*uid, &guest.name))), &mut file).await?;
    }
    if let Some(more) = selection.guests.len().checked_sub(GUESTS_MAX).filter(|more| *more > 0) {
        file.leave_out(more as u64);
        file.remark(format!("of at most {GUESTS_MAX} guests: narrow it with --customer or --filter"));
    }
    run.folder.add(file)
}
