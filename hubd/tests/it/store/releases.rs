//! Releases by version, with bounds, for hosts and operators.

use holdfast_protocol::id::HostId;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::stored::OfferedRelease;
use holdfast_protocol::release::{ReleaseManifest, VersionNumber};
use hubd::domain::identity::{IdentityError, Presented};
use hubd::domain::release::ReleasePutError;
use hubd::domain::release_offer::OfferError;
use hubd::store::{AskingHost, NewRelease, WriteError};

use super::fixture::{CORRELATION, Fixture, at, by, claiming, fresh_key, host_id, named};
use crate::releases::{program, release};

pub fn new(patch: u32, day: u8, files: &[(&str, &[u8])]) -> NewRelease {
    let release = release(patch, day, files);
    NewRelease {
        manifest: ReleaseManifest::parse(&release.manifest).unwrap(),
        manifest_sha256: Sha256Text::of(&release.manifest),
        signatures: 1,
        signed: release.to_json().unwrap(),
    }
}

pub async fn a_release_is_kept_replaced_by_a_later_one_and_deleted(fixture: Fixture) {
    let store = &fixture.store;
    let (one, two) = (program(10), program(20));
    let first = new(1, 1, &[("agentd", &one), ("a.deb", &two)]);
    let kept = store.put_release(by(1), first.clone(), 120).await.ok().unwrap();
    assert_eq!((kept.put_at, kept.files.len(), kept.by.as_str()), (at(1), 2, "eve"));
    assert_eq!(kept.files, first.manifest.files);
    assert_eq!(store.releases().await.unwrap(), std::slice::from_ref(&kept));
    let beyond = store.put_release(by(2), new(2, 1, &[("agentd", &program(1))]), 120).await;
    assert!(matches!(beyond, Err(WriteError::Refused(ReleasePutError::Bytes { bytes: 124, max: 120 }))));
    let other = store.put_release(by(2), new(1, 1, &[("agentd", &one)]), 120).await;
    assert!(matches!(other, Err(WriteError::Refused(ReleasePutError::Taken { .. }))));
    assert_eq!(store.releases().await.unwrap(), std::slice::from_ref(&kept), "a refusal changes nothing");
    assert_eq!(store.put_release(by(2), first, 120).await.ok().unwrap(), kept, "nor does the same once more");

    // A later one of that version names other files. The digest of the one that went is nobody's then.
    let later = new(1, 2, &[("agentd", &one)]);
    let put = store.put_release(claiming(3, "k", 1), later.clone(), 120).await.ok().unwrap();
    let again = store.put_release(claiming(9, "k", 1), later, 120).await.ok().unwrap();
    assert_eq!(put, again, "a repeat is the same answer");
    let (digest, gone) = (Sha256Text::of(&one), Sha256Text::of(&two));
    assert_eq!(store.artifact_size(digest.clone()).await.unwrap(), Some(40));
    assert_eq!(store.artifact_size(gone).await.unwrap(), None);
    assert_eq!(store.named_artifacts().await.unwrap(), [digest.clone()].into());

    assert_eq!(store.delete_release(by(4), put.version).await.ok().unwrap(), Some(put.clone()));
    assert_eq!(store.delete_release(by(5), put.version).await.ok().unwrap(), None);
    assert!(store.releases().await.unwrap().is_empty() && store.named_artifacts().await.unwrap().is_empty());
    assert_eq!(fixture.kinds().await, ["release_put", "release_put", "release_deleted"]);
}

pub async fn a_release_is_read_by_hosts_with_a_good_certificate(fixture: Fixture) {
    let store = &fixture.store;
    let file = program(10);
    let kept = new(1, 1, &[("agentd", &file)]);
    store.put_release(by(1), kept.clone(), u64::MAX).await.ok().unwrap();
    let host = fixture.box7().await;
    let asking = |host, generation| AskingHost {
        presented: Presented { host, generation },
        at: at(5),
        correlation: CORRELATION,
    };
    let digest = || Sha256Text::of(&file);
    assert_eq!(store.artifact_size_for_host(asking(host, 1), digest()).await.ok().unwrap(), Some(40));
    let text = store.release_for_host(asking(host, 1), kept.manifest.version).await.ok().unwrap();
    assert_eq!(text, Some(kept.signed.clone()));
    let naming = store.naming_release_for_host(asking(host, 1), digest()).await.ok().unwrap();
    assert_eq!(naming, Some(kept.signed));
    let naming = store.naming_release_for_host(asking(host, 1), Sha256Text::of(b"other")).await.ok().unwrap();
    assert_eq!(naming, None);
    let stranger = store.naming_release_for_host(asking(host_id(8), 1), digest()).await;
    assert!(matches!(stranger, Err(WriteError::Refused(IdentityError::Unknown))));
    let other = Sha256Text::of(b"other");
    assert_eq!(store.artifact_size_for_host(asking(host, 1), other).await.ok().unwrap(), None);
    let stranger = store.artifact_size_for_host(asking(host_id(8), 1), digest()).await;
    assert!(matches!(stranger, Err(WriteError::Refused(IdentityError::Unknown))));
    let stranger = store.release_for_host(asking(host_id(8), 1), kept.manifest.version).await;
    assert!(matches!(stranger, Err(WriteError::Refused(IdentityError::Unknown))));
}

fn asking(host: HostId) -> AskingHost {
    AskingHost { presented: Presented { host, generation: 1 }, at: at(5), correlation: CORRELATION }
}

pub async fn a_release_is_offered_to_one_host_and_withdrawn(fixture: Fixture) {
    let store = &fixture.store;
    let (box7, box8) = (fixture.box7().await, fixture.enrol("box8", host_id(8), &fresh_key()).await.host);
    let version = VersionNumber::new(2026, 11, 1);
    let unknown = store.offer_release(by(1), named("box7"), version).await;
    assert!(matches!(unknown, Err(WriteError::Refused(OfferError::Unknown { .. }))));
    let file = program(10);
    let kept = new(1, 1, &[("agentd", &file)]);
    store.put_release(by(1), kept.clone(), u64::MAX).await.ok().unwrap();
    store.put_release(by(1), new(2, 1, &[("agentd", &file)]), u64::MAX).await.ok().unwrap();
    assert_eq!(store.release_offered_to(asking(box7)).await.ok().unwrap().release, None);

    let offer = store.offer_release(by(2), named("box7"), version).await.ok().unwrap().unwrap();
    assert_eq!((offer.version, offer.by.as_str(), offer.at), (version, "eve", at(2)));
    let again = store.offer_release(by(3), named("box7"), version).await.ok().unwrap().unwrap();
    assert_eq!(again, offer, "the same once more changes nothing");
    let offered = OfferedRelease { version, manifest_sha256: kept.manifest_sha256 };
    assert_eq!(store.release_offered_to(asking(box7)).await.ok().unwrap().release, Some(offered));
    assert_eq!(
        store.release_offered_to(asking(box8)).await.ok().unwrap().release,
        None,
        "it is for one host"
    );
    let detail = store.host(named("box7"), at(6)).await.unwrap().unwrap();
    assert_eq!(detail.offer, Some(offer));

    let other = VersionNumber::new(2026, 11, 2);
    let offer = store.offer_release(by(4), named("box7"), other).await.ok().unwrap().unwrap();
    assert_eq!(store.release_offered_to(asking(box7)).await.ok().unwrap().release.unwrap().version, other);
    assert_eq!(store.offer_release(by(5), named("none"), other).await.ok().unwrap(), None);

    let withdrawn = store.withdraw_release_offer(by(6), named("box7")).await.ok().unwrap().unwrap();
    assert_eq!(withdrawn.offer, Some(offer));
    let again = store.withdraw_release_offer(by(7), named("box7")).await.ok().unwrap().unwrap();
    assert_eq!(again.offer, None);
    assert_eq!(store.withdraw_release_offer(by(7), named("none")).await.ok().unwrap(), None);
    assert_eq!(store.release_offered_to(asking(box7)).await.ok().unwrap().release, None);
    let stranger = store.release_offered_to(asking(host_id(9))).await;
    assert!(matches!(stranger, Err(WriteError::Refused(IdentityError::Unknown))));
    let kinds = fixture.kinds().await;
    let offers: Vec<&String> = kinds.iter().filter(|kind| kind.starts_with("release_offer")).collect();
    assert_eq!(offers, ["release_offered", "release_offered", "release_offer_withdrawn"]);

    store.revoke_host(by(8), named("box8")).await.ok().unwrap();
    let id = hubd::domain::host::HostRef::Id(box8);
    let revoked = store.offer_release(by(9), id, version).await;
    assert!(matches!(revoked, Err(WriteError::Refused(OfferError::Revoked))));
}

pub async fn offers_go_with_their_release_and_stay_with_another_edition(fixture: Fixture) {
    let store = &fixture.store;
    let box7 = fixture.box7().await;
    let box8 = fixture.enrol("box8", host_id(8), &fresh_key()).await.host;
    let (version, file) = (VersionNumber::new(2026, 11, 1), program(10));
    store.put_release(by(1), new(1, 1, &[("agentd", &file)]), u64::MAX).await.ok().unwrap();
    for name in ["box7", "box8"] {
        store.offer_release(by(2), named(name), version).await.ok().unwrap().unwrap();
    }
    let later = new(1, 2, &[("agentd", &file)]);
    store.put_release(by(3), later.clone(), u64::MAX).await.ok().unwrap();
    for host in [box7, box8] {
        let offered = store.release_offered_to(asking(host)).await.ok().unwrap().release.unwrap();
        assert_eq!(offered.manifest_sha256, later.manifest_sha256, "the newer manifest");
    }
    store.delete_release(by(4), version).await.ok().unwrap().unwrap();
    for (host, name) in [(box7, "box7"), (box8, "box8")] {
        assert_eq!(store.release_offered_to(asking(host)).await.ok().unwrap().release, None);
        assert_eq!(store.host(named(name), at(5)).await.unwrap().unwrap().offer, None);
    }
    let kinds = fixture.kinds().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "release_offer_withdrawn").count(), 2, "{kinds:?}");
    // A release of that version that comes later is offered to no host by itself.
    store.put_release(by(6), later, u64::MAX).await.ok().unwrap();
    assert_eq!(store.release_offered_to(asking(box7)).await.ok().unwrap().release, None);
}
