//! A hub process with a fleet, and tabs that look at it.

use std::cell::RefCell;
use std::path::Path;
use std::process::Stdio;
use std::rc::Rc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_protocol::enrol::{Enrolled, Invite, InviteRedemption};
use holdfast_protocol::operator::{InviteCreated, InviteRequest};
use holdfast_protocol::secret::Secret;
use holdfast_protocol::sign_in::{RecoveryCodes, SessionOpened, SignInLink, SignInState, TotpOffer};
use hubd::clock::{Clock as _, SystemClock};
use hubd::domain::sign_in::totp::{SECRET_BYTES, Step, TotpSecret};
use rcgen::KeyPair;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use x509_parser::pem::parse_x509_pem;

use crate::chromium::Chromium;
use crate::tab::Tab;
use crate::world::{Client, Host, client, csr};

pub const PASSWORD: &str = "seven green bottles";

pub struct Site {
    folder: TempDir,
    child: Child,
    pub url: String,
    ca_pem: String,
    chromium: Rc<RefCell<Chromium>>,
}

async fn started(folder: &Path, listen: &str) -> (Child, String) {
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log")).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the program under test")]
    let mut command = Command::new(env!("CARGO_BIN_EXE_hubd"));
    command.args(["serve", "--listen", listen, "--dir"]).arg(folder.join("hub"));
    command.kill_on_drop(true).stdin(Stdio::null()).env_remove("NOTIFY_SOCKET");
    let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let read = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some((_, url)) = line.split_once("is reached at ") {
                return url.to_owned();
            }
        }
        panic!("the hub does not start: {}", std::fs::read_to_string(folder.join("log")).unwrap())
    };
    let url = tokio::time::timeout(Duration::from_secs(60), read).await.expect("the hub starts");
    (child, url)
}

/// The digest of the key of the hub's own authority, as Chromium takes it.
fn authority(ca_pem: &str) -> String {
    let (_, pem) = parse_x509_pem(ca_pem.as_bytes()).unwrap();
    let certificate = pem.parse_x509().unwrap();
    STANDARD.encode(Sha256::digest(certificate.tbs_certificate.subject_pki.raw))
}

impl Site {
    /// A hub in a new folder. None where there is no browser.
    pub async fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (child, url) = started(folder.path(), "127.0.0.1:0").await;
        let ca_pem = std::fs::read_to_string(folder.path().join("hub/ca.pem")).unwrap();
        let chromium = Rc::new(RefCell::new(Chromium::start(&authority(&ca_pem))?));
        Some(Self { folder, child, url, ca_pem, chromium })
    }

    /// Ends the hub without warning.
    pub async fn kill(&mut self) {
        self.child.start_kill().unwrap();
        self.child.wait().await.unwrap();
    }

    /// Starts it again at the address that it had.
    pub async fn restart(&mut self) {
        let listen = self.url.strip_prefix("https://").unwrap().to_owned();
        self.child = started(self.folder.path(), &listen).await.0;
    }

    pub fn anyone(&self) -> Client {
        client(&self.ca_pem, &self.url, None)
    }

    pub fn admin(&self) -> Client {
        let token = std::fs::read_to_string(self.folder.path().join("hub/admin-token")).unwrap();
        self.anyone().with("authorization", &format!("Bearer {}", token.trim()))
    }

    pub async fn enrol(&self, name: &str) -> Host {
        let request = InviteRequest { host_name: name.parse().unwrap() };
        let made: InviteCreated =
            self.admin().send(Method::POST, "/v1/invites", &request).await.data(StatusCode::CREATED);
        let secret = Secret::new(Invite::open(&made.code).unwrap().secret.expose().to_owned());
        let key = KeyPair::generate().unwrap();
        let redemption = InviteRedemption { secret, csr_pem: csr(&key) };
        let enrolled: Enrolled =
            self.anyone().send(Method::POST, "/v1/enroll", &redemption).await.data(StatusCode::OK);
        let client = client(&self.ca_pem, &self.url, Some((&enrolled.certificate_pem, &key)));
        Host { enrolled, key, client, started_at: SystemClock.now() }
    }

    /// Makes a person without a way to sign in yet; gives the link with which that is set up.
    pub async fn person(&self, name: &str, role: &str, scope: Value) -> String {
        let request = json!({ "name": name, "role": role, "scope": scope, "days": 90 });
        let admin = self.admin();
        admin.send::<Value>(Method::POST, "/v1/operators", &request).await.data(StatusCode::CREATED);
        let path = format!("/v1/operators/{name}/sign-in-link");
        let link: SignInLink = admin.send(Method::POST, &path, &json!({})).await.data(StatusCode::CREATED);
        link.url.expose().to_owned()
    }

    /// A person with password and authenticator who has signed in; gives the client that has the cookie, and the cookie.
    pub async fn signed_in(&self, name: &str, role: &str, scope: Value) -> (Client, String) {
        let link = self.person(name, role, scope).await;
        let token = link.split_once('#').unwrap().1;
        let (setup, _) = self.session("/v1/sign-in-link", &json!({ "token": token })).await;
        let secret = json!({ "password": PASSWORD });
        setup.send::<SignInState>(Method::POST, "/v1/password", &secret).await.data(StatusCode::OK);
        let mut attempt = json!({ "name": name, "password": PASSWORD });
        if role == "admin" {
            let offer: TotpOffer =
                setup.send(Method::POST, "/v1/totp", &json!({})).await.data(StatusCode::OK);
            let codes: RecoveryCodes = setup
                .send(Method::POST, "/v1/totp/confirm", &json!({ "code": code(offer.secret.expose(), 0) }))
                .await
                .data(StatusCode::OK);
            // The authenticator's code counts once, and was spent just now.
            attempt["code"] = json!(codes.codes[0].expose());
        }
        self.session("/v1/login", &attempt).await
    }

    async fn session(&self, path: &str, body: &Value) -> (Client, String) {
        let opened = self.anyone().send::<SessionOpened>(Method::POST, path, body).await;
        let cookie = opened.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let csrf = opened.data(StatusCode::OK).csrf.expose().to_owned();
        let client = self.anyone().with("cookie", &cookie);
        (client.with(holdfast_protocol::sign_in::CSRF_HEADER, &csrf), cookie)
    }

    /// A tab in which nobody has signed in.
    pub fn tab(&self) -> Tab {
        Tab::open(&self.chromium, &self.url)
    }

    pub fn tab_of(&self, cookie: &str) -> Tab {
        let tab = self.tab();
        tab.set_cookie(cookie);
        tab
    }
}

/// The code that an authenticator with this secret shows, so many half minutes from now.
pub fn code(secret: &str, steps: i64) -> String {
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0);
    for letter in secret.bytes() {
        let five = if letter.is_ascii_digit() { letter - b'2' + 26 } else { letter - b'A' };
        held = held << 5 | u32::from(five);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    let secret = TotpSecret::new(<[u8; SECRET_BYTES]>::try_from(bytes).unwrap());
    let Step(present) = Step::at(SystemClock.now());
    secret.code(Step(present + steps)).to_string()
}
