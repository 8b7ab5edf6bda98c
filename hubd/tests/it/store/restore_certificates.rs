//! Restore certificates: countersigned once, bounded, and of the host's own key alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use holdfast_protocol::id::{GuestUid, HostId};
use hubd::authority::AgentKey;
use hubd::domain::identity::Presented;
use hubd::domain::restore_certificate::PutError;
use hubd::store::{
    CertificateDelivery, Checkin, Countersign, RestoreCertificateError, SectionTexts, WriteError,
};
use jiff::Timestamp;
use rcgen::KeyPair;
use restore_certificate::SigningKey;
use restore_certificate::countersign::{countersign, receive};
use uuid::Uuid;

use super::fixture::{CORRELATION, Fixture, at, checkin, host_id, named};
use crate::restore_certificates::{GUEST, document, signed};
use crate::world::csr;

/// What the hub signs with, and how often it did.
struct Counter(Arc<SigningKey>, Arc<AtomicU32>);

impl Counter {
    fn new() -> Self {
        let pair = KeyPair::generate().unwrap();
        Self(Arc::new(SigningKey::from_pkcs8(&pair.serialize_der()).unwrap()), Arc::default())
    }

    fn sign(&self) -> Countersign {
        let (key, count) = (Arc::clone(&self.0), Arc::clone(&self.1));
        Box::new(move |received, owner| {
            count.fetch_add(1, Ordering::Relaxed);
            countersign(received, owner, &key)
        })
    }

    fn count(&self) -> u32 {
        self.1.load(Ordering::Relaxed)
    }
}

fn delivery(host: HostId, key: &KeyPair, test: u128, tested_at: Timestamp) -> CertificateDelivery {
    CertificateDelivery {
        presented: Presented { host, generation: 1 },
        received: receive(signed(&document(host, GUEST, test, tested_at), key)).unwrap(),
        at: at(1000),
        correlation: CORRELATION,
    }
}

pub async fn a_restore_certificate_is_countersigned_once_and_two_are_kept(fixture: Fixture) {
    let store = &fixture.store;
    let key = KeyPair::generate().unwrap();
    let host = host_id(7);
    fixture.enrol("box7", host, &AgentKey::from_csr(&csr(&key)).unwrap()).await;
    let (counter, guest) = (Counter::new(), GuestUid::new(Uuid::from_u128(GUEST)));
    let put = async |test, second| {
        let delivery = delivery(host, &key, test, at(second));
        store.put_restore_certificate(delivery, counter.sign()).await
    };
    let unreported = put(50, 10).await;
    assert!(matches!(
        unreported,
        Err(WriteError::Refused(RestoreCertificateError::Put(PutError::Guest { .. })))
    ));
    assert_eq!(store.restore_certificate(named("box7"), guest).await.unwrap(), None);
    let guests = format!(r#"[{{"uid":"{guest}","name":"web-1","status":"managed"}}]"#);
    let sections = SectionTexts { guests: Some(guests), ..SectionTexts::default() };
    let reported = Checkin { sections, ..checkin(host, 1, 1) };
    store.check_in(reported).await.unwrap().unwrap();

    let kept = put(50, 10).await.ok().unwrap();
    let served = store.restore_certificate(named("box7"), guest).await.unwrap().unwrap();
    assert_eq!(put(50, 10).await.ok().unwrap(), kept, "a repeat is the same answer");
    let again = store.restore_certificate(named("box7"), guest).await.unwrap().unwrap();
    assert_eq!((again, counter.count()), (served, 1));

    for (test, second) in [(51, 20), (52, 30)] {
        put(test, second).await.ok().unwrap();
    }
    let newest = store.restore_certificate(named("box7"), guest).await.unwrap().unwrap();
    assert_eq!(newest.read().unwrap().test.ended_at.at(), at(30));
    put(51, 20).await.ok().unwrap();
    let old = put(50, 10).await;
    assert!(matches!(old, Err(WriteError::Refused(RestoreCertificateError::Put(PutError::Old { .. })))));
    assert_eq!(counter.count(), 3);

    let other = delivery(host, &KeyPair::generate().unwrap(), 53, at(40));
    let other = store.put_restore_certificate(other, counter.sign()).await;
    assert!(matches!(other, Err(WriteError::Refused(RestoreCertificateError::Put(PutError::Signer)))));
    let stranger = CertificateDelivery {
        presented: Presented { host: host_id(8), generation: 1 },
        ..delivery(host, &key, 53, at(40))
    };
    let stranger = store.put_restore_certificate(stranger, counter.sign()).await;
    assert!(matches!(stranger, Err(WriteError::Refused(RestoreCertificateError::Identity(_)))));
    assert_eq!(store.restore_certificate(named("box8"), guest).await.unwrap(), None);
}
