//! `holdfast host withdraw`: a signed withdrawal of a restore order.
//!
//! The hub keeps it with the order. The host, if it is still alive, gets it as a job and remembers it for good.

use std::path::Path;

use holdfast_protocol::job::act::{Act, Sha256Text, args};
use holdfast_protocol::job::{Draft, SignedJob, Target};
use holdfast_protocol::operator::HostDetail;
use holdfast_protocol::restore::{RestoreOrder, RestoreState, WithdrawRequest};
use holdfast_trust::signature::Namespace;

use super::job;
use crate::args::WithdrawArgs;
use crate::cmd_errors::WithdrawError;
use crate::error::CliError;
use crate::hub::Hub;
use crate::job_file::JobFileError;
use crate::pins::CheckedHost;
use crate::screen::Screen;
use crate::{clock, job_draft, keygen, prompt, render};

/// The withdrawal stays valid for a day, so a host that is offline for that long still receives it.
const HOURS: u32 = 24;

pub async fn run(args: WithdrawArgs, hub: &Hub, folder: &Path, screen: &Screen) -> Result<(), CliError> {
    let detail: HostDetail = hub.get(&["v1", "hosts", &args.host]).await?;
    let checked = CheckedHost::of(&detail, folder)?;
    let name = checked.shown.name.to_string();
    let which = match args.order {
        Some(order) => order,
        None => only(&detail, &name)?,
    };
    let act = Act::WithdrawRestore(args::WithdrawRestore { order: which });
    let draft = Draft { target: Target::Host {}, act };
    let payload = job_draft::complete(draft, &checked.shown, HOURS, args.reason, clock::now())?;
    let words = checked.notice().unwrap_or_default();
    screen.before_question(&(words + &render::job::to_sign(&payload, &detail, None, clock::now())));
    prompt::name(&name, "\nType the host's name to sign for this:", args.key.confirm.as_deref())?;
    checked.save(clock::now())?;
    let bytes = payload.to_json().map_err(JobFileError::Unwritable)?.into_bytes();
    let signature = keygen::sign(&bytes, &args.key.key, Namespace::Job)?;
    let signed = SignedJob { payload: bytes, signatures: vec![signature.armoured], consents: Vec::new() };
    let text = signed.to_json().map_err(JobFileError::Unwritable)?;
    let id = detail.host.id.to_string();
    let request = WithdrawRequest { withdrawal: text.clone() };
    let kept: RestoreOrder = hub.post(&["v1", "hosts", &id, "restore", "withdraw"], &request).await?;
    job::submit(hub, &detail, &payload, text).await?;
    screen.show(&kept, |kept, _| {
        format!("Order {} is taken back: no box takes the place of {name} by it.\n", kept.order.as_str())
    })
}

/// The one order that a host could follow, or did.
fn only(detail: &HostDetail, name: &str) -> Result<Sha256Text, CliError> {
    let mut open = detail.restores.iter().filter(|order| order.state != RestoreState::Withdrawn);
    match (open.next(), open.next()) {
        (Some(one), None) => Ok(one.order.clone()),
        (first, _) => {
            let count = usize::from(first.is_some()) * (2 + open.count());
            Err(WithdrawError::Which { host: name.to_owned(), count }.into())
        }
    }
}
