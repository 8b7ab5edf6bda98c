//! Images that may be restored.
//!
//! What comes in: the archives that root named, what their bytes hash to now, and what operators signed for. What goes
//! out: the one digest by which a guest may be made, or why none. An archive that was exchanged under its version has
//! another digest, so what was approved before does not cover it: the guest is held, with the new digest to sign for.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::GoldenVersion;
use holdfast_protocol::job::act::{Act, ReleaseKind, args};
use holdfast_protocol::job::{Draft, Target};
use holdfast_protocol::report::{GoldenReport, ImageStatus, WaitingForSignature};
use jiff::Timestamp;

use super::{Context, Inputs};
use crate::gate::pending_approval::{PendingApproval, Remedy};
use crate::gate::{Approved, Effect, Provenance, Verdict, gate};
use crate::model::observed::{GoldenFact, Observed};
use crate::model::policy::{Golden, Policy, Sha256Hex};
use crate::model::records::{Place, Records, ReleaseRecord};

/// What root named with its digest, and what operators signed for; of controllers, these alone.
pub(super) fn approved(policy: &Policy, records: &Records) -> Approved {
    let by_root = policy.goldens.iter().filter_map(|(version, golden)| {
        let sha256 = golden.sha256.clone()?;
        Some((version.clone(), sha256))
    });
    let signed = records.releases.iter().filter(|release| release.kind == ReleaseKind::Golden);
    let signed = signed.filter_map(|release| {
        let version: GoldenVersion = release.version.as_str().parse().ok()?;
        Some((version, release.sha256.clone()))
    });
    let controllers = records.releases.iter().filter(|release| release.kind == ReleaseKind::Controller);
    let controllers = controllers.map(|release| (release.version.clone(), release.sha256.clone()));
    Approved { goldens: by_root.chain(signed).collect(), controllers: controllers.collect() }
}

/// The goldens whose archives a plan will want to know about: those of guests that are not there, or lost.
#[must_use]
pub fn wanted(desired: &[DesiredGuest], records: &Records, observed: &Observed) -> BTreeSet<GoldenVersion> {
    let placed = |guest: &DesiredGuest| {
        let place = records.guests.binary_search_by_key(&guest.uid, |record| record.uid);
        let record = place.ok().and_then(|place| records.guests.get(place));
        record.is_some_and(|record| record.place != Place::Nowhere) && !observed.lost.contains_key(&guest.uid)
    };
    desired.iter().filter(|guest| !placed(guest)).map(|guest| guest.golden.clone()).collect()
}

/// What operators signed for last, of a version.
fn signed_digest<'a>(records: &'a Records, version: &GoldenVersion) -> Option<&'a Sha256Hex> {
    let is = |release: &&ReleaseRecord| {
        release.kind == ReleaseKind::Golden && release.version.as_str() == version.as_str()
    };
    records.releases.iter().rfind(is).map(|release| &release.sha256)
}

/// The images that guests are to be made from, that operators approved, and that are not on this host.
#[must_use]
pub fn missing(inputs: &Inputs<'_>) -> BTreeMap<GoldenVersion, Sha256Hex> {
    let is_here = |version: &GoldenVersion| match inputs.observed.goldens.get(version) {
        // One that was in the dump folder, and was pruned since.
        Some(GoldenFact::Unread(_)) => {
            inputs.policy.goldens.get(version).is_some_and(|golden| golden.build.is_none())
        }
        Some(GoldenFact::Is(_)) | None => inputs.policy.goldens.contains_key(version),
    };
    let wanted = wanted(inputs.desired, inputs.records, inputs.observed);
    let missing = wanted.into_iter().filter(|version| !is_here(version));
    missing
        .filter_map(|version| Some((version.clone(), signed_digest(inputs.records, &version)?.clone())))
        .collect()
}

/// When the image of a guest was built, where the host knows it.
pub(super) fn built_at(policy: &Policy, version: &GoldenVersion) -> Option<Timestamp> {
    policy.goldens.get(version)?.build.as_ref()?.built_at
}

/// The archive of a golden with the digest that it has, as far as that is known.
pub(super) fn archive<'a>(
    context: &'a Context<'_>,
    version: &GoldenVersion,
) -> Result<(&'a Golden, Sha256Hex), (ErrorCode, String)> {
    let Some(golden) = context.inputs.policy.goldens.get(version) else {
        if let Some(sha256) = signed_digest(context.inputs.records, version) {
            let text = format!(
                "golden {version} is approved (sha256 {}), and its archive is not on this box yet: the agent fetches it, where \
                 a release at the hub has it (`holdfast release list`); else build it here, or copy it to where golden_dump \
                 in agent.toml leads",
                sha256.as_str()
            );
            return Err((ErrorCode::Unavailable, text));
        }
        let text = format!(
            "golden {version} is not approved on this box: root names its archive in [[golden]] of agent.toml"
        );
        return Err((ErrorCode::GoldenUnapproved, text));
    };
    let seen = context.inputs.observed.goldens.get(version);
    match (seen, &golden.sha256) {
        (Some(GoldenFact::Is(sha256)), _) => Ok((golden, sha256.clone())),
        // The restore holds the bytes to it before anything is made of them.
        (_, Some(named)) => Ok((golden, named.clone())),
        (Some(GoldenFact::Unread(why)), None) => {
            let text = format!(
                "the archive of golden {version} cannot be read ({why}): correct `file` in [[golden]] of agent.toml"
            );
            Err((ErrorCode::Unavailable, text))
        }
        (None, None) => {
            let text =
                format!("the archive of golden {version} was not looked at yet: it is looked at again");
            Err((ErrorCode::Unavailable, text))
        }
    }
}

/// Why a guest is not made with the root disk that the document wants: its image does not fit.
pub(super) fn too_large(inputs: &Inputs<'_>, guest: &DesiredGuest) -> Option<String> {
    let (wanted, image) = (guest.size.rootfs_gib, *inputs.observed.golden_roots.get(&guest.golden)?);
    (u64::from(wanted.get()) << 30 < image).then(|| {
        format!(
            "the document wants a root disk of {wanted}, and that of golden {} has {image} bytes: write size.rootfs_gib = {} or more \
             into the document; it is not made until then",
            guest.golden,
            image.div_ceil(1 << 30)
        )
    })
}

/// What is reported of each golden on the host.
pub(super) fn reports(inputs: &Inputs<'_>) -> Vec<GoldenReport> {
    let approved = approved(inputs.policy, inputs.records);
    let reported = inputs.policy.goldens.iter().map(|(version, golden)| {
        let (bytes, readable) = match inputs.observed.goldens.get(version) {
            Some(GoldenFact::Is(sha256)) => (Some(sha256), true),
            Some(GoldenFact::Unread(_)) => (golden.sha256.as_ref(), false),
            // What root named is not hashed before it is wanted.
            None => (golden.sha256.as_ref(), golden.sha256.is_some()),
        };
        let status = match bytes {
            Some(sha256) if readable && approved.has(version, sha256) => ImageStatus::Approved,
            Some(_) if readable => ImageStatus::Waiting,
            _ => ImageStatus::Unread,
        };
        let sha256 = bytes.map(|sha256| sha256.as_str().to_owned());
        let rootfs_bytes = inputs.observed.golden_roots.get(version).copied();
        GoldenReport { version: version.clone(), sha256, status, rootfs_bytes, build: golden.build.clone() }
    });
    reported.collect()
}

/// The newest golden that guests may be made from.
fn newest_approved<'a>(inputs: &'a Inputs<'_>) -> Option<&'a GoldenVersion> {
    let approved = approved(inputs.policy, inputs.records);
    let is = |(version, golden): &(&GoldenVersion, &Golden)| match inputs.observed.goldens.get(version) {
        Some(GoldenFact::Is(sha256)) => approved.has(version, sha256),
        Some(GoldenFact::Unread(_)) => false,
        None => golden.sha256.as_ref().is_some_and(|sha256| approved.has(version, sha256)),
    };
    let all = inputs.policy.goldens.iter().filter(is).map(|(version, _)| version);
    all.max_by_key(|version| version.age_key())
}

/// Goldens that no guest waits for, newer than whatever guests may be made from: an operator can sign for them beforehand.
#[must_use]
pub fn waiting(inputs: &Inputs<'_>, held: &[PendingApproval]) -> Vec<WaitingForSignature> {
    let newest = newest_approved(inputs).map(GoldenVersion::age_key);
    let newer = inputs.policy.goldens.iter().filter(|(version, golden)| {
        golden.sha256.is_none() && newest.is_none_or(|newest| version.age_key() > newest)
    });
    let reported = newer.filter_map(|(version, _)| {
        let Some(GoldenFact::Is(sha256)) = inputs.observed.goldens.get(version) else { return None };
        let draft = approval(version, sha256)?;
        let waits = |held: &PendingApproval| matches!(&held.remedy, Remedy::Sign(wanted) if *wanted == draft);
        if held.iter().any(waits) {
            return None;
        }
        let effect = Effect::RestoreFresh { golden: version.clone(), sha256: sha256.clone() };
        let reason = match gate(&effect, Provenance::Document, &Approved::default()) {
            Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => why.to_owned(),
            Verdict::Free => return None,
        };
        Some(WaitingForSignature {
            guest: None,
            effect: format!("make guests from golden {version}, sha256 {}", sha256.as_str()),
            reason,
            // JSON can represent every value of these types. If it could not, no operator could sign the empty text.
            payload: draft.to_json().unwrap_or_default(),
            last_backup: None,
            last_proof: None,
        })
    });
    reported.collect()
}

/// Reported when the newest golden that is stored here is older than root wants it, with the guests that were made from one
/// as old.
#[must_use]
pub fn old(inputs: &Inputs<'_>) -> Option<ErrorBody> {
    let policy = inputs.policy;
    let days_max = policy.golden_dump.as_ref()?.refresh_days;
    let days_of = |version: &GoldenVersion| {
        let age = inputs.now.duration_since(built_at(policy, version)?);
        Some(age.as_hours() / 24)
    };
    let built = policy.goldens.keys().filter_map(|version| Some((version, days_of(version)?)));
    let (version, days) = built.max_by_key(|(version, _)| version.age_key())?;
    (days >= i64::from(days_max)).then(|| {
        let is_old = |version: &GoldenVersion| days_of(version).is_some_and(|days| days >= i64::from(days_max));
        let old = inputs.records.guests.iter().filter(|guest| is_old(&guest.golden));
        let names: Vec<String> = old.map(|guest| format!("{} ({})", guest.name, guest.golden)).collect();
        let text = format!(
            "the newest golden image here, {version}, is {days} days old, and {days_max} are the most (refresh_days): \
             `agentd golden build` makes a new one, for an operator to sign{}",
            guests_of(&names)
        );
        ErrorBody::new(ErrorCode::GoldenOld, text)
    })
}

/// Guests as a sentence ends with them, some of many.
fn guests_of(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let some = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => String::new(),
        count if count > SHOWN => format!("; guests of images as old: {some} and {} more", count - SHOWN),
        _ => format!("; guests of images as old: {some}"),
    }
}

/// What an operator signs for these bytes. Every version of a golden is a version, and every digest a digest.
fn approval(version: &GoldenVersion, sha256: &Sha256Hex) -> Option<Draft> {
    let version = version.as_str().to_owned().try_into().ok()?;
    let sha256 = sha256.as_str().to_owned().try_into().ok()?;
    let act = Act::ApproveRelease(args::ApproveRelease { kind: ReleaseKind::Golden, version, sha256 });
    Some(Draft { target: Target::Host {}, act })
}

/// A guest that waits for its golden's approval, with what an operator would sign.
pub(super) fn held(guest: &DesiredGuest, sha256: &Sha256Hex, reason: &'static str) -> PendingApproval {
    let by_hand = Remedy::ByHand("root on this box names its digest in [[golden]] of agent.toml");
    PendingApproval {
        guest: guest.uid,
        effect: format!("make guest {} from golden {}, sha256 {}", guest.name, guest.golden, sha256.as_str()),
        reason,
        remedy: approval(&guest.golden, sha256).map_or(by_hand, Remedy::Sign),
    }
}
