//! The requests of the hub's power-loss walk, and what holds afterwards.
//!
//! In: a running hub. Out: what is known of it, and what does not hold. Requests carry an idempotency key or are safe
//! to repeat, so a request without an answer is sent again unchanged.

use std::path::Path;
use std::pin::Pin;

use agentd::port::identity::{IdentityFolder, Purpose};
use holdfast_protocol::enrol::{Invite, InviteRedemption};
use holdfast_protocol::escrow::{EscrowBytes, form};
use holdfast_protocol::secret::Secret;
use hubd::domain::identity::Presented;
use serde_json::{Value, json};

use super::hub_client::{Ask, By, Client, NoAnswer};
use crate::world::folder;

/// The answers, as the caller remembers them.
#[derive(Default)]
pub(super) struct Session {
    /// How many requests of the list.
    pub(super) answered: usize,
    /// How many changes of files there were at the start's end, and after each answer.
    pub(super) answered_at: Vec<u64>,
    admin: String,
    csr_pem: String,
    invite: String,
    host: Option<Presented>,
    eve: String,
}

type Sent<'a> = Pin<Box<dyn Future<Output = Result<(), NoAnswer>> + 'a>>;

type Step = for<'a> fn(&'a Client<'a>, &'a mut Session) -> Sent<'a>;

/// All of them, by their names, in their order.
pub(super) const REQUESTS: [(&str, Step); 10] = [
    ("make an invite", |client, session| Box::pin(invite(client, session))),
    ("enroll", |client, session| Box::pin(enroll(client, session))),
    ("check in", |client, session| Box::pin(check_in(client, session, 1))),
    ("put a document", |client, session| Box::pin(put_desired(client, session, 1))),
    ("add an operator", |client, session| Box::pin(add_operator(client, session))),
    ("leave a job", |client, session| Box::pin(leave_job(client, session))),
    ("keep wrapped keys", |client, session| Box::pin(put_escrow(client, session))),
    ("put another document", |client, session| Box::pin(put_desired(client, session, 2))),
    ("check in again", |client, session| Box::pin(check_in(client, session, 2))),
    ("revoke the host", |client, session| Box::pin(revoke(client, session))),
];

const JOB: &str = "00000000-0000-0000-0000-000000000001";

impl Session {
    /// The token that the first admin reads in the file that the hub named. Once it was read, it must not change.
    pub(super) fn read_admin_token(&mut self, folder: &Path, named: Option<&Path>) -> Option<String> {
        let path = named.map_or_else(|| folder.join("hub").join(hubd::run::ADMIN_TOKEN_FILE), Path::to_owned);
        let token = match std::fs::read_to_string(&path) {
            Ok(text) => text.trim().to_owned(),
            Err(error) => return Some(format!("the hub has an admin, whose token is in no file: {error}")),
        };
        if !self.admin.is_empty() && self.admin != token {
            return Some("the first admin's token is another one".to_owned());
        }
        self.admin = token;
        None
    }

    fn agent(&self) -> By<'static> {
        self.host.map_or(By::Stranger, By::Agent)
    }
}

fn text(answer: &Value, field: &str) -> String {
    answer[field].as_str().unwrap_or_else(|| panic!("{field} in {answer}")).to_owned()
}

fn document(generation: u64) -> String {
    json!({ "schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 30, "guests": [] })
        .to_string()
}

fn wrapped_keys() -> Value {
    let age = "age-encryption.org/v1\n-> scrypt salt 16\nbody\n--- mac\nsealed";
    let fingerprint = ["ab"; 32].join(":");
    let file = EscrowBytes::try_from(form::to_text(age.as_bytes()).into_bytes()).unwrap();
    json!({
        "schema": "holdfast.escrow-put/v1",
        "number": 1,
        "sha256": file.sha256(),
        "file": file,
        "customer": "acme",
        "epoch": 1,
        "code": 1,
        "fingerprint": fingerprint,
        "made_at": "2026-11-22T12:00:00Z",
    })
}

async fn invite(client: &Client<'_>, session: &mut Session) -> Result<(), NoAnswer> {
    let body = json!({ "host_name": "box1" });
    let headers = [("idempotency-key", "invite-1")];
    let by = By::Operator(&session.admin);
    let ask = Ask { method: "POST", path: "/v1/invites", by, headers: &headers, body: &body };
    let answer = client.send(ask).await?;
    session.invite = text(&answer, "code");
    Ok(())
}

async fn enroll(client: &Client<'_>, session: &mut Session) -> Result<(), NoAnswer> {
    if session.csr_pem.is_empty() {
        let key = IdentityFolder::open(folder().path()).unwrap().pending(Purpose::Enrol).unwrap();
        session.csr_pem = key.csr_pem().unwrap();
    }
    let secret = Invite::open(&Secret::new(session.invite.clone())).unwrap().secret;
    let body = json!(InviteRedemption { secret, csr_pem: session.csr_pem.clone() });
    let ask = Ask { method: "POST", path: "/v1/enroll", by: By::Stranger, headers: &[], body: &body };
    let answer = client.send(ask).await?;
    let host = text(&answer, "host_id").parse().unwrap();
    let generation = answer["certificate_generation"].as_u64().unwrap().try_into().unwrap();
    session.host = Some(Presented { host, generation });
    Ok(())
}

async fn check_in(client: &Client<'_>, session: &mut Session, sequence: u64) -> Result<(), NoAnswer> {
    let agent = json!({ "version": "1.2.3", "started_at": "2026-11-22T12:00:00Z", "problems": [] });
    let body = json!({
        "schema": "holdfast.report/v1",
        "sequence": sequence,
        "held": 0,
        "coverage": "full",
        "sections": { "agent": agent, "guests": [] },
    });
    let path = "/v1/agent/checkin?wait=0s";
    let ask = Ask { method: "POST", path, by: session.agent(), headers: &[], body: &body };
    client.send(ask).await.map(drop)
}

async fn put_desired(client: &Client<'_>, session: &mut Session, generation: u64) -> Result<(), NoAnswer> {
    let body = json!({ "reason": "a walk", "document": document(generation) });
    let held = format!("\"{}\"", generation - 1);
    let key = format!("desired-{generation}");
    let headers = [("if-match", held.as_str()), ("idempotency-key", key.as_str())];
    let by = By::Operator(&session.admin);
    let ask = Ask { method: "PUT", path: "/v1/hosts/box1/desired", by, headers: &headers, body: &body };
    client.send(ask).await.map(drop)
}

async fn add_operator(client: &Client<'_>, session: &mut Session) -> Result<(), NoAnswer> {
    let body = json!({ "name": "eve", "role": "viewer", "days": 30 });
    let headers = [("idempotency-key", "operator-1")];
    let by = By::Operator(&session.admin);
    let ask = Ask { method: "POST", path: "/v1/operators", by, headers: &headers, body: &body };
    let answer = client.send(ask).await?;
    session.eve = text(&answer, "token");
    Ok(())
}

async fn leave_job(client: &Client<'_>, session: &mut Session) -> Result<(), NoAnswer> {
    let body = json!({ "job": JOB, "blob": "what the hub does not open" });
    let by = By::Operator(&session.admin);
    let ask = Ask { method: "POST", path: "/v1/hosts/box1/jobs", by, headers: &[], body: &body };
    client.send(ask).await.map(drop)
}

async fn put_escrow(client: &Client<'_>, session: &mut Session) -> Result<(), NoAnswer> {
    let body = wrapped_keys();
    let by = session.agent();
    let ask = Ask { method: "PUT", path: "/v1/agent/escrow", by, headers: &[], body: &body };
    client.send(ask).await.map(drop)
}

async fn revoke(client: &Client<'_>, session: &mut Session) -> Result<(), NoAnswer> {
    let headers = [("idempotency-key", "revoke-1")];
    let by = By::Operator(&session.admin);
    let ask = Ask { method: "POST", path: "/v1/hosts/box1/revoke", by, headers: &headers, body: &json!({}) };
    client.send(ask).await.map(drop)
}

const fn get<'a>(by: By<'a>, path: &'a str) -> Ask<'a> {
    Ask { method: "GET", path, by, headers: &[], body: &Value::Null }
}

/// How many requests must have been answered for it, the request that checks it, and the condition on the answer.
type Fact<'a> = (usize, Ask<'a>, &'a dyn Fn(&Value) -> bool);

/// Checks that the hub knows everything that was answered. Returns what it does not know.
pub(super) async fn check(client: &Client<'_>, session: &Session) -> Vec<String> {
    let admin = By::Operator(&session.admin);
    let eve = get(By::Operator(&session.eve), "/v1/whoami");
    // By its id: a host that is revoked has no name any more.
    let host = format!("/v1/hosts/{}", host_id(session));
    let (desired, jobs) = (format!("{host}/desired"), format!("{host}/jobs"));
    let versions = "/v1/agent/escrow/versions";
    let facts: [Fact<'_>; 8] = [
        (0, get(admin, "/v1/whoami"), &|who| who["name"] == "admin"),
        (2, get(admin, &host), &|host| host["host"]["id"] == host_id(session)),
        (3, get(admin, &host), &|host| host["sections"]["agent"]["version"] == "1.2.3"),
        (4, get(admin, &desired), &|found| found["generation"].as_u64() >= Some(1)),
        (5, eve, &|who| who["name"] == "eve"),
        (6, get(admin, &jobs), &|page| page["items"][0]["id"] == JOB),
        (7, get(session.agent(), versions), &|found| {
            found["versions"][0]["sha256"] == wrapped_keys()["sha256"]
        }),
        (8, get(admin, &desired), &|found| found["document"] == document(2)),
    ];
    let mut wrong = Vec::new();
    for (answered, ask, holds) in facts {
        let revoked = matches!(ask.by, By::Agent(_)) && session.answered >= REQUESTS.len() - 1;
        if session.answered < answered || revoked {
            continue;
        }
        let says = match client.send(ask).await {
            Ok(answer) if holds(&answer) => continue,
            // A loss of power during this request does not show what the hub knows.
            Err(NoAnswer::Failed) => continue,
            Ok(answer) => answer.to_string(),
            Err(NoAnswer::Refused(why)) => why,
        };
        let done = answered.checked_sub(1).and_then(|nth| REQUESTS.get(nth));
        let done = done.map_or("the first start", |(name, _)| *name);
        wrong.push(format!("{done} was answered, and then {} says {says}", ask.path));
    }
    if session.answered == REQUESTS.len() {
        let ask = get(session.agent(), versions);
        if client.send(ask).await.is_ok() {
            wrong.push("a revoked host is let in".to_owned());
        }
    }
    wrong
}

fn host_id(session: &Session) -> String {
    session.host.map(|host| host.host.to_string()).unwrap_or_default()
}
