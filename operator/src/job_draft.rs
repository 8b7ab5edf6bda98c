//! Job drafts: chosen from what waits on a host, completed. Pure.
//!
//! The hub passes on the text of a report, so that text is never signed. The person is shown what is read from the
//! draft itself, and that draft is signed.

use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{GoldenVersion, JobId, TargetName};
use holdfast_protocol::job::act::{Sha256Text, VolumeText, args};
use holdfast_protocol::job::stamp::{Nonce, Reason, UtcSecond};
use holdfast_protocol::job::{
    Act, Draft, Fingerprint, ImageApproval, LIFE_MAX_S, Order, Payload, PayloadError, SeenCopy, SeenGuest,
    Target,
};
use holdfast_protocol::report::{GoldenReport, GuestReport, GuestStatus, ImageStatus, WaitingForSignature};
use holdfast_protocol::root_disk::{Knowledge, LeftBehind};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::pins::ShownHost;
use crate::render;

/// An operator's clock may be ahead of a host's by this much.
const EARLY: SignedDuration = SignedDuration::from_secs(60);

/// Why there is nothing to sign.
#[derive(Debug, thiserror::Error)]
pub enum JobDraftError {
    #[error("nothing waits for a signature on {host}")]
    Nothing { host: String },
    #[error("several entries wait on {host}; choose one by its number or guest:\n{list}")]
    Which {
        host: String,
        /// All of them.
        list: String,
    },
    /// None is called so.
    #[error("no waiting entry {asked} on {host}; these wait:\n{list}")]
    NoSuch {
        host: String,
        /// The requested entry.
        asked: String,
        /// All of them.
        list: String,
    },
    /// It cannot be said what would be signed for.
    #[error("no job can be made for {asked} on {host}: {why}")]
    Unseen {
        host: String,
        /// The requested entry.
        asked: String,
        why: &'static str,
    },
    /// It would be left behind by oversight.
    #[error(
        "nothing was signed for {guest}: {why}{list}. It stays behind when the guest is put on a newer image: move it to a volume \
         first, or say --leave-behind"
    )]
    StaysBehind {
        guest: String,
        why: String,
        /// All that is known of it.
        list: String,
    },
    /// No signature helps.
    #[error("this cannot be done by a signature: {0}")]
    ByHand(String),
    /// What the host wants signed cannot be read.
    #[error(
        "the job that waits on {host} cannot be read by this version of holdfast: use one of the agent's release line"
    )]
    Unreadable {
        host: String,
        #[source]
        source: PayloadError,
    },
    /// The agent is older than the rule that a release names its document.
    #[error("the agent of {host} does not name its document by content hash: update the agent, then sign")]
    NoDocument { host: String },
    /// The hub shows another document than the one that would be let through.
    #[error(
        "document {generation} that waits on {host} differs from the one that the hub shows: nothing was signed; compare \
         `holdfast desired show {host}` with `agentd status` on the host"
    )]
    OtherDocument { host: String, generation: Generation },
    /// Too long or too short.
    #[error("a job may be valid for 1 to {} hours", LIFE_MAX_S / 3_600)]
    Life,
    #[error("the clock of this machine is out of range: {0}")]
    Clock(&'static str),
}

/// Finds what is to be signed: by its number from 1, its verb, its storage's name, or its guest's name, uid or VMID.
pub fn choose(
    host: &str,
    waiting: &[WaitingForSignature],
    asked: Option<&str>,
) -> Result<(usize, Draft), JobDraftError> {
    let list = || {
        let line =
            |(n, one): (usize, &WaitingForSignature)| format!("  {n}  {}", crate::render::clean(&one.effect));
        (1..).zip(waiting).map(line).collect::<Vec<_>>().join("\n")
    };
    let found: Vec<usize> = match asked {
        None => (0..waiting.len()).collect(),
        Some(asked) => {
            let is = |(place, one): &(usize, &WaitingForSignature)| {
                asked.parse() == Ok(place + 1)
                    || one.guest.is_some_and(|uid| uid.to_string() == asked)
                    || Draft::parse(one.payload.as_bytes()).is_ok_and(|draft| called(&draft, asked))
            };
            waiting.iter().enumerate().filter(is).map(|(place, _)| place).collect()
        }
    };
    let host = || host.to_owned();
    match (found.as_slice(), asked) {
        _ if waiting.is_empty() => Err(JobDraftError::Nothing { host: host() }),
        ([], asked) => Err(JobDraftError::NoSuch {
            host: host(),
            asked: asked.unwrap_or_default().to_owned(),
            list: list(),
        }),
        ([place], _) => match waiting.get(*place) {
            Some(one) if one.payload.is_empty() => Err(JobDraftError::ByHand(one.reason.clone())),
            Some(one) => {
                let draft = Draft::parse(one.payload.as_bytes());
                Ok((*place, draft.map_err(|source| JobDraftError::Unreadable { host: host(), source })?))
            }
            None => Err(JobDraftError::Nothing { host: host() }),
        },
        (_, _) => Err(JobDraftError::Which { host: host(), list: list() }),
    }
}

/// An action that a host does not request, on a guest as the host reports it: found by its name, uid or VMID.
pub fn for_guest(act: Act, host: &str, guests: &[GuestReport], asked: &str) -> Result<Draft, JobDraftError> {
    Ok(Draft { target: seen(host, guests, asked)?.target(), act })
}

/// A volume for another guest, as the host sees that one.
pub fn move_volume(volume: &str, host: &str, guests: &[GuestReport], to: &str) -> Result<Act, JobDraftError> {
    let volume = volume.to_owned().try_into().map_err(|why| JobDraftError::Unseen {
        host: host.to_owned(),
        asked: volume.to_owned(),
        why,
    })?;
    Ok(Act::ReassignVolume(args::ReassignVolume { volume, to: seen(host, guests, to)? }))
}

/// A copy in the place of its guest, as the host sees it, and what stays behind.
pub fn swap(
    copy: &str,
    leave: &[VolumeText],
    host: &str,
    guests: &[GuestReport],
) -> Result<Act, JobDraftError> {
    let leaves = leave.iter().cloned().collect();
    Ok(Act::SwapGuest(args::SwapGuest { copy: seen_copy(copy, host, guests)?, leaves }))
}

/// The end of a copy, as the host sees it.
pub fn discard(copy: &str, host: &str, guests: &[GuestReport]) -> Result<Act, JobDraftError> {
    Ok(Act::DiscardCopy(args::DiscardCopy { copy: seen_copy(copy, host, guests)? }))
}

/// A copy as the host sees it, by its name or VMID.
fn seen_copy(copy: &str, host: &str, guests: &[GuestReport]) -> Result<SeenCopy, JobDraftError> {
    let is =
        |guest: &&GuestReport| guest.name == copy || guest.vmid.is_some_and(|vmid| vmid.to_string() == copy);
    let mut found = guests.iter().filter(|guest| guest.status == GuestStatus::RestoredCopy).filter(is);
    let unseen = |why| JobDraftError::Unseen { host: host.to_owned(), asked: copy.to_owned(), why };
    let one = match (found.next(), found.next()) {
        (Some(one), None) => one,
        (None, _) => return Err(unseen("no restored copy has this name")),
        (Some(_), Some(_)) => return Err(unseen("several have this name: give the VMID")),
    };
    let (Some(vmid), Ok(name)) = (one.vmid, one.name.parse()) else {
        return Err(unseen("it has no VMID, or no valid name"));
    };
    if one.volumes.is_empty() {
        return Err(unseen("its volumes are not reported, so the job would not name them"));
    }
    let fingerprint = Fingerprint { name, customer: None, volumes: one.volumes.iter().cloned().collect() };
    Ok(SeenCopy { vmid, fingerprint })
}

/// A guest on a newer image, with the digest that the host reports of it.
pub fn rebase(
    version: &GoldenVersion,
    host: &str,
    goldens: &[GoldenReport],
    leaves: LeftBehind,
) -> Result<Act, JobDraftError> {
    let unseen =
        |why| JobDraftError::Unseen { host: host.to_owned(), asked: format!("golden {version}"), why };
    let image = goldens.iter().find(|golden| golden.version == *version);
    let image = image.ok_or_else(|| unseen("the host reports no such image"))?;
    match image.status {
        ImageStatus::Approved => {}
        ImageStatus::Waiting => return Err(unseen("nobody approved it there: sign for the image first")),
        ImageStatus::Unread => return Err(unseen("the host could not read it")),
    }
    let sha256 = image.sha256.clone().ok_or_else(|| unseen("its digest is not reported"))?;
    let sha256 = sha256.try_into().map_err(unseen)?;
    Ok(Act::RebaseGuest(args::RebaseGuest { version: version.clone(), sha256, leaves }))
}

/// Whether data that stays behind is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaysBehind {
    Accepted,
    Refused,
}

/// What is signed about data on the root disk.
pub fn leaves(
    host: &str,
    guests: &[GuestReport],
    asked: &str,
    given: StaysBehind,
    now: Timestamp,
) -> Result<LeftBehind, JobDraftError> {
    let uid = seen(host, guests, asked)?.uid;
    let guest = guests.iter().find(|guest| guest.uid == Some(uid));
    let known = Knowledge::of(guest.and_then(|guest| guest.root_disk_data.as_ref()), now);
    match (given, LeftBehind::Nothing.covers(known)) {
        (StaysBehind::Refused, Err(uncovered)) => Err(JobDraftError::StaysBehind {
            guest: asked.to_owned(),
            why: uncovered.to_string(),
            list: match known {
                Knowledge::Data(_) => format!(" ({})", render::root_disk::lines(known, now).join("; ")),
                Knowledge::NoData | Knowledge::Unknown(_) => String::new(),
            },
        }),
        (StaysBehind::Accepted, _) | (_, Ok(())) => Ok(LeftBehind::accepted(known)),
    }
}

/// A guest as the host sees it, by its name, uid or VMID.
fn seen(host: &str, guests: &[GuestReport], asked: &str) -> Result<SeenGuest, JobDraftError> {
    let is = |guest: &&GuestReport| {
        guest.name == asked
            || guest.uid.is_some_and(|uid| uid.to_string() == asked)
            || guest.vmid.is_some_and(|vmid| vmid.to_string() == asked)
    };
    let mut found = guests.iter().filter(|guest| guest.uid.is_some()).filter(is);
    let unseen = |why| JobDraftError::Unseen { host: host.to_owned(), asked: asked.to_owned(), why };
    let guest = match (found.next(), found.next()) {
        (Some(guest), None) => guest,
        (None, _) => return Err(unseen("no guest has this name, uid or VMID")),
        (Some(_), Some(_)) => return Err(unseen("several have this name: give the uid")),
    };
    let (Some(uid), Some(vmid), Ok(name)) = (guest.uid, guest.vmid, guest.name.parse()) else {
        return Err(unseen("it has no VMID yet"));
    };
    if guest.volumes.is_empty() {
        return Err(unseen("its volumes are not reported, so the job would not name them"));
    }
    let Some(customer) = guest.customer.clone() else {
        return Err(unseen("its agent does not report the customer: update the agent"));
    };
    let volumes = guest.volumes.iter().cloned().collect();
    let fingerprint = Fingerprint { name, customer: Some(customer), volumes };
    Ok(SeenGuest { uid, vmid, fingerprint })
}

fn called(draft: &Draft, asked: &str) -> bool {
    let guest = match &draft.target {
        Target::Guest { vmid, fingerprint, .. } => {
            fingerprint.name.as_str() == asked || vmid.is_some_and(|vmid| vmid.to_string() == asked)
        }
        Target::Host {} => match &draft.act {
            Act::AllowGrowth(growth) => growth.name.as_str() == asked,
            act => storage(act).is_some_and(|name| name.as_str() == asked),
        },
    };
    guest || draft.act.verb().as_str() == asked
}

/// Completes a draft: valid from now for this many hours, with its own id and nonce.
pub fn complete(
    draft: Draft,
    shown: &ShownHost,
    hours: u32,
    reason: Reason,
    now: Timestamp,
) -> Result<Payload, JobDraftError> {
    if hours == 0 || i64::from(hours) > LIFE_MAX_S / 3_600 {
        return Err(JobDraftError::Life);
    }
    let from = UtcSecond::new(now - EARLY).map_err(JobDraftError::Clock)?;
    let until = from.at() + SignedDuration::from_hours(i64::from(hours));
    Ok(draft.ordered(Order {
        job_id: JobId::new(Uuid::new_v4()),
        host_id: shown.id,
        host_epoch: shown.epoch,
        host: Some(shown.seen()),
        not_before: from,
        expires_at: UtcSecond::new(until).map_err(JobDraftError::Clock)?,
        nonce: nonce()?,
        reason,
    }))
}

/// An approval of an image for all hosts: valid from now for this many days, with its own id and nonce.
pub fn image_approval(
    (version, sha256): (GoldenVersion, Sha256Text),
    days: u32,
    reason: Reason,
    now: Timestamp,
) -> Result<ImageApproval, JobDraftError> {
    let from = UtcSecond::new(now - EARLY).map_err(JobDraftError::Clock)?;
    let until = from.at() + SignedDuration::from_hours(i64::from(days) * 24);
    Ok(ImageApproval {
        job_id: JobId::new(Uuid::new_v4()),
        version,
        sha256,
        not_before: from,
        expires_at: UtcSecond::new(until).map_err(JobDraftError::Clock)?,
        nonce: nonce()?,
        reason,
    })
}

fn nonce() -> Result<Nonce, JobDraftError> {
    let text = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    Nonce::try_from(text).map_err(JobDraftError::Clock)
}

/// The storage target that an act is about.
const fn storage(act: &Act) -> Option<&TargetName> {
    match act {
        Act::AttachStorage(args) => Some(&args.to.name),
        Act::DetachStorage(args) => Some(&args.from.name),
        _ => None,
    }
}

/// What a person types to say that they mean it: the guest's name, the storage's, or the host's.
pub fn name_to_type<'a>(payload: &'a Payload, host: &'a str) -> &'a str {
    match &payload.target {
        Target::Guest { fingerprint, .. } => fingerprint.name.as_str(),
        Target::Host {} => match &payload.act {
            Act::AllowGrowth(growth) => growth.name.as_str(),
            act => storage(act).map_or(host, TargetName::as_str),
        },
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::id::HostId;
    use holdfast_protocol::job::{HostEpoch, Verb};

    use super::*;
    use crate::render::samples;

    #[test]
    fn a_waiting_entry_is_chosen_by_number_guest_or_verb() {
        let all = samples::waiting_to_sign();
        let verb =
            |asked: Option<&str>| choose("box7", &all, asked).map(|(place, draft)| (place, draft.act.verb()));
        for asked in ["1", "web-1", "120", "destroy_guest", "018f3c1e-6b1f-7c1d-9d0a-000000000001"] {
            assert_eq!(verb(Some(asked)).unwrap(), (0, Verb::DestroyGuest), "{asked}");
        }
        assert_eq!(verb(Some("release_brake")).unwrap(), (1, Verb::ReleaseBrake));
        assert_eq!(verb(Some("web-7")).unwrap(), (5, Verb::AllowGrowth));
        assert!(matches!(verb(None), Err(JobDraftError::Which { .. })));
        assert!(matches!(verb(Some("web-9")), Err(JobDraftError::NoSuch { .. })));
        assert!(matches!(verb(Some("0")), Err(JobDraftError::NoSuch { .. })));
        assert!(matches!(verb(Some("3")), Err(JobDraftError::ByHand(_))));
        assert!(matches!(verb(Some("4")), Err(JobDraftError::Unreadable { .. })));
        assert!(matches!(choose("box7", &[], None), Err(JobDraftError::Nothing { .. })));
    }

    #[test]
    fn each_payload_has_a_new_id_and_the_given_lifetime() {
        let (_, draft) = choose("box7", &samples::waiting_to_sign(), Some("1")).unwrap();
        let reason: Reason = "the customer left".to_owned().try_into().unwrap();
        let host = ShownHost {
            name: "box7".parse().unwrap(),
            id: HostId::new(Uuid::nil()),
            epoch: HostEpoch::new(7),
            key: format!("age1{}", "q".repeat(58)).parse().unwrap(),
        };
        let make = |hours| complete(draft.clone(), &host, hours, reason.clone(), samples::now());
        let (one, two) = (make(8).unwrap(), make(8).unwrap());
        assert!(one.job_id != two.job_id && one.nonce != two.nonce);
        assert_eq!(one.host, Some(host.seen()), "the box compares it with itself");
        assert_eq!(one.expires_at.second() - one.not_before.second(), 8 * 3_600);
        assert_eq!(Payload::parse(one.to_json().unwrap().as_bytes()).unwrap(), one);
        assert!(make(24).is_ok() && make(0).is_err() && make(25).is_err());
        assert_eq!(name_to_type(&one, "box7"), "web-1");
    }
}
