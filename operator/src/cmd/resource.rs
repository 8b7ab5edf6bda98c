//! Changes of parts of a host's document: shown, confirmed, made.
//!
//! In: what is to be changed. Out: what it would do, as the hub judges it, and after a yes the new generation. The change is
//! bound to the generation that was shown, so nothing that was written in between is lost.

use std::path::Path;

use holdfast_protocol::desired::Reason;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::operator::{DesiredVersion, HostDetail};
use holdfast_protocol::resource::requests::{ChangeAnswer, ChangePreview, PartChanged};
use net::client::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::args::{ChangeArgs, PutArgs, RemoveArgs, RollbackArgs, SetArgs, merge_of};
use crate::cmd_errors::PartCommandError;
use crate::document_file;
use crate::error::CliError;
use crate::hub::{Change, Hub};
use crate::screen::Screen;
use crate::{clock, prompt, render};

/// The segment of the path under a host, for each kind of part.
pub const GUESTS: &str = "guests";
pub const POLICIES: &str = "policies";
pub const STORAGE: &str = "storage-targets";

/// As many characters as a reason has at most, less the words before it.
const REASON_CHARS: usize = 180;

/// A request without its `If-Match` and without `dry_run`.
struct ChangeRequest<'a> {
    method: Method,
    host: &'a str,
    /// Below the host.
    path: Vec<&'a str>,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
}

fn reason(args: &ChangeArgs, usual: &str) -> Result<Reason, CliError> {
    if let Some(reason) = &args.reason {
        return Ok(reason.clone());
    }
    let clean: String = usual.chars().filter(|c| !c.is_control()).take(REASON_CHARS).collect();
    Reason::try_from(clean).map_err(CliError::Reason)
}

pub async fn set(kind: &'static str, args: &SetArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let patch = merge_of(&args.fields).map_err(PartCommandError::Fields)?;
    let fields: Vec<String> = args.fields.iter().map(ToString::to_string).collect();
    let reason = reason(&args.change, &format!("set {} {}", args.name, fields.join(" ")))?;
    let wanted = ChangeRequest {
        method: Method::PATCH,
        host: &args.host,
        path: vec![kind, &args.name],
        query: Vec::new(),
        body: Some(json!({ "reason": reason, "patch": patch })),
    };
    change::<PartChanged>(wanted, &args.change, hub, screen).await
}

/// Adds the part of a file, or sets the one of that name whole.
pub async fn put(kind: &'static str, args: &PutArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let value = document_file::part(&args.file)?;
    let name = value.get("name").and_then(Value::as_str).map(str::to_owned);
    let name = name.ok_or_else(|| PartCommandError::NoName { path: args.file.clone() })?;
    let found: Option<Value> = hub.find(&["v1", "hosts", &args.host, kind, &name]).await?;
    let reason = reason(&args.change, &format!("put {name} from {}", file_name(&args.file)))?;
    let (method, path) = match found {
        Some(_) => (Method::PUT, vec![kind, &name]),
        None => (Method::POST, vec![kind]),
    };
    let body = Some(json!({ "reason": reason, "value": value }));
    let wanted = ChangeRequest { method, host: &args.host, path, query: Vec::new(), body };
    change::<PartChanged>(wanted, &args.change, hub, screen).await
}

/// Adds the part of a file; one of that name is refused.
pub async fn add(kind: &'static str, args: &PutArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let value = document_file::part(&args.file)?;
    let reason = reason(&args.change, &format!("add from {}", file_name(&args.file)))?;
    let body = Some(json!({ "reason": reason, "value": value }));
    let wanted =
        ChangeRequest { method: Method::POST, host: &args.host, path: vec![kind], query: Vec::new(), body };
    change::<PartChanged>(wanted, &args.change, hub, screen).await
}

pub async fn remove(
    kind: &'static str,
    args: &RemoveArgs,
    hub: &Hub,
    screen: &Screen,
) -> Result<(), CliError> {
    let reason = reason(&args.change, &format!("remove {}", args.name))?;
    let on_host = if args.leave { "leave" } else { "refuse" };
    let wanted = ChangeRequest {
        method: Method::DELETE,
        host: &args.host,
        path: vec![kind, &args.name],
        query: vec![("reason", reason.as_str().to_owned()), ("on_host", on_host.to_owned())],
        body: None,
    };
    change::<PartChanged>(wanted, &args.change, hub, screen).await
}

pub async fn roll_back(args: &RollbackArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let reason = reason(&args.change, &format!("back to generation {}", args.to))?;
    let wanted = ChangeRequest {
        method: Method::POST,
        host: &args.host,
        path: vec!["desired", "rollback"],
        query: Vec::new(),
        body: Some(json!({ "reason": reason, "to": args.to })),
    };
    change::<DesiredVersion>(wanted, &args.change, hub, screen).await
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What a change made, as far as a note names it.
pub trait MadeGeneration {
    fn generation(&self) -> Generation;
}

impl MadeGeneration for PartChanged {
    fn generation(&self) -> Generation {
        self.generation
    }
}

impl MadeGeneration for DesiredVersion {
    fn generation(&self) -> Generation {
        self.generation
    }
}

async fn change<T: DeserializeOwned + Serialize + MadeGeneration>(
    wanted: ChangeRequest<'_>,
    args: &ChangeArgs,
    hub: &Hub,
    screen: &Screen,
) -> Result<(), CliError> {
    // The id, so that no other host of that name gets the change after a yes.
    let detail: HostDetail = hub.get(&["v1", "hosts", wanted.host]).await?;
    let (id, name) = (detail.host.id.to_string(), detail.host.name.as_str());
    let held: Option<DesiredVersion> = hub.find(&["v1", "hosts", &id, "desired"]).await?;
    let seen = held.map_or(Generation::NONE, |held| held.generation);
    let send = async |more: Option<(&'static str, &'static str)>| -> Result<ChangeAnswer<T>, CliError> {
        let path: Vec<&str> = ["v1", "hosts", &id].into_iter().chain(wanted.path.iter().copied()).collect();
        let mut query: Vec<(&str, &str)> =
            wanted.query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        query.extend(more);
        let change = Change { method: wanted.method.clone(), path: &path, query: &query, seen };
        Ok(hub.change(change, wanted.body.as_ref()).await?)
    };
    let ChangeAnswer::Preview(preview) = send(Some(("dry_run", "true"))).await? else {
        return Err(PartCommandError::NotJudged.into());
    };
    if args.dry_run {
        return screen
            .show(&preview, |preview, style| render::preview::preview(preview, clock::now(), style));
    }
    let text = render::preview::preview(&preview, clock::now(), screen.style());
    if preview.diff.is_empty() {
        screen.note(text.trim_end());
        return screen.show(&preview, |_, _| String::new());
    }
    confirm(&text, &preview, args, screen)?;
    let ChangeAnswer::Made(made) = send(None).await? else {
        return Err(PartCommandError::NotJudged.into());
    };
    screen.note(&format!("Generation {} is put to {name}.", made.generation()));
    screen.show(&made, |_, _| String::new())
}

fn confirm(text: &str, preview: &ChangePreview, args: &ChangeArgs, screen: &Screen) -> Result<(), CliError> {
    if args.assume_yes.yes {
        screen.note(text.trim_end());
    } else {
        screen.before_question(text);
    }
    let question = format!("Put generation {} to {}?", preview.diff.to, preview.host);
    Ok(prompt::confirm(&question, args.assume_yes)?)
}
