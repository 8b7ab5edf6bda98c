//! Access to Proxmox's access control: commands or API.
//!
//! Input: a closed [`Read`] or [`Write`]. Output: JSON, or the secret that a new token comes with. Deliberately absent:
//! deciding anything.

use std::process::{Output, Stdio};
use std::time::Duration;

use holdfast_protocol::secret::Secret;
use net::tls::{TlsError, Trust, refusal};
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value as Json;
use zeroize::Zeroizing;

use super::current::Read;
use super::write::{ApiCall, Verb, Write};

/// A command or call waits at most this long. Proxmox itself gives up after 30 s.
const WAIT_MAX: Duration = Duration::from_secs(45);
/// The access lists of a large cluster stay far below.
const BODY_MAX: usize = 4 << 20;

/// Why Proxmox did not do it.
#[derive(Debug, thiserror::Error)]
pub enum WayError {
    /// The command is not there.
    #[error("`{program}` cannot be run: is this a Proxmox box? Elsewhere use --api URL or --print")]
    NoProgram {
        program: String,
        #[source]
        source: std::io::Error,
    },
    /// The command refused.
    #[error("`{line}` failed: {message}")]
    Command {
        /// The command.
        line: String,
        /// Its message.
        message: String,
    },
    /// The command or server took too long.
    #[error("`{what}` did not end within {} s: look at the load of the node", WAIT_MAX.as_secs())]
    Slow { what: String },
    /// The answer has an unknown form.
    #[error("the answer to `{what}` cannot be read: report this with the Proxmox version")]
    Answer { what: String },
    /// The credential is of no form we know.
    #[error(
        "the credential is neither an API token (user@realm!name=secret) nor a ticket and, on the next line, its CSRF token"
    )]
    Credential,
    #[error("TLS towards Proxmox cannot be set up")]
    Tls(#[source] TlsError),
    /// The server shows another key.
    #[error("the server is not the one that is pinned")]
    Pin(#[source] net::tls::Refusal),
    #[error("Proxmox at {url} does not answer: check the address and that pveproxy runs")]
    Unreachable {
        url: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("Proxmox refuses {what}: {status} {message}")]
    Refused {
        what: String,
        status: u16,
        /// Its message.
        message: String,
    },
}

/// One of the two ways.
pub enum Way {
    /// `pveum` and `pvesh`, as root on the node.
    Commands,
    /// The API, with a credential of a user who may change access control.
    Api(Api),
}

impl Way {
    /// Reads one list.
    pub async fn read(&self, read: Read, user: &str) -> Result<Json, WayError> {
        let path = read.path(user);
        match self {
            Self::Commands => {
                let words = ["pvesh", "get", path.as_str(), "--output-format", "json"].map(str::to_owned);
                let output = run(&words).await?;
                serde_json::from_slice(&output).map_err(|_| WayError::Answer { what: words.join(" ") })
            }
            Self::Api(api) => api.send(reqwest::Method::GET, &path, &[]).await,
        }
    }

    /// Makes one change. The secret of a new token is returned, once.
    pub async fn write(&self, write: &Write) -> Result<Option<Secret>, WayError> {
        let answer = self.change(&write.words(), &write.call()).await?;
        match write {
            Write::AddToken { .. } => secret_in(&answer, &write.line()).map(Some),
            _ => Ok(None),
        }
    }

    /// Makes one change, which both ways are given for. Its answer may hold a secret.
    pub async fn change(&self, words: &[String], call: &ApiCall) -> Result<Json, WayError> {
        match self {
            Self::Commands => {
                let output = Zeroizing::new(run(words).await?);
                // Only the making of a token answers with anything.
                Ok(serde_json::from_slice(&output).unwrap_or(Json::Null))
            }
            Self::Api(api) => {
                let method = match call.verb {
                    Verb::Post => reqwest::Method::POST,
                    Verb::Put => reqwest::Method::PUT,
                    Verb::Delete => reqwest::Method::DELETE,
                };
                api.send(method, &call.path, &call.params).await
            }
        }
    }
}

/// The secret of a new token.
pub fn secret_in(answer: &Json, what: &str) -> Result<Secret, WayError> {
    let secret = answer.get("value").and_then(Json::as_str).filter(|text| !text.is_empty());
    let secret = secret.ok_or_else(|| WayError::Answer { what: what.to_owned() })?;
    Ok(Secret::new(secret.to_owned()))
}

/// Runs a command to its end. Its arguments never hold a secret.
async fn run(words: &[String]) -> Result<Vec<u8>, WayError> {
    let line = words.join(" ");
    let (program, arguments) = words.split_first().ok_or_else(|| WayError::Answer { what: String::new() })?;
    #[expect(
        clippy::disallowed_methods,
        reason = "setup runs Proxmox's own pveum and pvesh, and useradd, once, as root"
    )]
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true).env("LC_ALL", "C.UTF-8");
    let ended = tokio::time::timeout(WAIT_MAX, command.output());
    let Output { status, stdout, stderr } =
        ended
            .await
            .map_err(|_| WayError::Slow { what: line.clone() })?
            .map_err(|source| WayError::NoProgram { program: program.clone(), source })?;
    if status.success() {
        return Ok(stdout);
    }
    let said = String::from_utf8_lossy(&stderr);
    let message = said
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("it said nothing")
        .trim()
        .to_owned();
    Err(WayError::Command { line, message })
}

/// Runs a command that is no part of Proxmox, for the steps on the host itself.
pub async fn run_local(words: &[String]) -> Result<(), WayError> {
    run(words).await.map(|_| ())
}

/// The API with an administrator's credential.
pub struct Api {
    base: String,
    client: reqwest::Client,
    headers: HeaderMap,
}

impl Api {
    /// Makes a client. Nothing is sent yet.
    ///
    /// # Errors
    /// When the credential or the trust cannot be used.
    pub fn new(url: &str, trust: &Trust, credential: &Secret) -> Result<Self, WayError> {
        let base = url.trim_end_matches('/').to_owned();
        let config = net::tls::client(trust).map_err(WayError::Tls)?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(config)
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .https_only(true)
            .connect_timeout(Duration::from_secs(5))
            .timeout(WAIT_MAX)
            // Each call is seldom and most are writes: a fresh connection each leaves no doubt whether one was sent.
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|source| WayError::Unreachable { url: base.clone(), source })?;
        Ok(Self { headers: headers(credential)?, base, client })
    }

    async fn send(
        &self,
        method: reqwest::Method,
        path: &str,
        params: &[(&str, String)],
    ) -> Result<Json, WayError> {
        let what = format!("{method} {path}");
        let url = format!("{}/api2/json{path}", self.base);
        let with_body = matches!(method, reqwest::Method::POST | reqwest::Method::PUT);
        let request = self.client.request(method, url).headers(self.headers.clone());
        let request = if with_body { request.form(params) } else { request.query(params) };
        let failed = |source: reqwest::Error| match refusal(&source) {
            Some(refused) => WayError::Pin(refused.clone()),
            None if source.is_timeout() && !source.is_connect() => WayError::Slow { what: what.clone() },
            None => WayError::Unreachable { url: self.base.clone(), source: source.without_url() },
        };
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status();
        let reason = response.extensions().get::<hyper::ext::ReasonPhrase>();
        let reason = reason.map(|phrase| String::from_utf8_lossy(phrase.as_bytes()).into_owned());
        // The body may hold a new secret.
        let mut body = Zeroizing::new(Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > BODY_MAX {
                return Err(WayError::Answer { what });
            }
            body.extend_from_slice(&chunk);
        }
        let mut frame: Json = serde_json::from_slice(&body).unwrap_or(Json::Null);
        if status.is_success() {
            return frame.get_mut("data").map(Json::take).ok_or(WayError::Answer { what });
        }
        let said = frame.get("message").and_then(Json::as_str).map(str::to_owned).or(reason);
        let errors = frame.get("errors").map(Json::to_string).unwrap_or_default();
        let message = format!("{} {errors}", said.unwrap_or_default().trim()).trim().to_owned();
        Err(WayError::Refused { what, status: status.as_u16(), message })
    }
}

/// A token in one line, or a ticket and its CSRF token in two.
fn headers(credential: &Secret) -> Result<HeaderMap, WayError> {
    let mut lines = credential.expose().lines().map(str::trim).filter(|line| !line.is_empty());
    let (first, second) = (lines.next().ok_or(WayError::Credential)?, lines.next());
    let value = |text: String| {
        let text = Zeroizing::new(text);
        let mut value = HeaderValue::from_str(&text).map_err(|_| WayError::Credential)?;
        value.set_sensitive(true);
        Ok(value)
    };
    let token = first.strip_prefix("PVEAPIToken=").unwrap_or(first);
    let mut headers = HeaderMap::new();
    match second {
        None if token.contains('!') && token.contains('=') => {
            headers.insert(AUTHORIZATION, value(format!("PVEAPIToken={token}"))?);
        }
        Some(csrf) if first.starts_with("PVE:") => {
            let cookie: String =
                percent_encoding::utf8_percent_encode(first, percent_encoding::NON_ALPHANUMERIC).collect();
            headers.insert(COOKIE, value(format!("PVEAuthCookie={cookie}"))?);
            headers.insert(HeaderName::from_static("csrfpreventiontoken"), value(csrf.to_owned())?);
        }
        _ => return Err(WayError::Credential),
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<HeaderMap, WayError> {
        headers(&Secret::new(text.to_owned()))
    }

    #[test]
    fn an_api_token_or_a_login_and_nothing_else() {
        assert_eq!(of("root@pam!lab=uuid\n").unwrap()[AUTHORIZATION], "PVEAPIToken=root@pam!lab=uuid");
        assert_eq!(
            of("PVEAPIToken=root@pam!lab=uuid").unwrap()[AUTHORIZATION],
            "PVEAPIToken=root@pam!lab=uuid"
        );
        let token = of("PVE:root@pam:6B011327::sig=\n6B000000:hash\n").unwrap();
        assert_eq!(token[COOKIE], "PVEAuthCookie=PVE%3Aroot%40pam%3A6B011327%3A%3Asig%3D");
        assert!(token[COOKIE].is_sensitive());
        for bad in ["", "root@pam", "root@pam!lab=uuid\nmore", "PVE:root@pam:6B011327::sig", "a!b=c\u{7f}"] {
            assert!(of(bad).is_err(), "{bad:?}");
        }
    }
}
