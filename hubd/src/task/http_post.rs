//! Signed `POST` requests to servers of others.
//!
//! The signature is `x-holdfast-signature: sha256=<hex>` of HMAC-SHA256 over the body, with the receiver's own secret. While
//! a secret is replaced there are two, `sha256=<hex>,sha256=<hex>`: a receiver accepts a body when one of them fits.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::envelope::CORRELATION_ID_HEADER;
use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::json::chain;
use holdfast_protocol::secret::Secret;
use reqwest::header::CONTENT_TYPE;
use ring::hmac;

/// A receiver that takes longer is down.
const DELIVERY_WAIT: Duration = Duration::from_secs(10);

/// The signature of the body.
pub const SIGNATURE_HEADER: &str = "x-holdfast-signature";

/// What a receiver knows a repeat by.
pub const IDEMPOTENCY_HEADER: &str = "idempotency-key";

/// Where something is sent to.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    pub url: reqwest::Url,
    /// What its signatures are made with.
    pub secret: Secret,
    /// The secret before it, while the receiver may still know that alone.
    pub former_secret: Option<Secret>,
}

impl WebhookSettings {
    /// The signatures of a body, as the header has them.
    fn signatures(&self, body: &[u8]) -> String {
        let sign = |secret: &Secret| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
            format!("sha256={}", hex::encode(hmac::sign(&key, body)))
        };
        std::iter::once(&self.secret).chain(&self.former_secret).map(sign).collect::<Vec<_>>().join(",")
    }
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The system has no CA certificates.
    #[error("the system has no CA certificates to check a webhook's receiver by: install ca-certificates")]
    NoRoots,
    /// The TLS library refused.
    #[error("no TLS settings can be made for webhooks")]
    Tls(#[source] rustls::Error),
    /// The HTTP client cannot be made.
    #[error("no HTTP client can be made for webhooks")]
    Client(#[source] reqwest::Error),
}

#[derive(Clone, Debug)]
pub(super) struct Post {
    client: reqwest::Client,
}

impl Post {
    /// Made for these receivers.
    pub(super) fn new<'a>(
        receivers: impl IntoIterator<Item = &'a WebhookSettings>,
        provider: Arc<rustls::crypto::CryptoProvider>,
    ) -> Result<Self, WebhookError> {
        let mut roots = rustls::RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if added == 0 && receivers.into_iter().any(|receiver| receiver.url.scheme() == "https") {
            return Err(WebhookError::NoRoots);
        }
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(rustls::DEFAULT_VERSIONS)
            .map_err(WebhookError::Tls)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.resumption = rustls::client::Resumption::disabled();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(DELIVERY_WAIT)
            .build()
            .map_err(WebhookError::Client)?;
        Ok(Self { client })
    }

    /// Sends a body under its number. The error is text for the log.
    pub(super) async fn send(
        &self,
        to: &WebhookSettings,
        (header, number): (&'static str, u64),
        correlation: CorrelationId,
        body: Vec<u8>,
    ) -> Result<(), String> {
        let signatures = to.signatures(&body);
        let sent = self
            .client
            .post(to.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(header, number)
            // The same for each try, whatever hub makes it.
            .header(IDEMPOTENCY_HEADER, format!("{header}-{number}-{correlation}"))
            .header(CORRELATION_ID_HEADER, correlation.to_string())
            .header(SIGNATURE_HEADER, signatures)
            .body(body)
            .send()
            .await;
        // The URL may hold a secret of the receiver's; it stays out of the log.
        let answer = sent.map_err(|error| chain(&error.without_url()))?;
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(format!("the receiver answered {}", answer.status()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const RECEIVER: &str = "HOLDFAST_TEST_RECEIVER";

    #[test]
    fn while_a_secret_is_replaced_each_of_the_two_has_its_signature() {
        let to = |secret: &str, former: Option<&str>| WebhookSettings {
            url: "https://receiver.example/".parse().unwrap(),
            secret: Secret::new(secret.repeat(32)),
            former_secret: former.map(|former| Secret::new(former.repeat(32))),
        };
        let both = to("b", Some("a")).signatures(b"body");
        let (new, old) = both.split_once(',').unwrap();
        assert_eq!((new, old), (&*to("b", None).signatures(b"body"), &*to("a", None).signatures(b"body")));
        assert!(new != old && !to("b", None).signatures(b"body").contains(','));
    }

    /// A proxy of the environment would read the body and could answer for the receiver.
    #[tokio::test]
    async fn a_proxy_of_the_environment_is_passed_by() {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let through = format!("http://{}", proxy.local_addr().unwrap());
        #[expect(clippy::disallowed_methods, reason = "the environment of this process is not changed")]
        let mut sender = Command::new(std::env::current_exe().unwrap());
        sender.args(["--exact", "task::http_post::tests::the_sender", "--ignored", "--nocapture"]);
        for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            sender.env(name, &through);
        }
        sender.env_remove("NO_PROXY").env_remove("no_proxy").env_remove("REQUEST_METHOD");
        sender.env(RECEIVER, format!("http://{}/", receiver.local_addr().unwrap()));
        let sender = tokio::task::spawn_blocking(move || sender.output().unwrap());
        let (at_proxy, stream) = tokio::select! {
            came = receiver.accept() => (false, came.unwrap().0),
            came = proxy.accept() => (true, came.unwrap().0),
        };
        let mut stream = stream;
        // An answer to a request that was not read would be an error of its own.
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n{}") {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0, "it hung up");
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await.unwrap();
        let ended = sender.await.unwrap();
        assert!(!at_proxy, "the webhook went to the proxy");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }

    #[tokio::test]
    #[ignore = "the inner half of the test above, which runs it with proxies in its environment"]
    async fn the_sender() {
        let Ok(url) = std::env::var(RECEIVER) else { return };
        let to = WebhookSettings {
            url: url.parse().unwrap(),
            secret: Secret::new("a".repeat(32)),
            former_secret: None,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let post = Post::new([&to], provider).unwrap();
        post.send(
            &to,
            ("x-holdfast-event", 1),
            "01890f3e-7b2a-7cc0-8000-000000000001".parse().unwrap(),
            b"{}".to_vec(),
        )
        .await
        .unwrap();
    }
}
