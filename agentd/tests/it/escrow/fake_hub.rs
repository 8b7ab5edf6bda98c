//! A hub that stores wrapped keys, and lies on request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use agentd::port::host_replacement::HandOverFolder;
use agentd::port::hub::{Hub, Line, Posted};
use agentd::port::identity::IdentityFolder;
use agentd::task::escrow::HubCopies;
use holdfast_protocol::escrow::{EscrowBytes, EscrowPut, proof};
use holdfast_protocol::job::Nonce;
use net::client::Method;
use serde_json::{Value, json};

use crate::enrolled_agent;
use crate::escrow::place::Place;

/// What the hub holds, and how it behaves.
#[derive(Debug, Default)]
pub struct HeldFile {
    /// What was put, by the version.
    pub puts: BTreeMap<u32, EscrowPut>,
    /// The file that is stored in place of a version, and served as if it were that version.
    pub swapped: BTreeMap<u32, EscrowBytes>,
    /// Which versions were reported as opened, and when.
    pub opened: BTreeMap<u32, String>,
    /// What every question is answered with.
    pub refuses: Option<&'static str>,
    /// Whether only hashes are kept of what is put.
    pub forgets: bool,
}

/// A hub that answers as the real one does.
#[derive(Clone, Debug, Default)]
pub struct FakeHub(Arc<Mutex<HeldFile>>);

impl FakeHub {
    pub fn new() -> Self {
        Self::default()
    }

    /// Its records, to be looked at and lied in.
    pub fn held(&self) -> MutexGuard<'_, HeldFile> {
        self.0.lock().unwrap()
    }

    /// How an enrolled agent calls this hub.
    pub fn copies(&self, place: &Place) -> HubCopies {
        let state = place.path().join("state");
        let folder = IdentityFolder::open(&state).unwrap();
        enrolled_agent::enrol(&state);
        let line = self.clone();
        HubCopies {
            folder,
            handed: HandOverFolder::of(&state),
            dial: Arc::new(move |identity| Ok(Hub::over(Arc::new(line.clone()), &identity.hub))),
        }
    }

    /// What it says of a version.
    pub fn view(held: &HeldFile, put: &EscrowPut) -> Value {
        let number = put.number.number();
        let mut view = json!({ "number": number, "sha256": put.sha256, "bytes": put.file.as_bytes().len(),
            "customer": put.customer, "epoch": put.epoch, "code": put.code, "fingerprint": put.fingerprint,
            "made_at": put.made_at, "kept_at": "2026-11-22T12:00:00Z" });
        if let Some(at) = held.opened.get(&number) {
            view["opened_at"] = at.clone().into();
        }
        view
    }

    fn answer(&self, method: &Method, path: &str, body: &[u8]) -> (u16, Value, Value) {
        let mut held = self.held();
        let refused = |code: &str| (409, Value::Null, json!({ "code": code, "message": "no" }));
        if let Some(code) = held.refuses {
            return refused(code);
        }
        let rest = path.strip_prefix("/v1/agent/escrow").unwrap();
        match (method.as_str(), rest) {
            ("PUT", "") => {
                let put: EscrowPut = serde_json::from_slice(body).unwrap();
                assert_eq!(put.file.sha256(), put.sha256);
                let newest = held.puts.keys().max().copied().unwrap_or(0);
                match held.puts.get(&put.number.number()) {
                    Some(same) if *same == put => {}
                    Some(_) => return refused("ESCROW_TAKEN"),
                    None if put.number.number() < newest => return refused("ESCROW_NUMBER"),
                    None => drop(held.puts.insert(put.number.number(), put.clone())),
                }
                (200, json!({ "version": Self::view(&held, &put), "notice": "webhook" }), Value::Null)
            }
            ("GET", "/versions") => {
                let all: Vec<Value> = held.puts.values().rev().map(|put| Self::view(&held, put)).collect();
                (200, json!({ "versions": all, "notice": "webhook" }), Value::Null)
            }
            ("GET", rest) => {
                let (number, nonce) =
                    rest.strip_prefix("/versions/").unwrap().split_once("/proof?nonce=").unwrap();
                let number: u32 = number.parse().unwrap();
                let Some(put) = held.puts.get(&number) else { return refused("NOT_FOUND") };
                let file = held.swapped.get(&number).unwrap_or(&put.file);
                let hash = EscrowBytes::try_from(put.sha256.as_str().as_bytes().to_vec()).unwrap();
                let file = if held.forgets { &hash } else { file };
                let said = proof(&Nonce::try_from(nonce.to_owned()).unwrap(), file);
                (200, json!({ "number": number, "proof": said }), Value::Null)
            }
            ("POST", rest) => {
                let number = rest.strip_prefix("/versions/").unwrap().strip_suffix("/opened").unwrap();
                let number: u32 = number.parse().unwrap();
                let opened: Value = serde_json::from_slice(body).unwrap();
                held.opened.insert(number, opened["at"].as_str().unwrap().to_owned());
                let put = held.puts[&number].clone();
                (200, json!({ "version": Self::view(&held, &put), "notice": "webhook" }), Value::Null)
            }
            _ => refused("NOT_FOUND"),
        }
    }
}

impl Line for FakeHub {
    fn send<'a>(
        &'a self,
        method: Method,
        path: &'a str,
        body: Vec<u8>,
        _: std::time::Duration,
    ) -> Posted<'a> {
        let answer = enrolled_agent::answer(self.answer(&method, path, &body));
        Box::pin(async move { Ok(answer) })
    }
}
