//! Tests of tokens of tunnels, handed over and carried over.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use holdfast_protocol::enrol::{SealingIdentity, request_fingerprint};
use holdfast_protocol::job::act::args::SetTunnelToken;
use holdfast_protocol::job::{Act, HostEpoch, Payload, SignedJob};
use holdfast_protocol::pin::{Pin, PinKind};
use holdfast_protocol::storage::HostRecipient;
use holdfast_seal::{HostKey, TunnelToken};
use serde_json::{Value, json};

use crate::apply::{HOST, detail};
use crate::fake_hub::{FakeHub, Reply, stderr, stdout};
use crate::sign::key;

const REQUEST: &str = "018f3c1e-6b1f-7c1d-9d0e-000000000001";
const TOKEN: &str = "eyJhIjoiaHVudGVyMiJ9";
const EPOCH: u32 = 1_794_000_000;

struct World {
    hub: FakeHub,
    folder: tempfile::TempDir,
    host: HostKey,
    ada: String,
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn own(host: &HostKey) -> SealingIdentity {
    SealingIdentity { recipient: host.recipient().unwrap(), epoch: HostEpoch::new(EPOCH) }
}

/// The request, with these keys.
fn request(key: Pin, sealing: Option<&SealingIdentity>, state: &str) -> Value {
    let mut view = json!({ "id": REQUEST, "claimed_name": "pve1", "fingerprint": request_fingerprint(key, sealing),
        "first_at": "2026-11-21T03:00:00Z", "state": state });
    if let Some(sealing) = sealing {
        view["key"] = json!(key);
        view["sealing"] = json!(sealing);
    }
    if state == "approved" {
        view["host"] = json!(HOST);
    }
    view
}

fn certificate() -> Pin {
    Pin::of(PinKind::Spki, b"the key of its certificate")
}

fn agent(recipient: &HostRecipient) -> Value {
    json!({ "agent": { "version": "0.1.0", "started_at": "2026-11-21T00:00:00Z", "problems": [], "recipient": recipient },
        "trust": { "epoch": EPOCH, "policy_version": 0, "audit": { "number": 3, "chain": "00" } } })
}

fn view() -> Value {
    json!({ "id": "018f3c1e-6b1f-7c1d-9d0d-000000000001", "by": "ada", "submitted_at": "2026-11-21T03:00:00Z",
        "bytes": 900, "queue_state": "queued" })
}

impl World {
    async fn new() -> Self {
        let (hub, folder) = (FakeHub::logged_in().await, tempfile::tempdir().unwrap());
        let ada = text(&key(folder.path(), "ada"));
        hub.on(&format!("POST /v1/hosts/{HOST}/jobs"), Reply::Data(view()));
        Self { hub, folder, host: HostKey::generate(), ada }
    }

    /// What the hub shows of the request, before and after its approval.
    fn shows(&self, sealing: Option<&SealingIdentity>) {
        let items = |state| json!({ "items": [request(certificate(), sealing, state)] });
        self.hub.on("GET /v1/enrollment-requests", Reply::Data(items("pending")));
        let approved = request(certificate(), sealing, "approved");
        self.hub.on(&format!("POST /v1/enrollment-requests/{REQUEST}/approve"), Reply::Data(approved));
        self.hub.on(&format!("GET /v1/hosts/{HOST}"), Reply::Data(detail(0, json!({}))));
    }

    fn run(&self, words: &[&str], input: &str) -> Output {
        let mut command = self.hub.command(words);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // One that refuses before it reads closes its end first.
        let _unread = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn approve(&self, fingerprint: Pin, more: &[&str]) -> Output {
        let fingerprint = fingerprint.to_string();
        let words = [
            "host",
            "approve",
            REQUEST,
            "box1",
            "--fingerprint",
            &fingerprint,
            "--tunnel-token",
            "cloudflared",
        ];
        let signing = ["--key", &self.ada, "--reason", "first token", "--confirm", "box1"];
        self.run(&[&words[..], &signing, more].concat(), &format!("{TOKEN}\n"))
    }

    fn approvals(&self) -> usize {
        self.hub.requests(&format!("POST /v1/enrollment-requests/{REQUEST}/approve")).len()
    }

    /// The orders that were left at the hub, with the tunnel that the hub was given for each.
    fn orders(&self) -> Vec<(Payload, SetTunnelToken, Value)> {
        let sent = self.hub.requests(&format!("POST /v1/hosts/{HOST}/jobs"));
        let read = sent.iter().map(|sent| {
            let job = SignedJob::parse(sent.body["blob"].as_str().unwrap().as_bytes()).unwrap();
            let payload = Payload::parse(&job.payload).unwrap();
            let args = match payload.act.clone() {
                Act::SetTunnelToken(args) => Some(args),
                _ => None,
            };
            (payload, args.unwrap(), sent.body["tunnel"].clone())
        });
        read.collect()
    }

    fn readers(&self, keys: &[&HostKey]) -> PathBuf {
        let lines: Vec<String> = keys.iter().map(|key| format!("{}\n", key.recipient().unwrap())).collect();
        let path = self.folder.path().join("recipients");
        std::fs::write(&path, format!("# who may carry tokens over\n{}", lines.concat())).unwrap();
        path
    }

    fn identity(&self, key: &HostKey) -> PathBuf {
        let path = self.folder.path().join("identity");
        std::fs::write(&path, format!("# created: today\n{}\n", key.to_text().expose())).unwrap();
        path
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_host_gets_the_token_of_its_tunnel_with_the_approval() {
    let world = World::new().await;
    let own = own(&world.host);
    world.shows(Some(&own));
    let output = world.approve(request_fingerprint(certificate(), Some(&own)), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("No copy for operators"), "{}", stderr(&output));
    assert!(!(stderr(&output) + &stdout(&output)).contains(TOKEN));
    let orders = world.orders();
    let [(payload, args, tunnel)] = orders.as_slice() else { panic!("{orders:?}") };
    assert_eq!(*tunnel, json!("cloudflared"), "the hub keeps it under this name");
    assert_eq!((payload.host_id.to_string().as_str(), payload.host_epoch), (HOST, own.epoch));
    let named = payload.host.as_ref().unwrap();
    assert_eq!(named.name.as_str(), "box1");
    assert_eq!(
        *named,
        holdfast_protocol::job::SeenHost::of(payload.host_id, named.name.clone(), &own.recipient)
    );
    let token = TunnelToken::open(&args.sealed, &world.host, &args.tunnel).unwrap();
    assert_eq!((token.token().expose(), args.copies.is_empty()), (TOKEN, true));
    // The same command again is a second order and the same approval.
    assert_eq!(world.approve(request_fingerprint(certificate(), Some(&own)), &[]).status.code(), Some(0));
    // From now on the host is known by the key that was compared.
    let other = HostKey::generate().recipient().unwrap();
    world.hub.on("GET /v1/hosts/box1", Reply::Data(detail(0, agent(&other))));
    let later = [
        "sign",
        "box1",
        "--tunnel-token",
        "cloudflared",
        "--key",
        &world.ada,
        "--reason",
        "why",
        "--confirm",
        "box1",
    ];
    let later = world.run(&[&later[..], &["--recipient", other.as_str()]].concat(), TOKEN);
    assert!(stderr(&later).contains("DIFFERENTLY THAN KNOWN"), "{}", stderr(&later));
}

/// A hub that puts its own key in the place of the host's shows another fingerprint, whatever it says of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_not_sealed_to_a_key_that_was_not_compared() {
    let read_on_the_host = |world: &World| request_fingerprint(certificate(), Some(&own(&world.host)));
    let world = World::new().await;
    let hubs = own(&HostKey::generate());
    let mut lie = request(certificate(), Some(&hubs), "pending");
    lie["fingerprint"] = json!(read_on_the_host(&world));
    world.hub.on("GET /v1/enrollment-requests", Reply::Data(json!({ "items": [lie] })));
    let output = world.approve(read_on_the_host(&world), &[]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing was sealed"), "{}", stderr(&output));
    assert_eq!((world.approvals(), world.orders().len()), (0, 0));
    // A request without such a key is approved without a token only.
    let world = World::new().await;
    world.shows(None);
    let output = world.approve(certificate(), &[]);
    assert!(stderr(&output).contains("does not say which key to seal for"), "{}", stderr(&output));
    assert_eq!((world.approvals(), world.orders().len()), (0, 0));
    // Nor is anything approved for another name, or for a text that is no token.
    let world = World::new().await;
    world.shows(Some(&own(&world.host)));
    let pin = read_on_the_host(&world).to_string();
    let words = ["host", "approve", REQUEST, "box1", "--fingerprint", &pin, "--tunnel-token", "cloudflared"];
    for (name, input) in [("box2", "token\n"), ("box1", "two words\n"), ("box1", "")] {
        let signing = ["--key", &world.ada, "--reason", "first token", "--confirm", name];
        let output = world.run(&[&words[..], &signing].concat(), input);
        assert_eq!(output.status.code(), Some(1), "{name} {input:?}: {}", stderr(&output));
    }
    assert_eq!((world.approvals(), world.orders().len()), (0, 0));
}

/// The order of the lost host, as the hub kept it, and the new host's report.
async fn lost(readers: &[&HostKey]) -> (World, Value) {
    let world = World::new().await;
    let own = own(&world.host);
    world.shows(Some(&own));
    let file = text(&world.readers(readers));
    let output = world.approve(request_fingerprint(certificate(), Some(&own)), &["--copy-for", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let sent = world.hub.requests(&format!("POST /v1/hosts/{HOST}/jobs"));
    let order = json!({ "job": sent[0].body["job"], "by": "ada", "submitted_at": "2026-11-21T03:00:00Z",
        "blob": sent[0].body["blob"] });
    // The new host has other keys; its operators looked at it.
    std::fs::remove_file(world.folder.path().join("recipients")).unwrap();
    (world, order)
}

impl World {
    fn carry_over(&self, new: &HostKey, identity: &Path, operators: &Path) -> Output {
        let recipient = new.recipient().unwrap();
        self.hub.on("GET /v1/hosts/box1", Reply::Data(detail(0, agent(&recipient))));
        let fingerprint = holdfast_protocol::job::HostFingerprint::of(
            HOST.parse().unwrap(),
            &"box1".parse().unwrap(),
            &recipient,
        );
        let pinned = self.run(&["host", "pin", "box1", "--fingerprint", fingerprint.as_str()], "");
        assert_eq!(pinned.status.code(), Some(0), "{}", stderr(&pinned));
        let words =
            ["sign", "box1", "--tunnel-token", "cloudflared", "--key", &self.ada, "--reason", "it burned"];
        let (identity, operators) = (text(identity), text(operators));
        let out = text(&self.folder.path().join(format!("job-{}.json", uuid())));
        let more = [
            "--confirm",
            "box1",
            "--recipient",
            recipient.as_str(),
            "--carry-over",
            &identity,
            "--operators",
            &operators,
            "--submit",
            "--out",
            &out,
        ];
        self.run(&[&words[..], &more].concat(), "")
    }

    fn operators(&self, name: &str, key: &str) -> PathBuf {
        let public = std::fs::read_to_string(Path::new(key).with_extension("pub")).unwrap();
        let path = self.folder.path().join(format!("operators-{name}"));
        std::fs::write(&path, format!("{name} {public}")).unwrap();
        path
    }
}

fn uuid() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_carried_over_to_a_host_that_replaces_a_lost_one() {
    let (ada_age, bob_age, new) = (HostKey::generate(), HostKey::generate(), HostKey::generate());
    let (world, order) = lost(&[&ada_age, &bob_age]).await;
    world.hub.on(&format!("GET /v1/hosts/{HOST}/tunnels/cloudflared/order"), Reply::Data(order));
    let operators = world.operators("ada", &world.ada);
    let output = world.carry_over(&new, &world.identity(&bob_age), &operators);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output) + &stdout(&output);
    assert!(said.contains("signed by ada") && said.contains("The lost host still has it"), "{said}");
    assert!(!said.contains(TOKEN), "{said}");
    let orders = world.orders();
    let (_, args, _) = orders.last().unwrap();
    assert_eq!(orders.len(), 2);
    assert_eq!(TunnelToken::open(&args.sealed, &new, &args.tunnel).unwrap().token().expose(), TOKEN);
    assert!(
        TunnelToken::open(&args.sealed, &world.host, &args.tunnel).is_err(),
        "the lost host cannot read it"
    );
}

/// Whoever holds the hub knows every public key: what it kept is believed by an operator's signature alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_order_that_no_operator_signed_is_not_carried_over() {
    let (age, stranger, new) = (HostKey::generate(), HostKey::generate(), HostKey::generate());
    let (world, order) = lost(&[&age]).await;
    let path = format!("GET /v1/hosts/{HOST}/tunnels/cloudflared/order");
    let bob = text(&key(world.folder.path(), "bob"));
    let (own, others) = (world.operators("ada", &world.ada), world.operators("bob", &bob));
    let refused = |output: Output, why: &str| {
        assert_ne!(output.status.code(), Some(0));
        assert!(stderr(&output).contains(why), "{why}: {}", stderr(&output));
    };
    // One answer for each command below.
    let mut unsigned = order.clone();
    let mut job: Value = serde_json::from_str(unsigned["blob"].as_str().unwrap()).unwrap();
    job["signatures"] = json!([]);
    unsigned["blob"] = json!(job.to_string());
    for answer in [order.clone(), order, unsigned] {
        world.hub.on(&path, Reply::Data(answer));
    }
    world.hub.on(&path, Reply::Error(404, "NOT_FOUND", "there is no such order of this tunnel"));
    refused(world.carry_over(&new, &world.identity(&age), &others), "allows none of these keys");
    refused(
        world.carry_over(&new, &world.identity(&stranger), &own),
        "no copy of the token is sealed for the key",
    );
    refused(world.carry_over(&new, &world.identity(&age), &own), "nothing was carried over");
    refused(world.carry_over(&new, &world.identity(&age), &own), "make a new token at the tunnel's provider");
    assert_eq!(world.orders().len(), 1, "only the first one");
}
