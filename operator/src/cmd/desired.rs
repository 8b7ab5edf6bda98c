//! `holdfast desired`: show, diff, apply and history of desired documents.

use std::path::Path;

use holdfast_protocol::desired::{Desired, Reason};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::operator::{DesiredPut, DesiredVersion, HostDetail};
use holdfast_protocol::resource::requests::ChangePreview;
use holdfast_protocol::resource::view::PartView;
use holdfast_protocol::resource::{DocumentDiff, diff, promises_in_force};
use net::client::Method;
use uuid::Uuid;

use super::{resource, watch};
use crate::args::{ApplyArgs, DesiredCommand};
use crate::error::CliError;
use crate::hub::{Change, Hub, WHOLE};
use crate::screen::Screen;
use crate::{clock, document_file, prompt, render};

pub async fn run(command: DesiredCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        DesiredCommand::Show { host, generation } => {
            let detail: HostDetail = hub.get(&["v1", "hosts", &host]).await?;
            let number = generation.map(|generation| generation.to_string());
            let mut path = vec!["v1", "hosts", &host, "desired"];
            path.extend(number.iter().flat_map(|number| ["history", number.as_str()]));
            let held: Option<DesiredVersion> = hub.find(&path).await?;
            let version = held.ok_or(CliError::NoDocument { host: detail.host.name.to_string() })?;
            let desired = read(&host, &version)?;
            screen.show(&version, |version, style| {
                render::desired::document(version, &desired, clock::now(), style)
            })
        }
        DesiredCommand::Diff { host, file: Some(file), .. } => {
            let prepared = prepare(hub, &host, &file).await?;
            screen.show(&prepared.diff, |diff, style| render::desired::diff(&host, diff, style))
        }
        DesiredCommand::Diff { host, file: None, from, to } => {
            let ends = [("from", from), ("to", to)];
            let ends: Vec<(&str, String)> =
                ends.iter().filter_map(|(name, end)| Some((*name, (*end)?.to_string()))).collect();
            let query: Vec<(&str, &str)> = ends.iter().map(|(name, end)| (*name, end.as_str())).collect();
            let found: Option<DocumentDiff> =
                hub.find_with(&["v1", "hosts", &host, "desired", "diff"], &query).await?;
            let found = found.ok_or_else(|| CliError::NoVersion { host: host.clone() })?;
            screen.show(&found, |diff, style| render::desired::diff(&host, diff, style))
        }
        DesiredCommand::Status { host } => status(&host, hub, screen).await,
        DesiredCommand::Rollback(args) => resource::roll_back(&args, hub, screen).await,
        DesiredCommand::Apply(args) => apply(args, hub, screen).await,
        DesiredCommand::History { host, limit } => {
            let path = ["v1", "hosts", &host, "desired", "history"];
            let versions: Vec<DesiredVersion> =
                hub.list(&path, &[], usize::try_from(limit).unwrap_or(usize::MAX)).await?;
            screen.show(&versions, |versions, style| render::desired::history(versions, clock::now(), style))
        }
    }
}

fn read(host: &str, version: &DesiredVersion) -> Result<Desired, CliError> {
    Desired::parse(version.document.as_bytes())
        .map_err(|source| CliError::Held { host: host.to_owned(), source })
}

/// A file, completed and compared, with what it was compared to.
struct PreparedChange {
    detail: HostDetail,
    held: Option<DesiredVersion>,
    desired: Desired,
    diff: DocumentDiff,
}

async fn prepare(hub: &Hub, host: &str, file: &Path) -> Result<PreparedChange, CliError> {
    let draft = document_file::read(file)?;
    let detail: HostDetail = hub.get(&["v1", "hosts", host]).await?;
    let held: Option<DesiredVersion> = hub.find(&["v1", "hosts", host, "desired"]).await?;
    let before = held.as_ref().map(|version| read(host, version)).transpose()?;
    let before = before.as_ref().map(Desired::document);
    // A host may be ahead of a hub that was set back to an older copy.
    let floor = before.map_or(Generation::NONE, |document| document.generation).max(detail.host.held);
    let desired = draft.complete(before, floor, || GuestUid::new(Uuid::now_v7()))?;
    let in_force = promises_in_force(detail.sections.guests.as_deref());
    let diff = diff(before, desired.document(), &in_force);
    Ok(PreparedChange { detail, held, desired, diff })
}

/// Guests, storage targets and policies in their three states.
async fn status(host: &str, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let mut parts: Vec<PartView> = Vec::new();
    for kind in [resource::GUESTS, resource::STORAGE, resource::POLICIES] {
        let of_kind: Vec<PartView> = hub.list(&["v1", "hosts", host, kind], &[], WHOLE).await?;
        parts.extend(of_kind);
    }
    screen.show(&parts, |parts, style| render::preview::states(parts, clock::now(), style))
}

/// What the hub says that a document would do.
async fn dry_run(
    prepared: &PreparedChange,
    args: &ApplyArgs,
    hub: &Hub,
    screen: &Screen,
) -> Result<(), CliError> {
    let id = prepared.detail.host.id.to_string();
    let put = DesiredPut { reason: reason(args)?, document: text_of(&prepared.desired)? };
    let seen = prepared.held.as_ref().map_or(Generation::NONE, |held| held.generation);
    let path = ["v1", "hosts", &id, "desired"];
    let change = Change { method: Method::PUT, path: &path, query: &[("dry_run", "true")], seen };
    let preview: ChangePreview = hub.change(change, Some(&put)).await?;
    screen.show(&preview, |preview, style| render::preview::preview(preview, clock::now(), style))
}

async fn apply(args: ApplyArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let prepared = prepare(hub, &args.host, &args.file).await?;
    if args.dry_run {
        return dry_run(&prepared, &args, hub, screen).await;
    }
    let PreparedChange { detail, held, desired, diff } = prepared;
    let name = detail.host.name.as_str();
    let (version, target) = match held {
        Some(held) if diff.is_empty() => {
            screen.note(render::desired::diff(name, &diff, screen.style()).trim_end());
            let target = read(name, &held)?;
            (held, target)
        }
        held => {
            let text = render::desired::diff(name, &diff, screen.style());
            if args.assume_yes.yes {
                screen.note(text.trim_end())
            } else {
                screen.before_question(&text)
            }
            prompt::confirm(&format!("Put generation {} to {name}?", diff.to), args.assume_yes)?;
            let put = DesiredPut { reason: reason(&args)?, document: text_of(&desired)? };
            let seen = held.map_or(Generation::NONE, |held| held.generation);
            let version: DesiredVersion = hub.put_desired(&detail.host.id.to_string(), seen, &put).await?;
            screen.note(&format!("Generation {} is put to {name}.", version.generation));
            (version, desired)
        }
    };
    if args.watch {
        watch::watch(hub, &detail, target.document(), args.timeout, screen).await?;
    }
    screen.show(&version, |_, _| String::new())
}

fn text_of(desired: &Desired) -> Result<String, CliError> {
    serde_json::to_string_pretty(desired.document()).map_err(CliError::Unwritable)
}

fn reason(args: &ApplyArgs) -> Result<Reason, CliError> {
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let clean: String = name.chars().filter(|c| !c.is_control()).take(150).collect();
    match &args.reason {
        Some(reason) => Ok(reason.clone()),
        None => Reason::try_from(format!("apply {clean}")).map_err(CliError::Reason),
    }
}
