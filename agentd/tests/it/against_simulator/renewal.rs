//! Tests of the renewal of tokens.
//!
//! It is cut off at each write, refused by the agent, and run without an agent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use agent_admin::doctor::{State, examine};
use agent_admin::token_renewal::{self, RenewTokensArguments, RenewTokensError};
use agentd::port::admin_socket::{self, Answer, Question, Request};
use agentd::port::pve::error::PveError;
use agentd::port::pve::{Pve, PveClient, Role};
use agentd::settings::Settings;
use agentd::task::token_exchange;
use clap::Parser;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::json::chain;
use pve_sim::fault::{Aim, Fault};
use pve_sim::in_process::{Ask, Reported, ask};
use serde_json::Value as Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use super::lab::{GOLDEN, Lab, request};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    renew: RenewTokensArguments,
}

/// A host that is set up, and what of its agent answers about tokens.
struct Host {
    lab: Lab,
    client: Arc<PveClient>,
    /// Whether the agent refuses what it is given.
    refuses: Arc<AtomicBool>,
    agent: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl Host {
    async fn start(more: &[&str]) -> Self {
        Self::at(Lab::start().await, more).await
    }

    async fn at(lab: Lab, more: &[&str]) -> Self {
        lab.setup(more).await.unwrap();
        let (client, settings) = lab.client();
        let (client, refuses) = (Arc::new(client), Arc::new(AtomicBool::new(false)));
        let host = Self { lab, client, refuses, agent: Mutex::new(None) };
        host.start_agent(settings);
        host
    }

    #[expect(clippy::disallowed_methods, reason = "the agent's half of a test ends with its runtime")]
    fn start_agent(&self, settings: Settings) {
        let listener = admin_socket::open(&settings.state.dir).unwrap();
        let agent = answer(listener, Arc::clone(&self.client), settings, Arc::clone(&self.refuses));
        *self.agent.lock().unwrap() = Some(tokio::spawn(agent));
    }

    async fn renew(&self, more: &[&str]) -> Result<(), RenewTokensError> {
        let (config, credential) = (self.lab.config(), self.lab.dir.path().join("credential"));
        let words =
            ["renew", "--api", &self.lab.sim.url, "--credential", credential.to_str().unwrap(), "--config"];
        let words = words.into_iter().chain([config.to_str().unwrap()]).chain(more.iter().copied());
        let arguments = Cli::try_parse_from(words).unwrap();
        tokio::task::spawn_blocking(move || token_renewal::run(&arguments.renew)).await.unwrap()
    }

    fn file(&self, role: &str) -> PathBuf {
        self.lab.dir.path().join("state/secrets").join(format!("proxmox-{role}"))
    }

    fn secret(&self, role: &str) -> String {
        std::fs::read_to_string(self.file(role)).unwrap()
    }

    fn ask(&self, path: &str) -> Json {
        let authorization = format!("PVEAPIToken=root@pam!lab={}", self.lab.sim.tokens["root@pam!lab"]);
        let question = Ask { method: "GET", path, params: &[], authorization: &authorization };
        let Reported::Answer { status: 200, body, .. } = ask(&self.lab.sim.node, &question) else {
            panic!("{path}")
        };
        serde_json::from_slice::<Json>(&body).unwrap()["data"].take()
    }

    /// The tokens of our user, by name.
    fn tokens(&self) -> Vec<String> {
        let list = self.ask("/api2/json/access/users/holdfast@pve/token");
        let mut names: Vec<String> =
            list.as_array().unwrap().iter().map(|row| row["tokenid"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    /// The entries of the access list, sorted.
    fn acl(&self) -> Vec<String> {
        let list = self.ask("/api2/json/access/acl");
        let mut rows: Vec<String> = list.as_array().unwrap().iter().map(ToString::to_string).collect();
        rows.sort();
        rows
    }

    fn arm(&self, method: &str, path: &str) {
        let on = Aim { method: method.to_owned(), path: path.to_owned() };
        self.lab.sim.node.faults.arm(Fault::LostReply { on });
    }

    /// Everything works, and is as `setup` made it.
    async fn is_whole(&self, acl: &[String], names: &[String]) {
        assert_eq!((self.tokens(), self.acl()), (names.to_vec(), acl.to_vec()));
        self.client.version().await.unwrap();
        let (fresh, settings) = self.lab.client();
        let checks = examine(&fresh, &settings).await;
        assert!(checks.iter().all(|check| check.state == State::Good), "{checks:#?}");
        for (role, token) in self.client.tokens() {
            assert_eq!(token.id, format!("holdfast@pve!{role}"));
            assert_eq!(
                token.secret.expose(),
                self.secret(role.text()),
                "{role}: the agent uses what lies there"
            );
        }
    }
}

/// What the agent's admin socket does with this question, on the agent's own code.
async fn answer(
    listener: UnixListener,
    client: Arc<PveClient>,
    settings: Settings,
    refuses: Arc<AtomicBool>,
) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(serde_json::from_slice::<Request>(&bytes).unwrap().question, Question::TakeTokens);
        let refused = |text: String| Answer::Refused(ErrorBody::new(ErrorCode::Unavailable, text));
        let stands_in = |settings: &Settings| {
            let read = |token: &agentd::settings::TokenSettings| token.read_token().unwrap().id;
            read(&settings.proxmox.tokens.observe).ends_with("-renewal")
        };
        let answer = if refuses.load(Ordering::SeqCst) && stands_in(&settings) {
            refused("not this one".to_owned())
        } else {
            match token_exchange::take(&client, &settings).await {
                Ok(tokens) => Answer::TokensInUse(tokens),
                Err(error) => refused(chain(&error).to_string()),
            }
        };
        stream.write_all(&serde_json::to_vec(&answer).unwrap()).await.unwrap();
    }
}

fn made_ago(file: &std::path::Path, days: u64) -> SystemTime {
    let file = std::fs::File::open(file).unwrap();
    let then = file.metadata().unwrap().modified().unwrap() - Duration::from_secs(days * 86_400);
    file.set_modified(then).unwrap();
    then
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_renewed_by_age_while_the_agent_uses_them() {
    let more = ["--scratch-pool", "--scratch-range", "700-709", "--target", "off1"];
    let host = Host::start(&more).await;
    let (acl, names) = (host.acl(), host.tokens());
    assert_eq!(names, ["allocate", "observe", "operate", "scratch", "storage"]);
    let before: BTreeMap<Role, String> = host
        .client
        .tokens()
        .into_iter()
        .map(|(role, token)| (role, token.secret.expose().to_owned()))
        .collect();
    let old = host.lab.client().0;

    host.renew(&[]).await.unwrap();
    assert_eq!(host.secret("observe"), before[&Role::Observe], "young tokens are left alone");
    made_ago(&host.file("operate"), 31);
    host.renew(&[]).await.unwrap();
    assert_ne!(host.secret("operate"), before[&Role::Operate]);
    assert_eq!(host.secret("observe"), before[&Role::Observe]);
    host.is_whole(&acl, &names).await;

    let sealed = std::fs::read(host.file("storage.sealed")).unwrap();
    host.renew(&["--now"]).await.unwrap();
    host.is_whole(&acl, &names).await;
    for (role, secret) in &before {
        assert_ne!(&host.secret(role.text()), secret, "{role}");
        let refused = old.permissions(*role, None).await.unwrap_err();
        assert!(matches!(refused, PveError::Unauthorised { .. }), "{role}: {refused:?}");
    }
    assert_ne!(std::fs::read(host.file("storage.sealed")).unwrap(), sealed);
    host.lab.setup(&more).await.unwrap();
    host.is_whole(&acl, &names).await;
}

/// Each write's answer is lost once, in both halves: as if the run had been killed right after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_cut_off_is_taken_up_by_the_next_one() {
    let host = Host::start(&[]).await;
    let (acl, names) = (host.acl(), host.tokens());
    let token = |name: &str| format!("/access/users/holdfast@pve/token/{name}");
    let cuts = [
        ("POST", token("observe-renewal")),
        ("PUT", "/access/acl".to_owned()),
        ("DELETE", token("observe")),
        ("DELETE", token("observe-renewal")),
    ];
    for (method, path) in &cuts {
        host.arm(method, path);
        let failed = host.renew(&["--now"]).await.unwrap_err();
        assert!(matches!(failed, RenewTokensError::Failed(1)), "{method} {path}: {failed:?}");
        host.client.version().await.unwrap();
        host.lab.client().0.version().await.unwrap();
        host.renew(&[]).await.unwrap();
        // What was cut off before the switch is undone, what was cut off after it is finished.
        host.is_whole(&acl, &names).await;
    }
    // The lasting token was removed and made anew, and its secret never arrived.
    host.arm("DELETE", &token("observe"));
    host.renew(&["--now"]).await.unwrap_err();
    assert!(!host.tokens().contains(&"observe".to_owned()));
    assert!(host.secret("observe").starts_with("holdfast@pve!observe-renewal="));
    host.arm("POST", &token("observe"));
    host.renew(&[]).await.unwrap_err();
    assert!(
        host.tokens().contains(&"observe".to_owned())
            && host.tokens().contains(&"observe-renewal".to_owned())
    );
    host.client.version().await.unwrap();
    host.renew(&[]).await.unwrap();
    host.is_whole(&acl, &names).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_the_agent_refuses_is_taken_back_and_stays_due() {
    let host = Host::start(&[]).await;
    let (acl, names, secret) = (host.acl(), host.tokens(), host.secret("observe"));
    let made = made_ago(&host.file("observe"), 40);
    host.refuses.store(true, Ordering::SeqCst);
    let failed = host.renew(&[]).await.unwrap_err();
    assert!(matches!(failed, RenewTokensError::Failed(1)), "{failed:?}");
    assert_eq!(host.secret("observe"), secret);
    let modified = std::fs::metadata(host.file("observe")).unwrap().modified().unwrap();
    assert_eq!(modified, made, "a renewal that failed makes nothing younger");
    host.is_whole(&acl, &names).await;
    host.refuses.store(false, Ordering::SeqCst);
    host.renew(&[]).await.unwrap();
    assert_ne!(host.secret("observe"), secret);
    host.is_whole(&acl, &names).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_agent_nothing_is_changed() {
    let host = Host::start(&[]).await;
    let (acl, names, secret) = (host.acl(), host.tokens(), host.secret("observe"));
    let agent = host.agent.lock().unwrap().take().unwrap();
    agent.abort();
    agent.await.unwrap_err();
    let failed = host.renew(&["--now"]).await.unwrap_err();
    assert_eq!(failed.exit_code(), 75, "{failed:?}");
    assert_eq!((host.acl(), host.tokens(), host.secret("observe")), (acl.clone(), names.clone(), secret));
    host.start_agent(host.lab.client().1);
    host.renew(&["--now"]).await.unwrap();
    host.is_whole(&acl, &names).await;
}

/// A task is followed and stopped with the token that began it: neither may go while it runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_with_a_running_task_is_left_alone() {
    let host = Host::at(Lab::paced(Duration::from_secs(3_600)).await, &[]).await;
    let (acl, names) = (host.acl(), host.tokens());
    let secrets = || ["observe", "operate", "allocate"].map(|role| host.secret(role));
    let before = secrets();
    let archive = format!("backup2:backup/{GOLDEN}");
    let upid = host.client.restore(&request(300, &archive)).await.unwrap();
    assert_eq!(upid.owner(), "holdfast@pve!allocate");
    host.renew(&["--now"]).await.unwrap();
    let after = secrets();
    assert!(before[0] != after[0] && before[1] != after[1] && before[2] == after[2]);
    host.is_whole(&acl, &names).await;
}
