//! Certificates of the host, and forged ones.
//!
//! In: a request for a certificate. Out: what a hub answers, right or wrong. Keys are random; nothing in a story depends on
//! what they are.

use agentd::port::identity::{Identity, IdentitySchema};
use holdfast_protocol::enrol::Enrolled;
use holdfast_protocol::id::HostId;
use holdfast_protocol::secret::Secret;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, CertifiedIssuer, IsCa, KeyPair,
};

use super::desk::OTHER_HOST;
use power_disk::dice::Dice;

/// How long a certificate lives here: short, so that it is renewed all the time.
const LIFE: SignedDuration = SignedDuration::from_hours(72);

type Ca = CertifiedIssuer<'static, KeyPair>;

/// The hub's CA, and its latest certificate.
pub struct Papers {
    ca: Ca,
    strange: Ca,
    pub host: HostId,
    generation: u32,
}

fn ca_params() -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn ca() -> Ca {
    CertifiedIssuer::self_signed(ca_params(), KeyPair::generate().unwrap()).unwrap()
}

impl Papers {
    /// Those of a hub with one host.
    #[must_use]
    pub fn new(host: HostId) -> Self {
        Self { ca: ca(), strange: ca(), host, generation: 1 }
    }

    /// The CA's certificate.
    #[must_use]
    pub fn ca_pem(&self) -> String {
        self.ca.pem()
    }

    fn enrolled(&self, certificate_pem: String, at: Timestamp) -> Enrolled {
        Enrolled {
            host_id: self.host,
            host_name: "box1".parse().unwrap(),
            certificate_pem,
            ca_pem: self.ca.pem(),
            ca_cross_pem: None,
            certificate_generation: self.generation,
            not_before: at,
            not_after: at.checked_add(LIFE).unwrap(),
        }
    }

    /// The identity of the host after its enrolment.
    #[must_use]
    pub fn identity(&self, at: Timestamp) -> Identity {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["agent".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.ca).unwrap().pem();
        Identity {
            schema: IdentitySchema::V1,
            hub: "https://hub.example:8443".to_owned(),
            key_pem: Secret::new(key.serialize_pem()),
            enrolled: self.enrolled(certificate, at),
            learned_cas: Vec::new(),
        }
    }

    /// The next certificate, as the rightful hub gives it.
    pub fn renewed(&mut self, csr_pem: &str, at: Timestamp) -> Enrolled {
        self.generation += 1;
        let csr = CertificateSigningRequestParams::from_pem(csr_pem).unwrap();
        self.enrolled(csr.signed_by(&*self.ca).unwrap().pem(), at)
    }

    /// A certificate that is wrong in one way.
    pub fn wrong(&mut self, dice: &mut Dice, csr_pem: &str, at: Timestamp) -> (Enrolled, &'static str) {
        let right = self.renewed(csr_pem, at);
        match dice.below(11) {
            0 | 1 => {
                let host_id = HostId::new(uuid::Uuid::from_u128(OTHER_HOST));
                (Enrolled { host_id, ..right }, "for another host")
            }
            2 => (self.enrolled(self.identity(at).enrolled.certificate_pem, at), "for another key"),
            3 => (Enrolled { ca_pem: self.strange.pem(), ..right }, "under another CA"),
            4 => (Enrolled { ca_pem: "-----BEGIN".to_owned(), ..right }, "with a torn CA"),
            9 | 10 => {
                // The thief has the CA's key, so the proof holds: the agent may add this CA, and must keep the old one.
                let cross = ca_params().signed_by(self.strange.key(), &*self.ca).unwrap().pem();
                (
                    Enrolled { ca_pem: self.strange.pem(), ca_cross_pem: Some(cross), ..right },
                    "under another CA, signed by this one",
                )
            }
            5 => (Enrolled { certificate_pem: String::new(), ..right }, "that is none"),
            6 => (Enrolled { certificate_generation: 0, ..right }, "of an older number"),
            7 => (Enrolled { not_after: Timestamp::UNIX_EPOCH, ..right }, "that is over"),
            _ => {
                let pem = format!("{}\ngarbage", right.certificate_pem);
                (Enrolled { certificate_pem: pem, ..right }, "with a tail")
            }
        }
    }
}
