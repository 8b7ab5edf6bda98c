//! Alerts that are open, and the log of alerts of the period.

use std::collections::BTreeMap;

use holdfast_protocol::alert::{AlertId, IncidentDetail, IncidentView, LogView};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::Page;

use super::ExportRun;
use super::selection::Selection;
use crate::hub::{HubError, WHOLE};
use crate::state_errors::ExportError;

/// Alerts of the log that are looked up, to know whose they are.
const LOOKED_UP_MAX: usize = 2_000;

const PAGES_MAX: usize = 500;

/// Whether an alert is about a guest that is selected.
fn is_selected(alert: &IncidentView, selection: &Selection) -> bool {
    if selection.is_everything() {
        return true;
    }
    let uid = alert.subject.split_once(':').and_then(|(_, rest)| rest.get(..36));
    uid.and_then(|uid| uid.parse().ok()).is_some_and(|uid| selection.has(uid))
}

/// Writes both files.
pub async fn write(run: &mut ExportRun<'_>, selection: &Selection) -> Result<(), ExportError> {
    run.screen.note("alerts …");
    let mut known = BTreeMap::<AlertId, bool>::new();
    let mut file = run.folder.file("alerts.jsonl")?;
    let query = [("filter", "all"), ("limit", "500")];
    let alerts: Vec<IncidentView> = run.hub.list(&["v1", "alerts"], &query, WHOLE).await?;
    for mut alert in alerts {
        let is_in = is_selected(&alert, selection);
        known.insert(alert.id.clone(), is_in);
        if !is_in {
            file.leave_out(1);
            continue;
        }
        if !selection.is_everything() {
            alert.acknowledged = None;
        }
        file.push(&alert)?;
    }
    if !selection.is_everything() {
        file.remark("alerts that are not about a selected guest are left out");
    }
    run.folder.add(file)?;
    log(run, selection, known).await
}

async fn log(
    run: &mut ExportRun<'_>,
    selection: &Selection,
    mut known: BTreeMap<AlertId, bool>,
) -> Result<(), ExportError> {
    let mut file = run.folder.file("alert-log.jsonl")?;
    let (mut cursor, mut looked_up) = (None::<String>, 0);
    for _ in 0..PAGES_MAX {
        let path = ["v1", "alerts", "log"];
        let page: Page<LogView> = run.hub.page(&path, &[("limit", "500")], cursor.as_deref()).await?;
        let is_before = page.items.last().is_some_and(|last| last.at < run.period.from);
        for entry in page.items.into_iter().filter(|entry| run.period.has(entry.at)) {
            let is_in = match &entry.alert {
                _ if selection.is_everything() => true,
                // A notice of a group may name guests of others.
                None => false,
                Some(alert) => match known.get(alert) {
                    Some(is_in) => *is_in,
                    None if looked_up >= LOOKED_UP_MAX => false,
                    None => {
                        looked_up += 1;
                        let is_in = look_up(run, alert, selection).await?;
                        known.insert(alert.clone(), is_in);
                        is_in
                    }
                },
            };
            if is_in { file.push(&entry)? } else { file.leave_out(1) }
        }
        match page.next {
            Some(next) if !is_before => cursor = Some(next),
            _ => break,
        }
    }
    if !selection.is_everything() {
        file.remark("entries that are not of an alert about a selected guest, or whose alert is forgotten, are left out");
    }
    run.folder.add(file)
}

/// An alert that the hub forgot is nobody's.
async fn look_up(run: &ExportRun<'_>, alert: &AlertId, selection: &Selection) -> Result<bool, ExportError> {
    let found: Result<IncidentDetail, HubError> = run.hub.get(&["v1", "alerts", alert.as_str()]).await;
    match found {
        Ok(detail) => Ok(is_selected(&detail.incident, selection)),
        Err(HubError::Refused { problem, .. }) if problem.code == ErrorCode::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}
