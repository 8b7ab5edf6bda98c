//! Checks of desired documents, and their delivery to hosts.
//!
//! In: the current document, the version that the operator saw (`If-Match`) and the offered document; or what a host
//! holds and refused. Out: a verdict. The rule of generations is [`holdfast_protocol::generation`], the same on both
//! sides. [`holdfast_protocol::desired::field`] decides about a change to a field. Deliberately absent: where documents
//! and reports are kept.

use std::collections::BTreeMap;
use std::str::FromStr;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::field::{MadeGuest, unchangeable};
use holdfast_protocol::desired::{Desired, DesiredDocument, DesiredGuest};
use holdfast_protocol::generation::{
    self, ContentHash, Generation, GenerationError, JUMP_MAX, Numbered, Offer,
};
use holdfast_protocol::operator::DesiredVersion;
use holdfast_protocol::report::{GuestReport, GuestStatus, Sections};

/// What the operator saw before they wrote: `If-Match: "7"`, and `"0"` where there was nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IfMatch(pub Generation);

/// An `If-Match` that names no generation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "If-Match names no generation: send the ETag of the document you changed, such as \"7\", or \"0\" for the first"
)]
pub struct IfMatchError;

impl FromStr for IfMatch {
    type Err = IfMatchError;
    fn from_str(text: &str) -> Result<Self, IfMatchError> {
        let number = text.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let number = number.and_then(|digits| digits.parse().ok()).ok_or(IfMatchError)?;
        Ok(Self(Generation::new(number)))
    }
}

/// Why a document is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// Somebody else wrote in between.
    #[error(
        "the current document is generation {current}, not {seen}: read it, redo the change on it, and put that"
    )]
    Moved {
        /// The current generation.
        current: Generation,
        /// What the operator saw.
        seen: Generation,
    },
    /// Against the rule of generations.
    #[error(transparent)]
    Generation(#[from] GenerationError),
    /// The host holds a newer one than the hub: the hub's history was lost or set back.
    #[error(
        "the host holds generation {held} already: offer {held} + 1 or more, or it would refuse the document"
    )]
    Behind {
        /// What the host holds.
        held: Generation,
    },
    /// A change to a guest that was made, which nothing carries out.
    #[error("{path} of a guest that was made is changed, and nothing carries that out: {instead}")]
    Unchangeable {
        /// The JSON path.
        path: String,
        /// What a person does.
        instead: &'static str,
    },
    /// A root disk into which the image does not fit.
    #[error(
        "{path} is {wanted_gib} GiB, and the root disk of golden {golden} has {image_bytes} bytes: ask for {least_gib} GiB or more"
    )]
    TooSmall {
        /// The JSON path.
        path: String,
        /// The requested size.
        wanted_gib: u32,
        golden: String,
        /// The size of its root disk.
        image_bytes: u64,
        /// The smallest size that holds it.
        least_gib: u64,
    },
}

impl PutError {
    /// The JSON path of the mistake, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Unchangeable { path, .. } | Self::TooSmall { path, .. } => Some(path),
            Self::Moved { .. } | Self::Generation(_) | Self::Behind { .. } => None,
        }
    }

    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Moved { .. } => ErrorCode::PreconditionFailed,
            Self::Generation(error) => error.code(),
            Self::Behind { .. } => ErrorCode::StaleGeneration,
            Self::Unchangeable { .. } => ErrorCode::Unsupported,
            Self::TooSmall { .. } => ErrorCode::Range,
        }
    }
}

/// Judges an offered document by every rule: against the newest one, and by what its host last said.
///
/// # Errors
/// [`PutError`]; the current document stays.
pub fn judge_document(
    current: Option<&DesiredVersion>,
    held: Generation,
    (seen, offered): (IfMatch, &Desired),
    delivered: &Sections,
) -> Result<Offer, PutError> {
    let offer = judge_put(current.map(numbered), held, seen, offered.numbered())?;
    if offer == Offer::Newer {
        // One that was taken once is read again; were it damaged, nothing is known of what it said.
        let was = current.and_then(|version| Desired::parse(version.document.as_bytes()).ok());
        judge_guests(was.as_ref().map(Desired::document), offered.document(), delivered)?;
    }
    Ok(offer)
}

/// The content hash is written by us; were it damaged, the comparison would see two different documents, which is the
/// safe side.
fn numbered(version: &DesiredVersion) -> Numbered {
    let content = version.content.parse().unwrap_or_else(|_| ContentHash::of(version.content.as_bytes()));
    Numbered { generation: version.generation, content }
}

/// Judges the number of an offered document.
///
/// # Errors
/// [`PutError`]; the current document stays.
pub fn judge_put(
    current: Option<Numbered>,
    held: Generation,
    seen: IfMatch,
    offered: Numbered,
) -> Result<Offer, PutError> {
    let number = current.map_or(Generation::NONE, |current| current.generation);
    if seen.0 != number {
        return Err(PutError::Moved { current: number, seen: seen.0 });
    }
    // A host may be ahead of a hub that was restored from an older copy; then the host's own generation is the
    // reference.
    if held > number {
        if offered.generation <= held {
            return Err(PutError::Behind { held });
        }
        if offered.generation.number() - held.number() > JUMP_MAX {
            return Err(GenerationError::Jump { offered: offered.generation, held }.into());
        }
        return Ok(Offer::Newer);
    }
    Ok(generation::judge(current, offered)?)
}

/// Judges what a document says of its guests, by what the host last said of them. What the host never said is not judged
/// here: its agent reports it.
///
/// # Errors
/// [`PutError`]; the current document stays.
pub fn judge_guests(
    current: Option<&DesiredDocument>,
    offered: &DesiredDocument,
    delivered: &Sections,
) -> Result<(), PutError> {
    let before: BTreeMap<_, _> =
        current.into_iter().flat_map(|document| &document.guests).map(|guest| (guest.uid, guest)).collect();
    let reports: BTreeMap<_, _> =
        delivered.guests.iter().flatten().filter_map(|report| Some((report.uid?, report))).collect();
    for (at, guest) in offered.guests.iter().enumerate() {
        match reports.get(&guest.uid).and_then(|report| made(report)) {
            Some(made) => {
                let was = before.get(&guest.uid);
                if let Some(found) = was.and_then(|was| unchangeable(was, guest, &made)) {
                    let path = format!("guests[{at}].{}", found.path);
                    return Err(PutError::Unchangeable { path, instead: found.instead });
                }
            }
            None => fits(at, guest, delivered)?,
        }
    }
    Ok(())
}

/// What its host said of a guest that was made; none of one that is not there yet.
fn made(report: &GuestReport) -> Option<MadeGuest<'_>> {
    match report.status {
        GuestStatus::Absent | GuestStatus::RestoredCopy => None,
        GuestStatus::Managed
        | GuestStatus::Unmanaged
        | GuestStatus::Missing
        | GuestStatus::Foreign
        | GuestStatus::Broken
        | GuestStatus::Parked => {
            Some(MadeGuest { vmid: report.vmid?, golden: report.golden.as_ref(), volumes: &report.volumes })
        }
    }
}

/// Whether the root disk of a guest that is not made yet holds its image, where the host said how large that is.
fn fits(at: usize, guest: &DesiredGuest, delivered: &Sections) -> Result<(), PutError> {
    let goldens = delivered.host.iter().flat_map(|host| &host.goldens);
    let image =
        goldens.filter(|golden| golden.version == guest.golden).find_map(|golden| golden.rootfs_bytes);
    let wanted_gib = guest.size.rootfs_gib.get();
    match image {
        Some(image_bytes) if u64::from(wanted_gib) << 30 < image_bytes => Err(PutError::TooSmall {
            path: format!("guests[{at}].size.rootfs_gib"),
            wanted_gib,
            golden: guest.golden.to_string(),
            image_bytes,
            least_gib: image_bytes.div_ceil(1 << 30),
        }),
        _ => Ok(()),
    }
}

/// Whether a document is delivered to a host at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Nothing is new to it.
    Nothing,
    /// It refused the newest: it is delivered again with the next check-in, not at once, or the two would
    /// spin.
    Again,
    Now,
}

/// Decides the delivery to a host.
#[must_use]
pub fn judge_delivery(wanted: Generation, held: Generation, refused: Option<Generation>) -> Delivery {
    if wanted <= held {
        Delivery::Nothing
    } else if refused == Some(wanted) {
        Delivery::Again
    } else {
        Delivery::Now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(generation: u64, content: &str) -> Numbered {
        Numbered { generation: Generation::new(generation), content: ContentHash::of(content.as_bytes()) }
    }

    #[test]
    fn each_offer_against_what_is_current() {
        let seen = |n| IfMatch(Generation::new(n));
        let put = |current, held, seen, offered| {
            judge_put(current, Generation::new(held), seen, offered).map_err(|error| error.code())
        };
        let five = Some(numbered(5, "a"));
        assert_eq!(put(None, 0, seen(0), numbered(1, "a")), Ok(Offer::Newer));
        assert_eq!(put(None, 0, seen(1), numbered(1, "a")), Err(ErrorCode::PreconditionFailed));
        assert_eq!(put(five, 5, seen(4), numbered(6, "a")), Err(ErrorCode::PreconditionFailed));
        assert_eq!(put(five, 5, seen(5), numbered(6, "a")), Ok(Offer::Newer));
        assert_eq!(put(five, 5, seen(5), numbered(5, "a")), Ok(Offer::Held));
        assert_eq!(put(five, 5, seen(5), numbered(5, "b")), Err(ErrorCode::GenerationConflict));
        assert_eq!(put(five, 5, seen(5), numbered(4, "b")), Err(ErrorCode::StaleGeneration));
        assert_eq!(put(five, 5, seen(5), numbered(5000, "b")), Err(ErrorCode::GenerationJump));
        assert_eq!(put(five, 9, seen(5), numbered(6, "b")), Err(ErrorCode::StaleGeneration));
        assert_eq!(put(five, 9, seen(5), numbered(10, "b")), Ok(Offer::Newer));
        assert_eq!(put(five, 9, seen(5), numbered(u64::MAX, "b")), Err(ErrorCode::GenerationJump));
    }

    fn document(guest: &serde_json::Value) -> DesiredDocument {
        let text = serde_json::json!({ "schema": "holdfast.desired/v1", "generation": 2, "poll_interval_s": 30, "guests": [guest] });
        serde_json::from_value(text).unwrap()
    }

    fn guest() -> serde_json::Value {
        serde_json::json!({
            "uid": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "name": "web-1", "customer": "acme", "run": "running",
            "golden": "2026.11.1", "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 2 },
            "network": { "bridge": "vmbr0", "address": "10.66.0.1/24" }
        })
    }

    /// A host's report: the guest, and an image of 2 GiB and one byte.
    fn delivered(status: &str) -> Sections {
        let report = serde_json::json!([{
            "uid": guest()["uid"], "name": "web-1", "vmid": 300, "status": status, "run": "running", "golden": "2026.11.1",
            "volumes": ["fast:300/a.raw"]
        }]);
        let host = serde_json::json!({
            "node": "pve1", "proxmox_version": "9", "cpus": 1, "memory_bytes": 1, "memory_used_bytes": 1, "storages": [],
            "goldens": [{ "version": "2026.12.1", "status": "approved", "rootfs_bytes": 2_147_483_649_u64 }]
        });
        Sections {
            guests: serde_json::from_value(report).unwrap(),
            host: serde_json::from_value(host).unwrap(),
            ..Sections::default()
        }
    }

    #[test]
    fn what_nothing_carries_out_is_refused_for_guests_that_were_made() {
        let mut other = guest();
        other["customer"] = "umbrella".into();
        let (was, next) = (document(&guest()), document(&other));
        let refused = judge_guests(Some(&was), &next, &delivered("managed")).unwrap_err();
        assert_eq!((refused.code(), refused.path()), (ErrorCode::Unsupported, Some("guests[0].customer")));
        assert!(refused.to_string().contains("name a new guest with a new uid"), "{refused}");
        // Until it is made it can be another, and what its host never reported is judged by its agent.
        for (current, delivered) in [
            (Some(&was), delivered("absent")),
            (None, delivered("managed")),
            (Some(&was), Sections::default()),
        ] {
            assert_eq!(judge_guests(current, &next, &delivered), Ok(()));
        }
    }

    #[test]
    fn a_root_disk_is_as_large_as_its_image() {
        let document = |gib: u32| {
            let mut new = guest();
            new["golden"] = "2026.12.1".into();
            new["size"]["rootfs_gib"] = gib.into();
            document(&new)
        };
        let refused = judge_guests(None, &document(2), &delivered("absent")).unwrap_err();
        assert_eq!((refused.code(), refused.path()), (ErrorCode::Range, Some("guests[0].size.rootfs_gib")));
        assert!(refused.to_string().contains("2147483649 bytes: ask for 3 GiB or more"), "{refused}");
        assert_eq!(judge_guests(None, &document(3), &delivered("absent")), Ok(()));
    }

    #[test]
    fn a_refused_document_is_not_pressed_on_the_host() {
        let g = Generation::new;
        assert_eq!(judge_delivery(g(3), g(3), None), Delivery::Nothing);
        assert_eq!(judge_delivery(g(3), g(4), None), Delivery::Nothing);
        assert_eq!(judge_delivery(g(4), g(3), None), Delivery::Now);
        assert_eq!(judge_delivery(g(4), g(3), Some(g(4))), Delivery::Again);
        assert_eq!(judge_delivery(g(5), g(3), Some(g(4))), Delivery::Now);
    }

    #[test]
    fn if_match_is_a_quoted_generation() {
        assert_eq!("\"7\"".parse(), Ok(IfMatch(Generation::new(7))));
        for bad in ["", "*", "7", "\"\"", "\"-1\"", "W/\"7\"", "\"7\", \"8\""] {
            assert_eq!(bad.parse::<IfMatch>(), Err(IfMatchError), "{bad}");
        }
    }
}
