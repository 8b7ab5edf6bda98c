//! `/v1/receivers` and `/v1/deliveries`: who is sent to, and what became of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::alert::{DeliveryView, ReceiverKind, ReceiverSettings, ReceiverView, TestQueued};
use holdfast_protocol::id::ReceiverName;
use holdfast_protocol::operator::Page;
use jiff::Timestamp;
use net::server::Answer;
use uuid::Uuid;

use super::settings_files::SettingsFiles;
use crate::api::auth::Operator;
use crate::api::hosts::EMPTY_BODY_MAX;
use crate::api::mutation::Head;
use crate::api::page::{CheckedQuery, PageQuery, bad_cursor, page};
use crate::api::problem::ApiError;
use crate::api::{Hub, body};
use crate::store::{DeliveryRecord, PAGE_MAX};

/// A receiver of the settings, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredReceiver {
    pub name: ReceiverName,
    pub kind: ReceiverKind,
}

/// All receivers, and the settings that they are of.
#[derive(Clone, Debug)]
pub struct ConfiguredReceivers {
    pub receivers: Vec<ConfiguredReceiver>,
    /// Since when these settings are in force.
    pub since: Timestamp,
    pub files: SettingsFiles,
}

/// All at once: settings have few.
pub(in crate::api) async fn list(
    State(hub): State<Arc<Hub>>,
    _: Operator,
) -> Result<Answer<Page<ReceiverView>>, ApiError> {
    let queues = hub.store.queues().await?.into_iter().map(|queue| (queue.receiver.clone(), queue));
    let mut queues: BTreeMap<_, _> = queues.collect();
    let last = hub.store.last_deliveries().await?.into_iter().map(|one| (one.receiver.clone(), one));
    let mut last: BTreeMap<_, _> = last.collect();
    let ConfiguredReceivers { receivers, since, files } = hub.receivers.borrow().clone();
    let changed_at = tokio::task::spawn_blocking(move || files.changed_at()).await.ok().flatten();
    let view = |receiver: &ConfiguredReceiver| {
        let queue = queues.remove(&receiver.name);
        ReceiverView {
            name: receiver.name.clone(),
            kind: receiver.kind,
            waiting: queue.as_ref().map_or(0, |queue| queue.waiting),
            oldest: queue.as_ref().map(|queue| queue.oldest),
            failure: queue.and_then(|queue| queue.failure),
            last: last.remove(&receiver.name).map(delivery),
            settings: Some(ReceiverSettings { since, changed_at }),
        }
    };
    let items = receivers.iter().map(view).collect();
    Ok(Answer(StatusCode::OK, Page { items, next: None }))
}

pub(in crate::api) async fn test(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<TestQueued>, ApiError> {
    let bytes = body::read("the request", body, EMPTY_BODY_MAX).await?;
    let receiver = known(&hub, &name).ok_or_else(|| ApiError::not_found("receiver"))?;
    // Half of the range: the engine makes two keys of it.
    let number = Uuid::new_v4().as_u64_pair().0 >> 1;
    let keys = hub.store.queue_test(head.by(&hub, &bytes)?, receiver.clone(), number).await?;
    let notices = keys.iter().map(ToString::to_string).collect();
    Ok(Answer(StatusCode::OK, TestQueued { receiver, notices }))
}

fn known(hub: &Hub, name: &str) -> Option<ReceiverName> {
    let configured = hub.receivers.borrow();
    configured
        .receivers
        .iter()
        .find(|receiver| receiver.name.as_str() == name)
        .map(|receiver| receiver.name.clone())
}

pub(in crate::api) async fn deliveries(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    CheckedQuery(query): CheckedQuery<PageQuery>,
) -> Result<Answer<Page<DeliveryView>>, ApiError> {
    let limit = query.limit(PAGE_MAX)?;
    let before = query.cursor()?.map(|cursor| cursor.parse().map_err(|_| bad_cursor())).transpose()?;
    let records = hub.store.deliveries(before, limit + 1).await?;
    let Page { items, next } = page(records, limit, |last| last.number.to_string());
    Ok(Answer(StatusCode::OK, Page { items: items.into_iter().map(delivery).collect(), next }))
}

fn delivery(record: DeliveryRecord) -> DeliveryView {
    let DeliveryRecord { number, at, receiver, key, tries, outcome, remark, title } = record;
    DeliveryView { number, at, receiver, notice: key.to_string(), title, outcome, tries, remark }
}
