//! Tests of the CAs that an agent trusts.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, Issuer, KeyPair};

use super::*;

struct Ca {
    name: &'static str,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params
}

impl Ca {
    fn new(name: &'static str) -> Self {
        let key = KeyPair::generate().unwrap();
        Self { name, issuer: CertifiedIssuer::self_signed(params(name), key).unwrap() }
    }

    fn pem(&self) -> String {
        self.issuer.pem()
    }

    fn pin(&self) -> Pin {
        Pin::of(PinKind::Leaf, self.issuer.der())
    }

    /// The other CA's key, signed by this one.
    fn signs(&self, other: &Self) -> String {
        let issuer: &Issuer<'_, KeyPair> = &self.issuer;
        params(other.name).signed_by(other.issuer.key(), issuer).unwrap().pem()
    }
}

fn at(day: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + day * 86_400).unwrap()
}

fn enrolled(ca: &Ca) -> TrustedCas {
    TrustedCas { pem: ca.pem(), learned: Vec::new() }
}

fn both(first: &Ca, second: &Ca) -> String {
    first.pem() + &second.pem()
}

#[test]
fn a_renewal_without_a_change_changes_nothing() {
    let old = Ca::new("old");
    let held = enrolled(&old);
    let named = NamedCas { pem: &old.pem(), cross_pem: None };
    assert_eq!(next(&held, named, at(0)).unwrap(), held);
}

#[test]
fn a_new_ca_is_taken_with_the_old_ones_signature_alone() {
    let (old, new, strange) = (Ca::new("old"), Ca::new("new"), Ca::new("strange"));
    let (held, pem) = (enrolled(&old), both(&old, &new));
    let proof = old.signs(&new);
    let taken = next(&held, NamedCas { pem: &pem, cross_pem: Some(&proof) }, at(0)).unwrap();
    assert_eq!(pins(&taken.pem), [old.pin(), new.pin()]);
    assert_eq!(taken.learned, [LearnedCa { pin: new.pin(), at: at(0) }]);
    let bare = next(&held, NamedCas { pem: &pem, cross_pem: None }, at(0));
    assert_eq!(bare, Err(HubCaError::Unproven { pin: new.pin() }));
    for wrong in [strange.signs(&new), old.signs(&strange), new.pem(), "nothing".to_owned()] {
        let refused = next(&held, NamedCas { pem: &pem, cross_pem: Some(&wrong) }, at(0));
        assert!(matches!(refused, Err(HubCaError::Proof { .. })), "{refused:?}");
    }
    for torn in ["", "-----BEGIN", &pem.repeat(3)] {
        let refused = next(&held, NamedCas { pem: torn, cross_pem: Some(&proof) }, at(0));
        assert_eq!(refused, Err(HubCaError::Unreadable));
    }
}

#[test]
fn the_old_ca_stays_for_the_overlap_whatever_the_hub_says() {
    let (old, new) = (Ca::new("old"), Ca::new("new"));
    let proof = old.signs(&new);
    let alone = NamedCas { pem: &new.pem(), cross_pem: Some(&proof) };
    let mut held = next(&enrolled(&old), alone, at(0)).unwrap();
    for day in [1, 34] {
        held = next(&held, alone, at(day)).unwrap();
        assert_eq!(pins(&held.pem), [old.pin(), new.pin()], "day {day}");
    }
    held = next(&held, alone, at(35)).unwrap();
    assert_eq!(pins(&held.pem), [new.pin()]);
    // A CA that is named is never dropped: a change that lasts half a year.
    let slow =
        next(&enrolled(&old), NamedCas { pem: &both(&old, &new), cross_pem: Some(&proof) }, at(0)).unwrap();
    let slow = next(&slow, NamedCas { pem: &both(&old, &new), cross_pem: Some(&proof) }, at(180)).unwrap();
    assert_eq!(pins(&slow.pem), [old.pin(), new.pin()]);
}

#[test]
fn a_second_change_does_not_shorten_the_overlap_of_the_first() {
    let (old, first, second) = (Ca::new("old"), Ca::new("first"), Ca::new("second"));
    let proof = old.signs(&first);
    let held =
        next(&enrolled(&old), NamedCas { pem: &both(&old, &first), cross_pem: Some(&proof) }, at(0)).unwrap();
    let proof = first.signs(&second);
    let alone = NamedCas { pem: &second.pem(), cross_pem: Some(&proof) };
    let held = next(&held, alone, at(34)).unwrap();
    assert_eq!(pins(&held.pem), [old.pin(), first.pin(), second.pin()]);
    assert_eq!(next(&held, alone, at(36)).unwrap(), held);
    assert_eq!(pins(&next(&held, alone, at(69)).unwrap().pem), [second.pin()]);
}

#[test]
fn a_change_that_was_taken_back_leaves_the_old_ca() {
    let (old, new) = (Ca::new("old"), Ca::new("new"));
    let proof = old.signs(&new);
    let held =
        next(&enrolled(&old), NamedCas { pem: &both(&old, &new), cross_pem: Some(&proof) }, at(0)).unwrap();
    let back = NamedCas { pem: &old.pem(), cross_pem: None };
    assert_eq!(next(&held, back, at(10)).unwrap(), held);
    assert_eq!(next(&held, back, at(40)).unwrap(), enrolled(&old));
}

#[test]
fn an_agent_follows_only_so_many_changes() {
    let cas: Vec<Ca> = ["1", "2", "3", "4", "5"].map(Ca::new).into();
    let mut held = enrolled(&cas[0]);
    for (day, pair) in (0..).zip(cas.windows(2)) {
        let proof = pair[0].signs(&pair[1]);
        let taken = next(&held, NamedCas { pem: &pair[1].pem(), cross_pem: Some(&proof) }, at(day));
        match day {
            3 => assert_eq!(taken, Err(HubCaError::TooMany)),
            _ => held = taken.unwrap(),
        }
    }
    assert_eq!(pins(&held.pem)[0], cas[0].pin(), "the first one is still trusted");
}
