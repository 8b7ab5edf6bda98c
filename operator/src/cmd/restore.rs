//! `holdfast host restore`: a signed order and the invite for it.
//!
//! The hub makes the invite and cannot make the order; what it hands back is held to the order that was signed here.

use std::path::Path;

use holdfast_protocol::enrol::Invite;
use holdfast_protocol::job::act::{Act, Sha256Text, args};
use holdfast_protocol::job::{Draft, SignedJob, Target};
use holdfast_protocol::operator::{HostDetail, InviteCreated};
use holdfast_protocol::restore::RestoreRequest;
use holdfast_trust::signature::Namespace;

use crate::args::RestoreArgs;
use crate::cmd_errors::RestoreError;
use crate::error::CliError;
use crate::hub::Hub;
use crate::job_draft;
use crate::job_file::{JobFile, JobFileError};
use crate::pins::CheckedHost;
use crate::screen::Screen;
use crate::{clock, keygen, prompt, render};

/// The validity of the invite, and an hour more for a host with a wrong clock.
const HOURS: u32 = 2;

pub async fn run(args: RestoreArgs, hub: &Hub, folder: &Path, screen: &Screen) -> Result<(), CliError> {
    let detail: HostDetail = hub.get(&["v1", "hosts", &args.host]).await?;
    let checked = CheckedHost::of(&detail, folder)?;
    let name = checked.shown.name.to_string();
    let act = Act::RestoreHost(args::RestoreHost { new_key: Some(args.new_key) });
    let draft = Draft { target: Target::Host {}, act };
    let payload = job_draft::complete(draft, &checked.shown, HOURS, args.reason, clock::now())?;
    let words = checked.notice().unwrap_or_default();
    screen.before_question(&(words + &render::job::to_sign(&payload, &detail, None, clock::now())));
    prompt::name(&name, "\nType the host's name to sign for this:", args.key.confirm.as_deref())?;
    checked.save(clock::now())?;
    let bytes = payload.to_json().map_err(JobFileError::Unwritable)?.into_bytes();
    let digest = Sha256Text::of(&bytes);
    let signature = keygen::sign(&bytes, &args.key.key, Namespace::Job)?;
    let job = SignedJob { payload: bytes, signatures: Vec::new(), consents: Vec::new() };
    let mut blob = JobFile { job, payload, keys: Vec::new() };
    blob.add(signature.armoured, signature.key)?;
    let request = RestoreRequest { order: blob.text()? };
    let id = detail.host.id.to_string();
    let invite: InviteCreated = hub.post(&["v1", "hosts", &id, "restore"], &request).await?;
    let opened = Invite::open(&invite.code).map_err(RestoreError::Invite)?;
    if opened.order.as_ref() != Some(&digest) {
        return Err(RestoreError::Exchanged.into());
    }
    screen.show(&invite, |invite, _| render::host::restore_invite(invite, &name, &digest, clock::now()))
}
