//! Sign-in by `oidc-provider`, a certified provider of identities, run by node.
//!
//! It is installed from its lock file into cargo's folder for tests, once.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use holdfast_protocol::oidc::{ProviderLink, ProviderPerson};
use holdfast_protocol::operator::Role;
use reqwest::{Method, StatusCode, Url};

use crate::oidc::{BegunSignIn, PageSeen, begin, open, provider};
use crate::operators::operator;
use crate::world::{Options, World};

#[expect(clippy::disallowed_methods, reason = "node and npm")]
fn program(name: &str) -> Command {
    Command::new(name)
}

/// Whether node and npm are there. CI has them.
fn is_installed() -> bool {
    let found = ["node", "npm"].iter().all(|name| {
        program(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    });
    assert!(found || std::env::var_os("HOLDFAST_CI").is_none(), "CI has the packages nodejs and npm");
    found
}

/// The folder with the provider and what it needs.
fn installed() -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/oidc-provider");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("oidc-provider");
    std::fs::create_dir_all(&folder).unwrap();
    let lock = std::fs::read(sources.join("package-lock.json")).unwrap();
    let is_there = std::fs::read(folder.join("installed")).is_ok_and(|before| before == lock);
    for name in ["package.json", "package-lock.json", ".npmrc", "provider.mjs"] {
        std::fs::copy(sources.join(name), folder.join(name)).unwrap();
    }
    if !is_there {
        let done = program("npm").args(["ci", "--silent"]).current_dir(&folder).output().unwrap();
        assert!(done.status.success(), "npm ci: {}", String::from_utf8_lossy(&done.stderr));
        std::fs::write(folder.join("installed"), lock).unwrap();
    }
    folder
}

/// The provider, which ends with its standard input.
struct RealProvider {
    process: Child,
    input: Option<ChildStdin>,
    issuer: String,
}

impl Drop for RealProvider {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}

impl RealProvider {
    fn start(folder: &Path, redirect: &str, algorithm: &str) -> Self {
        let mut process = program("node")
            .args(["provider.mjs", redirect, algorithm])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("listening ").unwrap_or_else(|| panic!("{line:?}"));
        Self { issuer: format!("http://127.0.0.1:{port}"), process, input }
    }
}

/// What a person does at the provider: follows its pages as this one, and comes back.
async fn at_the_provider(begun: &BegunSignIn, login: &str) -> Url {
    let http = &begun.browser.http;
    let (mut url, mut jar) = (begun.url.clone(), Vec::<(String, String)>::new());
    let issuer = url.clone();
    for _ in 0..12 {
        if url.path().starts_with("/interaction/") {
            url.query_pairs_mut().append_pair("login", login);
        }
        let cookies: Vec<_> = jar.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer = http.get(url.clone()).header("cookie", cookies.join("; ")).send().await.unwrap();
        for set in answer.headers().get_all("set-cookie") {
            let (name, value) = set.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            jar.retain(|(one, _)| one != name);
            jar.push((name.to_owned(), value.to_owned()));
        }
        let location = answer.headers().get("location").map(|value| value.to_str().unwrap().to_owned());
        let status = answer.status();
        let Some(location) = location else { panic!("{status} {url}: {}", answer.text().await.unwrap()) };
        url = issuer.join(&location).unwrap();
        if url.path() == "/sign-in/oidc/callback" {
            return url;
        }
    }
    panic!("the provider never sends the browser back: {url}");
}

async fn back(begun: &BegunSignIn, url: &Url) -> PageSeen {
    open(&begun.browser, &format!("{}?{}", url.path(), url.query().unwrap())).await
}

/// A port that nothing listens on now: the provider must know the redirect before the hub is there.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn story(folder: &Path, algorithm: &str) {
    let listen = format!("127.0.0.1:{}", free_port());
    let real = RealProvider::start(folder, &format!("https://{listen}/sign-in/oidc/callback"), algorithm);
    let options = Options { provider: Some(provider(&real.issuer)), ..Options::default() };
    let world = World::with(Options { listen: listen.parse().unwrap(), ..options }).await;
    operator(&world, "ada", Role::Operator).await;
    let person = ProviderPerson::Claim { value: "ada@x.example".to_owned() };
    let path = "/v1/operators/ada/oidc";
    world.admin().send::<ProviderLink>(Method::PUT, path, &person).await.data(StatusCode::OK);
    // Ada's address is one that the provider vouches for; eve's is the same, and it is not.
    for (login, wanted, says) in [
        ("eve", StatusCode::UNAUTHORIZED, "link-oidc NAME"),
        ("ada", StatusCode::OK, "Signed in"),
        ("bob", StatusCode::OK, "Signed in"),
        ("", StatusCode::UNAUTHORIZED, "did not sign you in"),
    ] {
        let begun = begin(&world).await;
        let url = at_the_provider(&begun, login).await;
        let seen = back(&begun, &url).await;
        assert_eq!(seen.status, wanted, "{algorithm} {login}: {}", seen.html);
        assert!(seen.html.contains(says), "{algorithm} {login}: {}", seen.html);
        if wanted == StatusCode::OK {
            assert!(seen.cookie("__Host-holdfast-session").is_some());
            let again = back(&begun, &url).await;
            assert_eq!(again.status, StatusCode::UNAUTHORIZED, "a code is used once: {}", again.html);
        }
    }
    let link: ProviderLink = world.admin().get(path).await.data(StatusCode::OK);
    assert_eq!(link.person, ProviderPerson::Subject { subject: "ada".to_owned() });
    let bob: ProviderLink = world.admin().get("/v1/operators/bob/oidc").await.data(StatusCode::OK);
    assert_eq!(bob.origin, holdfast_protocol::oidc::LinkOrigin::Group);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certified_provider_vouches_for_its_persons() {
    if !is_installed() {
        return;
    }
    let folder = installed();
    for algorithm in ["RS256", "ES256", "EdDSA"] {
        story(&folder, algorithm).await;
    }
    // One that the hub does not take.
    let listen = format!("127.0.0.1:{}", free_port());
    let real = RealProvider::start(&folder, &format!("https://{listen}/sign-in/oidc/callback"), "PS256");
    let options = Options { provider: Some(provider(&real.issuer)), ..Options::default() };
    let world = World::with(Options { listen: listen.parse().unwrap(), ..options }).await;
    let begun = begin(&world).await;
    let seen = back(&begun, &at_the_provider(&begun, "bob").await).await;
    assert_eq!(seen.status, StatusCode::UNAUTHORIZED);
    assert!(seen.html.contains("PS256"), "{}", seen.html);
}
