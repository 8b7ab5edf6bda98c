//! Tests with `openssl` and `curl` against hub and agent.
//!
//! Our own client and server could share a fault; these programs share no code with them. They check for TLS 1.3 and no
//! older version, no ticket and so nothing to resume, HTTP/1.1 and no other version, no redirect anywhere, and refusal
//! of calls that must be refused.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use e2e::document;
use serde_json::{Value, json};

use super::stand::{self, Stand, well};

/// Longer than any answer on one machine.
const SECONDS: &str = "30";

struct Judged {
    code: Option<i32>,
    /// Its output, both streams.
    text: String,
}

#[expect(clippy::disallowed_methods, reason = "the stock tools are the judges")]
fn run(program: &str, words: &[&str], input: &str) -> Judged {
    let mut command = Command::new("timeout");
    command.args([SECONDS, program]).args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{program} is needed: {error}"));
    // A program that refuses the handshake reads nothing.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert_ne!(status.code(), Some(124), "{program} {words:?} took too long: {text}");
    Judged { code: status.code(), text }
}

/// One of our listeners.
struct Listener<'a> {
    /// `address:port`.
    at: String,
    /// How curl comes to trust it.
    trust: [&'a str; 2],
    folder: &'a Path,
}

impl Listener<'_> {
    /// `openssl s_client` with these arguments; it requests the health of the listener.
    fn openssl(&self, words: &[&str]) -> Judged {
        let asks = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.at);
        run("openssl", &[&["s_client", "-connect", &self.at, "-ign_eof"], words].concat(), &asks)
    }

    /// `curl` with these arguments; returns the output of `format`.
    fn curl(&self, words: &[&str], path: &str, format: &str) -> Judged {
        let url = format!("https://{}{path}", self.at);
        let always = ["-q", "-sS", "--noproxy", "*", "-o", "/dev/null", "-w", format];
        run("curl", &[&always, &self.trust[..], words, &[&url]].concat(), "")
    }

    fn status(&self, words: &[&str], path: &str) -> String {
        self.curl(words, path, "%{http_code}").text
    }

    /// Checks that hold for every listener of ours.
    fn is_as_we_say(&self) {
        self.speaks_the_newest_tls_alone();
        self.gives_nothing_to_resume();
        self.speaks_one_http();
    }

    fn speaks_the_newest_tls_alone(&self) {
        let good = self.openssl(&["-tls1_3"]);
        assert!(good.text.contains("New, TLSv1.3") && good.text.contains("HTTP/1.1 200 OK"), "{}", good.text);
        for old in ["-tls1_2", "-tls1_1", "-tls1"] {
            let refused = self.openssl(&[old, "-cipher", "DEFAULT:@SECLEVEL=0"]);
            assert_ne!(refused.code, Some(0), "{old}: {}", refused.text);
            assert!(!refused.text.contains("HTTP/1.1"), "{old}: {}", refused.text);
        }
        let refused = self.openssl(&["-tls1_2"]);
        assert!(refused.text.contains("alert protocol version"), "{}", refused.text);
        assert_eq!(self.curl(&["--tls-max", "1.2"], "/healthz", "%{http_code}").code, Some(35));
        // The weakest that TLS 1.3 still names.
        let weak = self.openssl(&["-tls1_3", "-ciphersuites", "TLS_AES_128_CCM_8_SHA256"]);
        assert_ne!(weak.code, Some(0), "{}", weak.text);
    }

    fn gives_nothing_to_resume(&self) {
        let kept = self.folder.join(format!("session-{}", self.at.replace(':', "-")));
        let kept_text = kept.to_str().unwrap();
        let first = self.openssl(&["-tls1_3", "-sess_out", kept_text]);
        assert!(first.text.contains("HTTP/1.1 200 OK"), "{}", first.text);
        assert!(!first.text.contains("New Session Ticket"), "{}", first.text);
        assert!(std::fs::metadata(&kept).map_or(true, |file| file.len() == 0), "a session was kept");
        let again = self.openssl(&["-tls1_3", "-reconnect"]);
        assert!(again.text.contains("New, TLSv1.3") && !again.text.contains("Reused,"), "{}", again.text);
        assert!(!again.text.contains("Early data was accepted"), "{}", again.text);
    }

    fn speaks_one_http(&self) {
        let reported = self.curl(&["--http2"], "/healthz", "%{http_version} %{http_code}");
        assert_eq!((reported.code, reported.text.as_str()), (Some(0), "1.1 200"));
        let chosen = self.openssl(&["-tls1_3", "-alpn", "h2,http/1.1"]);
        assert!(chosen.text.contains("ALPN protocol: http/1.1"), "{}", chosen.text);
        let none = self.openssl(&["-tls1_3", "-alpn", "h2"]);
        assert!(none.code != Some(0) && !none.text.contains("HTTP/"), "{}", none.text);
        let prior = self.curl(&["--http2-prior-knowledge"], "/healthz", "%{http_version}");
        assert_ne!(prior.text, "2", "a second HTTP was spoken");
        // No client is redirected: neither from plain HTTP to TLS, nor anywhere else.
        let plain =
            run("curl", &["-q", "-sS", "-L", "--noproxy", "*", &format!("http://{}/healthz", self.at)], "");
        assert!(plain.code != Some(0), "{}", plain.text);
        // The pages of the hub alone send a browser on.
        for path in ["/healthz", "/healthz/", "/v1", "/v1/self", "/v1/hosts", "/index.html", "//"] {
            let led = self.curl(&["-L", "--path-as-is"], path, "%{num_redirects} %{redirect_url}");
            assert_eq!((led.code, led.text.trim()), (Some(0), "0"), "{path}");
        }
    }
}

/// Checks that only the local API promises.
fn turns_away(api: &Listener<'_>) {
    for (words, path, status) in [
        (&["-H", "Host: evil.example"][..], "/healthz", "421"),
        (&["-H", "Host;"], "/healthz", "421"),
        (&["--path-as-is"], "/v1/../healthz", "404"),
        (&["--path-as-is"], "//healthz", "404"),
        (&[], "/health%7a", "404"),
        (&["-I"], "/healthz", "405"),
        (&["-X", "OPTIONS"], "/healthz", "405"),
        (&["-H", "Transfer-Encoding: chunked", "-d", "{}"], "/v1/claim", "400"),
        (&[], "/v1/self", "401"),
        (&["-H", "Authorization: Bearer made-up"], "/v1/self", "401"),
        (&["-u", "root:made-up"], "/v1/self", "401"),
        (&[], "/v1/audit", "401"),
        (&["-d", "{}"], "/v1/claim", "400"),
        (&[], "/healthz", "200"),
    ] {
        assert_eq!(api.status(words, path), status, "{words:?} {path}");
    }
}

/// The folder of a guest that has its bootstrap, as the simulator keeps it.
fn guest_root(folder: &Path) -> Option<PathBuf> {
    if folder.join("var/lib/holdfast/bootstrap.json").is_file() {
        return Some(folder.to_owned());
    }
    let entries = std::fs::read_dir(folder).ok()?;
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).find_map(|inner| guest_root(&inner))
}

/// `guestd audit`, in the guest's place.
fn audit_of(stand: &Stand, root: &Path, from: &str, words: &[&str]) -> Judged {
    let programs = std::env::var_os("HOLDFAST_E2E_PROGRAMS").unwrap();
    let guestd = Path::new(&programs).join("guestd");
    let place = ["audit", "--root", root.to_str().unwrap(), "--source-address", from];
    let judged = run(guestd.to_str().unwrap(), &[&place[..], words].concat(), "");
    assert!(stand.stage.folder().exists());
    judged
}

#[test]
fn openssl_and_curl_find_our_listeners_as_we_say_and_a_guest_reads_its_records() {
    let stand = stand::running();
    let ground = stand.stage.ground();
    let scratch = tempfile::tempdir().unwrap();
    let ca = stand.stage.folder().join("hub/ca.pem");
    let ca = ca.to_str().unwrap();
    let hub = Listener {
        at: stand.stage.hub_address().to_owned(),
        trust: ["--cacert", ca],
        folder: scratch.path(),
    };
    hub.is_as_we_say();
    // By its CA and its name, and by nothing else.
    let checked = hub.openssl(&["-tls1_3", "-CAfile", ca, "-verify_return_error", "-verify_ip", "127.0.0.1"]);
    assert!(
        checked.code == Some(0) && checked.text.contains("Verify return code: 0 (ok)"),
        "{}",
        checked.text
    );
    let other = hub.openssl(&["-tls1_3", "-CAfile", ca, "-verify_return_error", "-verify_ip", "127.0.0.2"]);
    assert_ne!(other.code, Some(0), "{}", other.text);
    let strange = Listener { trust: ["--capath", "/etc/ssl/certs"], at: hub.at.clone(), folder: hub.folder };
    assert_eq!(strange.curl(&[], "/healthz", "%{http_code}").code, Some(60));

    // Self-signed and pinned by guests. So these programs can check only its protocol, not its certificate.
    let api =
        Listener { at: stand.stage.local_api().to_owned(), trust: ["-k", "-g"], folder: scratch.path() };
    api.is_as_we_say();
    turns_away(&api);

    let one = document::guest(&ground, 1, "one", "acme");
    let uid = one["uid"].as_str().unwrap().to_owned();
    stand.stage.apply(&json!({ "poll_interval_s": 5, "guests": [one] }), "one guest").unwrap();
    stand.stage.guests_until("one guest", |guests| guests.len() == 1 && guests.iter().all(well)).unwrap();
    let root = guest_root(&stand.stage.folder().join("sim")).expect("a guest with its bootstrap");
    let reported = audit_of(&stand, &root, "127.66.0.101", &["--output", "json"]);
    assert_eq!(reported.code, Some(0), "{}", reported.text);
    let page: Value = serde_json::from_str(&reported.text).unwrap();
    let records = page["records"].as_array().unwrap();
    assert!(records.len() > 5 && records.iter().all(|record| record["line"]["guest"] == *uid), "{page:#}");
    let table = audit_of(&stand, &root, "127.66.0.101", &[]).text;
    assert!(table.contains("claim_redeemed") && table.contains("the whole chain has"), "{table}");
    // The same from a neighbour's address: it counts as a second holder, is reported by name, and an operator lets the
    // guest in again.
    assert_ne!(audit_of(&stand, &root, "127.66.0.102", &[]).code, Some(0));
    let frozen = audit_of(&stand, &root, "127.66.0.101", &[]);
    assert!(frozen.code == Some(1) && frozen.text.contains("frozen"), "{}", frozen.text);
    let reported = |guests: &[Value]| guests.iter().any(|guest| guest.to_string().contains("FROZEN"));
    stand.stage.guests_until("the hub hears of it", reported).unwrap();
    stand.stage.agent_does(&["thaw", "one", "--reason", "the copy is gone"]).unwrap();
    let again = audit_of(&stand, &root, "127.66.0.101", &[]);
    assert!(again.code == Some(0) && again.text.contains("the copy is gone"), "{}", again.text);
}
