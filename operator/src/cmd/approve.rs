//! `holdfast host approve`: the approval, with tokens of tunnels.
//!
//! In: the request as the hub shows it, and the fingerprint that the operator read on the host. Out: the approval, and for
//! each tunnel a signed job with the token, which waits for the host's first check-in. A token is sealed only to a key
//! that the fingerprint covers: it is computed here, from the keys that the hub shows. Everything that a person is asked
//! comes before the approval. Deliberately absent: a second signature; a job that needs one is signed afterwards.

use std::path::Path;

use holdfast_protocol::enrol::request_fingerprint;
use holdfast_protocol::id::TunnelName;
use holdfast_protocol::job::{Draft, SignedJob};
use holdfast_protocol::operator::{
    EnrollmentApproval, EnrollmentRequestState, EnrollmentRequestView, HostDetail,
};
use holdfast_protocol::pin::Pin;
use holdfast_seal::TunnelToken;
use holdfast_trust::signature::Namespace;

use super::{job, tunnel_token};
use crate::args::ApproveArgs;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::job_draft;
use crate::job_file::{JobFile, JobFileError};
use crate::pins::{PinOrigin, Pins, ShownHost};
use crate::screen::Screen;
use crate::tunnel_errors::{ApproveError, TunnelTokenError};
use crate::{clock, keygen, prompt};

/// The request as it is then.
pub async fn run(
    args: ApproveArgs,
    hub: &Hub,
    folder: &Path,
    screen: &Screen,
) -> Result<EnrollmentRequestView, CliError> {
    if args.tunnel_token.is_empty() {
        return approve(&args, hub).await;
    }
    // clap demands both where a token is handed over.
    let (Some(key), Some(reason)) = (&args.key, &args.reason) else {
        return Err(CliError::Reason("a token is signed with --key, and --reason says why"));
    };
    let all: Vec<EnrollmentRequestView> = hub.list(&["v1", "enrollment-requests"], &[], WHOLE).await?;
    let request = all.into_iter().find(|request| request.id == args.request);
    let shown = confirmed(request.ok_or(ApproveError::Unknown(args.request))?, args.fingerprint)?;
    let readers = tunnel_token::readers(folder, args.copy_for.as_deref())?;
    let tunnels: Vec<&str> = args.tunnel_token.iter().map(TunnelName::as_str).collect();
    screen.before_question(&format!(
        "Approve request {} as {}, with the token of {}.\nKey       {}\n{}",
        args.request,
        args.name,
        tunnels.join(", "),
        shown.recipient,
        tunnel_token::copies_notice(&readers)
    ));
    let mut drafts: Vec<(TunnelName, Draft)> = Vec::new();
    for tunnel in &args.tunnel_token {
        let token = TunnelToken::new(tunnel.clone(), prompt::token_of_tunnel()?)
            .map_err(TunnelTokenError::Content)?;
        drafts.push((tunnel.clone(), tunnel_token::sealed(tunnel, &token, &shown.recipient, &readers)?));
    }
    let question = "\nType the host's name to approve and sign:";
    prompt::name(args.name.as_str(), question, args.confirm.as_deref())?;
    let mut pins = Pins::load(folder)?;
    let approved = approve(&args, hub).await?;
    let id = approved.host.ok_or(ApproveError::NoHost)?;
    let host = ShownHost { name: args.name.clone(), id, epoch: shown.epoch, key: shown.recipient.clone() };
    // The id alone is the hub's word; the job names the key as well, and no other host accepts it.
    pins.note(host.clone(), PinOrigin::Compared, clock::now(), folder)?;
    pins.store(folder)?;
    for (tunnel, draft) in drafts {
        let handed = hand(draft, &host, (&args, key, reason), hub).await;
        handed.map_err(|source| ApproveError::NotHanded { tunnel, source: Box::new(source) })?;
    }
    Ok(approved)
}

async fn approve(args: &ApproveArgs, hub: &Hub) -> Result<EnrollmentRequestView, CliError> {
    let approval = EnrollmentApproval {
        host_name: args.name.clone(),
        fingerprint: args.fingerprint,
        returns: args.returns,
    };
    Ok(hub.post(&["v1", "enrollment-requests", &args.request.to_string(), "approve"], &approval).await?)
}

/// What orders are sealed and signed for, where the fingerprint covers exactly that.
fn confirmed(
    request: EnrollmentRequestView,
    given: Pin,
) -> Result<holdfast_protocol::enrol::SealingIdentity, ApproveError> {
    if request.state == EnrollmentRequestState::Refused {
        return Err(ApproveError::Refused(request.id));
    }
    let (Some(key), Some(sealing)) = (request.key, request.sealing) else {
        return Err(ApproveError::NoKey(request.id));
    };
    let shown = request_fingerprint(key, Some(&sealing));
    if shown == given {
        Ok(sealing)
    } else {
        Err(ApproveError::Fingerprint { request: request.id, shown, given })
    }
}

type Signing<'a> = (&'a ApproveArgs, &'a Path, &'a holdfast_protocol::job::stamp::Reason);

/// Signs one order and leaves it at the hub, for the host's first check-in.
async fn hand(draft: Draft, host: &ShownHost, signing: Signing<'_>, hub: &Hub) -> Result<(), CliError> {
    let (args, key, reason) = signing;
    let payload = job_draft::complete(draft, host, args.hours, reason.clone(), clock::now())?;
    let bytes = payload.to_json().map_err(JobFileError::Unwritable)?.into_bytes();
    let signature = keygen::sign(&bytes, key, Namespace::Job)?;
    let job = SignedJob { payload: bytes, signatures: Vec::new(), consents: Vec::new() };
    let mut blob = JobFile { job, payload, keys: Vec::new() };
    blob.add(signature.armoured, signature.key)?;
    let detail: HostDetail = hub.get(&["v1", "hosts", &host.id.to_string()]).await?;
    job::submit(hub, &detail, &blob.payload, blob.text()?).await?;
    Ok(())
}
