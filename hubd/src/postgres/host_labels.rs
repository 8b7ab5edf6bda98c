//! Labels and update windows of hosts.

use std::convert::Infallible;

use async_trait::async_trait;
use holdfast_protocol::host_label::{HostLabels, LabelChange, LabelError};
use holdfast_protocol::operator::HostView;
use holdfast_protocol::release::window::UpdateWindows;

use super::alerts::json;
use super::events::emit;
use super::host_row::find;
use super::sql::{self, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::host::HostRef;
use crate::store::{By, HostLabelling, WriteError};

fn event(tx: &Tx<'_>, by: &By, kind: EventKind, host: &HostView, message: String) -> sql::Result<()> {
    let (actor, correlation) = (Some(by.operator.clone()), by.correlation);
    emit(tx, &NewEvent { at: by.at, kind, host: Some(host.id), actor, correlation, message })
}

fn labels_text(labels: &HostLabels) -> String {
    if labels.is_empty() { "none".to_owned() } else { labels.to_string() }
}

#[async_trait]
impl HostLabelling for Postgres {
    async fn change_labels(
        &self,
        by: By,
        host: HostRef,
        change: LabelChange,
    ) -> Result<Option<HostView>, WriteError<LabelError>> {
        self.mutate("change labels of a host", by, move |tx, by| {
            let Some(record) = find(tx, &host)? else { return Ok(None) };
            let labels = record.view.labels.changed(&change).map_err(Failed::Refused)?;
            if labels == record.view.labels {
                return Ok(Some(record.view));
            }
            let sql = "UPDATE hosts SET labels = $2 WHERE number = $1";
            tx.prepare_cached(sql)?.execute(params![record.number, json(&labels)?])?;
            let before = labels_text(&record.view.labels);
            let message =
                format!("labels of {}: {}, before: {before}", record.view.name, labels_text(&labels));
            event(tx, by, EventKind::HostLabelsChanged, &record.view, message)?;
            Ok(Some(HostView { labels, ..record.view }))
        })
        .await
    }

    async fn set_update_windows(
        &self,
        by: By,
        host: HostRef,
        windows: UpdateWindows,
    ) -> Result<Option<HostView>, WriteError<Infallible>> {
        self.mutate("set the update windows of a host", by, move |tx, by| {
            let Some(record) = find(tx, &host)? else { return Ok::<_, Failed<_>>(None) };
            if windows == record.view.update_windows {
                return Ok(Some(record.view));
            }
            let sql = "UPDATE hosts SET update_windows = $2 WHERE number = $1";
            tx.prepare_cached(sql)?.execute(params![record.number, json(&windows)?])?;
            let when = if windows.is_empty() { "at any time".to_owned() } else { windows.to_string() };
            let message = format!("{} is updated {when}", record.view.name);
            event(tx, by, EventKind::HostWindowsChanged, &record.view, message)?;
            Ok(Some(HostView { update_windows: windows, ..record.view }))
        })
        .await
    }
}
