//! Conditions that do not exist, for explanations.

use alerts::explain::Sample;
use alerts::label::Labels;
use holdfast_protocol::alert::ExplainRequest;
use holdfast_protocol::condition::{
    CertificateUse, ConditionCode, DiskSerial, Subject, SubjectKind, TokenName,
};
use holdfast_protocol::id::{GuestName, GuestUid, JobId};
use holdfast_protocol::protection::Tier;
use uuid::Uuid;

use super::GuestLabels;

/// What a thing is called in an example.
const EXAMPLE: &str = "example";

/// Why a condition cannot be as the operator asks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    #[error("{0} is about the hub itself: leave the host out")]
    OfHub(ConditionCode),
    #[error("{0} is never about a guest: leave the guest out")]
    NotOfGuests(ConditionCode),
    #[error("a guest is of a host: say which host")]
    NoHost,
    #[error("the host reports no guest {0}")]
    NoGuest(GuestName),
    /// Our own fault.
    #[error("no example can be made of {0}")]
    NoExample(SubjectKind),
}

/// Whether only the hub itself can have it.
#[must_use]
pub fn is_of_hub(code: ConditionCode) -> bool {
    let of_hub = |kind: &SubjectKind| matches!(kind, SubjectKind::Hub | SubjectKind::Receiver);
    code.spec().subjects.iter().all(of_hub)
}

/// The condition that an operator asks about. `guests` are those of the host.
///
/// # Errors
/// [`SampleError`].
pub fn sample(request: &ExplainRequest, guests: &GuestLabels) -> Result<Sample, SampleError> {
    let ExplainRequest { code, host, guest, severity } = request;
    if host.is_some() && is_of_hub(*code) {
        return Err(SampleError::OfHub(*code));
    }
    let subjects = code.spec().subjects;
    let (kind, uid, labels) = match guest {
        None => (subjects.first().copied().unwrap_or(SubjectKind::Host), None, Labels::default()),
        Some(name) => {
            let of_guest = |kind: &&SubjectKind| matches!(kind, SubjectKind::Guest | SubjectKind::Tier);
            let kind = subjects.iter().find(of_guest).ok_or(SampleError::NotOfGuests(*code))?;
            if host.is_none() {
                return Err(SampleError::NoHost);
            }
            let known = guests.iter().find(|(_, labels)| labels.guest.as_ref() == Some(name));
            let (uid, labels) = known.ok_or_else(|| SampleError::NoGuest(name.clone()))?;
            (*kind, Some(*uid), labels.clone())
        }
    };
    let subject = subject(kind, uid).ok_or(SampleError::NoExample(kind))?;
    Ok(Sample { code: *code, subject, severity: *severity, labels })
}

fn subject(kind: SubjectKind, uid: Option<GuestUid>) -> Option<Subject> {
    let uid = uid.unwrap_or(GuestUid::new(Uuid::nil()));
    Some(match kind {
        SubjectKind::Host => Subject::Host {},
        SubjectKind::Guest => Subject::Guest { uid },
        SubjectKind::Tier => Subject::Tier { uid, tier: Tier::Local },
        SubjectKind::Policy => Subject::Policy { policy: EXAMPLE.parse().ok()? },
        SubjectKind::StorageTarget => Subject::StorageTarget { target: EXAMPLE.parse().ok()? },
        SubjectKind::Storage => Subject::Storage { storage: EXAMPLE.parse().ok()? },
        SubjectKind::Disk => Subject::Disk { serial: DiskSerial::try_from(EXAMPLE.to_owned()).ok()? },
        SubjectKind::Job => Subject::Job { job: JobId::new(Uuid::nil()) },
        SubjectKind::RecoveryCode => Subject::RecoveryCode { code: "1".parse().ok()? },
        SubjectKind::Certificate => Subject::Certificate { of: CertificateUse::Host },
        SubjectKind::Token => Subject::Token { token: TokenName::try_from(EXAMPLE.to_owned()).ok()? },
        SubjectKind::Receiver => Subject::Receiver { receiver: EXAMPLE.parse().ok()? },
        SubjectKind::Tunnel => Subject::Tunnel { tunnel: EXAMPLE.parse().ok()? },
        SubjectKind::Hub => Subject::Hub {},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(code: ConditionCode, host: Option<&str>, guest: Option<&str>) -> ExplainRequest {
        let guest = guest.map(|name| name.parse().unwrap());
        ExplainRequest { code, host: host.map(str::to_owned), guest, severity: None }
    }

    #[test]
    fn every_code_has_an_example_of_a_kind_that_the_table_allows() {
        for code in ConditionCode::ALL {
            let made = sample(&request(*code, None, None), &GuestLabels::default()).unwrap();
            assert!(code.spec().subjects.contains(&made.subject.kind()), "{code}");
        }
    }

    #[test]
    fn a_guest_comes_with_what_the_hub_knows_of_it_and_a_field_without_effect_is_refused() {
        let uid = GuestUid::new(Uuid::from_u128(7));
        let labels = Labels { customer: "acme".parse().ok(), guest: "web".parse().ok(), policy: None };
        let guests = GuestLabels::from([(uid, labels.clone())]);
        let made = sample(&request(ConditionCode::BackupLate, Some("box7"), Some("web")), &guests).unwrap();
        assert_eq!(made.subject, Subject::Tier { uid, tier: Tier::Local });
        assert_eq!(made.labels, labels);
        let refused = [
            (
                ConditionCode::GuestCrashed,
                Some("box7"),
                Some("db"),
                SampleError::NoGuest("db".parse().unwrap()),
            ),
            (ConditionCode::GuestCrashed, None, Some("web"), SampleError::NoHost),
            (
                ConditionCode::DiskFull,
                Some("box7"),
                Some("web"),
                SampleError::NotOfGuests(ConditionCode::DiskFull),
            ),
            (ConditionCode::HubDiskFull, Some("box7"), None, SampleError::OfHub(ConditionCode::HubDiskFull)),
        ];
        for (code, host, guest, error) in refused {
            assert_eq!(sample(&request(code, host, guest), &guests), Err(error));
        }
    }
}
