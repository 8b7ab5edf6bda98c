//! The honest operators and what they signed.
//!
//! In: an act and its target. Out: a signed text, which is recorded here, so that a judge knows what was ordered. Also
//! texts that were really signed but are not for this host, for a thief to try. The keys are numbers, so one seed
//! always signs the same bytes.

use std::collections::{BTreeMap, BTreeSet};

use agentd::port::store::roster::RosterTexts;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{GuestUid, HostId, JobId};
use holdfast_protocol::job::act::{BulkChange, Sha256Text, args};
use holdfast_protocol::job::{Act, Fingerprint, HostEpoch, Payload, SeenHost, Target, UtcSecond, Verb};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::pin::{Pin, PinKind};
use jiff::{SignedDuration, Timestamp};

use super::{growth, promise, still};
use crate::fixtures;
use crate::mailbox::own;
use crate::signer::{Signer, signed};

/// How long a signed text is valid.
const LIFE: SignedDuration = SignedDuration::from_hours(20);

/// Another host of the same operators.
pub const OTHER_HOST: u128 = 0x0190_6f3c_6b1f_7c1d_9d0a_2f6d_1c0b_7b99;

/// A job that was really signed for this host.
#[derive(Clone, Debug)]
pub struct Ordered {
    pub act: Act,
    /// To which guest.
    pub guest: Option<GuestUid>,
    /// To what, as the text shows it.
    pub target: Target,
    pub text: String,
    /// Until when it is good.
    pub until: Timestamp,
}

/// Which life of a host a job is for, and when it is signed.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub host: HostId,
    pub epoch: HostEpoch,
    pub at: Timestamp,
}

pub struct Desk {
    ada: Signer,
    bob: Signer,
    /// A former operator.
    pub carl: Signer,
    pub eve: Signer,
    version: u32,
    serial: u128,
    /// The orders, by their id.
    pub ordered: BTreeMap<JobId, Ordered>,
}

impl Default for Desk {
    fn default() -> Self {
        let [ada, bob, carl, eve] =
            [("ada", 1), ("bob", 2), ("carl", 3), ("eve", 4)].map(|(name, number)| Signer::of(name, number));
        Self { ada, bob, carl, eve, version: 1, serial: 0, ordered: BTreeMap::new() }
    }
}

/// The guest as it was made: its three volumes.
#[must_use]
pub fn target(n: u8) -> Target {
    let number = fixtures::target(n).vmid.number();
    seen(n, (0..3).map(|disk| format!("tank:{number}/vm-{number}-disk-{disk}.raw")).collect())
}

/// The guest as an operator sees it with these volumes.
#[must_use]
pub fn seen(n: u8, volumes: BTreeSet<String>) -> Target {
    let guest = fixtures::target(n);
    Target::Guest {
        uid: guest.uid,
        vmid: Some(guest.vmid),
        fingerprint: Fingerprint { name: guest.name, customer: Some(fixtures::guest(n).customer), volumes },
    }
}

impl Desk {
    fn operators(&self) -> String {
        let gone = "valid-before=\"20260101Z\"";
        [self.ada.line(""), self.bob.line(""), self.carl.line(gone)].concat()
    }

    fn policy(version: u32) -> String {
        format!(
            "version = {version}\n\
             [verbs.destroy_guest]\nsignatures = 2\ndelay_s = 600\nper_day = 3\n\
             [verbs.policy_update]\nsignatures = 2\ndelay_s = 300\nper_day = 5\n\
             [verbs.rollback]\ndelay_s = 300\nper_day = 5\n\
             {}{}{}",
            promise::LIMITS,
            still::POLICY,
            growth::POLICY
        )
    }

    /// The files that root wrote.
    #[must_use]
    pub fn laid_down(&self) -> RosterTexts {
        RosterTexts { operators: self.operators(), policy: Self::policy(1) }
    }

    /// A policy that is one version newer than the last.
    pub fn next_policy(&mut self) -> Act {
        self.version += 1;
        Act::PolicyUpdate(args::PolicyUpdate {
            signers: self.operators(),
            policy: Self::policy(self.version),
        })
    }

    fn payload(&mut self, moment: Moment, act: Act, target: Target) -> Payload {
        self.serial += 1;
        let id = uuid::Uuid::from_u128((0x0194_0000_0000_7000_8000 << 48) | self.serial);
        Payload {
            job_id: JobId::new(id),
            host_id: moment.host,
            host_epoch: moment.epoch,
            host: Some(own()),
            target,
            act,
            not_before: UtcSecond::new(moment.at).unwrap(),
            expires_at: UtcSecond::new(moment.at.checked_add(LIFE).unwrap()).unwrap(),
            nonce: format!("{:032x}", (1_u128 << 100) | self.serial).try_into().unwrap(),
            reason: "an operator asks for it".to_owned().try_into().unwrap(),
        }
    }

    fn signers(&self, verb: Verb) -> Vec<&Signer> {
        match verb {
            Verb::DestroyGuest | Verb::PolicyUpdate => vec![&self.ada, &self.bob],
            _ => vec![&self.ada],
        }
    }

    /// Signs for this host, with all the signatures it needs.
    pub fn order(&mut self, moment: Moment, act: Act, target: Target) -> (JobId, String) {
        let payload = self.payload(moment, act.clone(), target);
        let text = signed(&payload, &self.signers(act.verb()));
        let guest = match &payload.target {
            Target::Guest { uid, .. } => Some(*uid),
            Target::Host {} => None,
        };
        let target = payload.target.clone();
        let ordered = Ordered { act, guest, target, text: text.clone(), until: payload.expires_at.at() };
        self.ordered.insert(payload.job_id, ordered);
        (payload.job_id, text)
    }

    fn change(&self, n: u8) -> BulkChange {
        BulkChange { guest: fixtures::uid(n), name: fixtures::guest(n).name, operation: OperationKind::Stop }
    }

    /// Lets both guests be stopped by a document of that number, which the operators checked. The thief has another
    /// one.
    #[must_use]
    pub fn release(&self, generation: Generation) -> Act {
        Act::ReleaseBrake(args::ReleaseBrake {
            generation,
            document: Some(Sha256Text::of(b"what the operators looked at")),
            changes: [1, 2].map(|n| self.change(n)).into(),
        })
    }

    /// Texts that carry signatures and order nothing here.
    pub fn worthless(&mut self, moment: Moment) -> Vec<(&'static str, JobId, String)> {
        let other = Moment { host: HostId::new(uuid::Uuid::from_u128(OTHER_HOST)), ..moment };
        let later =
            Moment { at: moment.at.checked_add(SignedDuration::from_hours(40 * 24)).unwrap(), ..moment };
        let before = Moment { at: moment.at.checked_sub(SignedDuration::from_hours(48)).unwrap(), ..moment };
        let ages = Moment { epoch: HostEpoch::new(moment.epoch.number().wrapping_add(7)), ..moment };
        let weak = Act::PolicyUpdate(args::PolicyUpdate {
            signers: [self.operators(), self.eve.line("")].concat(),
            policy: "version = 900\n".to_owned(),
        });
        let destroy = || Act::DestroyGuest(args::DestroyGuest {});
        let mut all = Vec::new();
        let wholly = [
            ("for another host", other, destroy(), target(1)),
            ("for another host", other, weak.clone(), Target::Host {}),
            ("too early", later, destroy(), target(1)),
            ("over", before, destroy(), target(1)),
            ("of another life", ages, destroy(), target(1)),
        ];
        for (what, moment, act, target) in wholly {
            let payload = self.payload(moment, act.clone(), target);
            all.push((what, payload.job_id, signed(&payload, &self.signers(act.verb()))));
        }
        // The signer was shown this host's id under another host's name or key, or used an old command.
        let swapped = SeenHost { name: "box2".parse().unwrap(), ..own() };
        let exchanged = SeenHost { fingerprint: "0000-0000-0000-0000-0001".parse().unwrap(), ..own() };
        for (what, host) in [
            ("for a box of another name", Some(swapped)),
            ("for a box with another key", Some(exchanged)),
            ("for a box without a name", None),
        ] {
            let mut payload = self.payload(moment, destroy(), target(1));
            payload.host = host;
            let signers = self.signers(Verb::DestroyGuest);
            all.push((what, payload.job_id, signed(&payload, &signers)));
        }
        // Guests whose names the thief swapped; and orders that no running host follows.
        let [one, two] = [self.change(1), self.change(2)];
        let names =
            [BulkChange { name: two.name.clone(), ..one.clone() }, BulkChange { name: one.name, ..two }];
        let document = Some(Sha256Text::of(b"what the operators looked at"));
        let generation = Generation::new(1);
        let hosts = [
            (
                "for swapped guests",
                Act::ReleaseBrake(args::ReleaseBrake { generation, document, changes: names.into() }),
            ),
            (
                "under no document",
                Act::ReleaseBrake(args::ReleaseBrake { generation, document: None, changes: vec![] }),
            ),
            (
                "for a new box",
                Act::RestoreHost(args::RestoreHost { new_key: Some(Pin::of(PinKind::Spki, b"new")) }),
            ),
        ];
        for (what, act) in hosts {
            let payload = self.payload(moment, act.clone(), Target::Host {});
            all.push((what, payload.job_id, signed(&payload, &self.signers(act.verb()))));
        }
        let wrongly = [
            ("by nobody", destroy(), target(2), 0),
            ("by one who left", destroy(), target(2), 1),
            ("by too few", destroy(), target(2), 2),
            ("by too few", weak.clone(), Target::Host {}, 2),
            ("by nobody", weak, Target::Host {}, 0),
            ("by one twice", destroy(), target(1), 3),
        ];
        for (what, act, target, how) in wrongly {
            let payload = self.payload(moment, act, target);
            let signers = [
                vec![&self.eve, &self.ada],
                vec![&self.carl, &self.ada],
                vec![&self.ada],
                vec![&self.ada, &self.ada],
            ];
            all.push((what, payload.job_id, signed(&payload, &signers[how])));
        }
        all
    }
}
