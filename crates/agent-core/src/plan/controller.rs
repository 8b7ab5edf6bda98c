//! The approval of the guest agent's build.
//!
//! What comes in: what the controller said of itself, and what was approved by a signature or came with an approved
//! golden. What goes out: a condition and what an operator would sign. Nothing is withheld from the guest meanwhile. A
//! controller has power over its own guest alone, and an attacker who replaces it can have it report anything. So this
//! finds updates that no operator released, not an attacker. A controller that names no build is older than this rule.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::{Act, ReleaseKind, args};
use holdfast_protocol::job::{Draft, Target};
use holdfast_protocol::report::Condition;

use super::{Context, Judged};
use crate::gate::pending_approval::{PendingApproval, Remedy};
use crate::gate::{Effect, Provenance, Verdict, gate};
use crate::model::records::{GuestRecord, HelloRecord, Records};

pub(super) fn judge(context: &Context<'_>, mut judged: Judged, record: &GuestRecord) -> Judged {
    let Some(hello) = &record.hello else { return judged };
    let Some(build) = hello.build.as_ref().filter(|_| !approved(context, hello)) else { return judged };
    let Verdict::NeedsSignature(reason) =
        gate(&Effect::RunUnapproved, Provenance::Document, &context.approved)
    else {
        return judged;
    };
    let (version, sha256) = (&hello.version, build.as_str());
    let text = format!(
        "its controller is {version}, sha256 {sha256}, which nobody approved: an operator signs for it, or finds out who put it there"
    );
    let remedy = match (version.clone().try_into(), sha256.to_owned().try_into()) {
        (Ok(version), Ok(sha256)) => {
            let kind = ReleaseKind::Controller;
            let act = Act::ApproveRelease(args::ApproveRelease { kind, version, sha256 });
            Remedy::Sign(Draft { target: Target::Host {}, act })
        }
        _ => Remedy::ByHand(
            "its version is none that a job can carry: install a released controller in the guest",
        ),
    };
    judged.held.push(PendingApproval {
        guest: record.uid,
        effect: format!("go on with controller {version}, sha256 {sha256}, in guest {}", record.name),
        reason,
        remedy,
    });
    judged.with(ErrorCode::ControllerUnapproved, text)
}

/// What is reported of a guest that came back and was not heard since.
pub(super) fn silent(records: &Records, record: &GuestRecord) -> Option<Condition> {
    let message = records.silent.get(&record.uid)?.clone();
    Some(Condition { code: ErrorCode::ControllerSilent, message })
}

fn approved(context: &Context<'_>, hello: &HelloRecord) -> bool {
    let mut releases = context.inputs.records.releases.iter();
    releases.any(|release| {
        release.kind == ReleaseKind::Controller
            && release.version.as_str() == hello.version
            && Some(&release.sha256) == hello.build.as_ref()
    })
}
