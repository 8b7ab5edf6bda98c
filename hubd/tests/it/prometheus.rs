//! Debian's Prometheus with our page, rules and configuration.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use holdfast_protocol::condition::{ConditionCode, ConditionSet, ReportedCondition, Subject};
use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::report::Sections;
use hubd::clock::Clock as _;
use reqwest::StatusCode;
use serde_json::Value;
use uuid::Uuid;

use crate::metrics::reporting_host;
use crate::world::{World, until};

/// A program of Debian's.
#[expect(clippy::disallowed_methods, reason = "Debian's prometheus, promtool and curl")]
fn program(name: &str) -> Command {
    Command::new(name)
}

/// The files that we ship.
fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/prometheus")
}

/// Whether Debian's package `prometheus` is there. CI has it.
fn is_installed() -> bool {
    let found = ["prometheus", "promtool"].iter().all(|name| {
        program(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    });
    assert!(found || std::env::var_os("HOLDFAST_CI").is_none(), "CI has the package prometheus");
    found
}

/// Runs `promtool`, which must find nothing to say.
fn promtool(words: &[&str], input: &str) {
    let mut tool = program("promtool")
        .args(words)
        .current_dir(shipped())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    tool.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let done = tool.wait_with_output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "promtool {words:?}: {said}");
}

/// A Prometheus that ends with the test.
struct Prometheus {
    process: Child,
    url: String,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    fn start(folder: &Path, config: &str) -> Self {
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = program("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        Self { process, url: format!("http://127.0.0.1:{port}") }
    }

    async fn ask(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.url);
        let asked = tokio::task::spawn_blocking(|| program("curl").arg("--silent").arg(url).output());
        serde_json::from_slice(&asked.await.unwrap().unwrap().stdout).unwrap_or_default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_and_the_rules_are_accepted() {
    if !is_installed() {
        return;
    }
    let world = World::start().await;
    reporting_host(&world).await;
    promtool(&["check", "metrics"], &world.admin().text("/metrics").await);
    promtool(&["check", "rules", "holdfast.rules.yml"], "");
    promtool(&["test", "rules", "holdfast.rules.test.yml"], "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prometheus_scrapes_the_hub_and_a_rule_fires() {
    if !is_installed() {
        return;
    }
    let world = World::start().await;
    let host = reporting_host(&world).await;
    let since = world.clock.now();
    let wrong = ReportedCondition::new(ConditionCode::RecordsBroken, Subject::Host {}, since, "as it is");
    let sections = Sections { conditions: Some(ConditionSet::collect([wrong])), ..Sections::default() };
    host.check_in(&host.changed(2, 0, sections), "0s").await.data(StatusCode::OK);
    // Its grace is over.
    let now = world.clock.advance(60);
    world.store.advance_alerts(&world.term().await, now, CorrelationId::new(Uuid::nil()), 64).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("token"), world.token()).unwrap();
    std::fs::write(path("ca.pem"), &world.ca_pem).unwrap();
    let target = world.url.trim_start_matches("https://").to_owned();
    let config = std::fs::read_to_string(shipped().join("prometheus.yml")).unwrap();
    let config = config
        .replace("scrape_interval: 1m", "scrape_interval: 1s")
        .replace("/etc/prometheus/holdfast.token", path("token").to_str().unwrap())
        .replace("/etc/prometheus/holdfast-ca.pem", path("ca.pem").to_str().unwrap())
        .replace("hub.example:8443", &target)
        .replace("- holdfast.rules.yml", &format!("- {}", shipped().join("holdfast.rules.yml").display()));
    let config = format!("global:\n  evaluation_interval: 1s\n{config}");
    promtool(&["check", "config", "/dev/stdin"], &config);
    let prometheus = Prometheus::start(folder.path(), &config);
    until("the hub is scraped", || async {
        let up = prometheus.ask("/api/v1/query?query=holdfast_guest_running%7Bhost%3D%22box7%22%7D").await;
        up["data"]["result"][0]["value"][1] == "1"
    })
    .await;
    until("a rule fires", || async {
        let alerts = prometheus.ask("/api/v1/alerts").await;
        alerts["data"]["alerts"].as_array().is_some_and(|alerts| {
            alerts.iter().any(|alert| {
                alert["labels"]["alertname"] == "HoldfastCriticalAlert" && alert["state"] == "firing"
            })
        })
    })
    .await;
}
