//! Secrets stay out of errors and of what `Debug` shows.

use std::error::Error;

use notify::{Channel, EgressPolicy, Sender};
use serde_json::json;

use crate::fixtures::{KEY, SECRET, channel, http_channels, message, now, outbox_id, request};
use crate::http_server::{Server, reply};

/// The whole chain of an error, in both forms.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = format!("{error:?}");
    let mut next = Some(error);
    while let Some(error) = next {
        text.push_str(&format!(" {error}"));
        next = error.source();
    }
    text
}

fn mail(server: &str, port: u16) -> Channel {
    channel(json!({
        "kind": "smtp", "server": server, "port": port, "security": "plain_loopback",
        "login": { "user": "holdfast", "password": SECRET }, "from": "holdfast@x.example", "to": ["a@x.example"],
    }))
}

#[test]
fn channels_and_requests_show_no_secret() {
    let mut channels = http_channels("https://chat.example");
    channels.iter().for_each(|channel| {
        let shown = format!("{channel:?} {:?}", request(channel, &message()));
        assert!(!shown.contains(SECRET), "{shown}");
    });
    channels.push(mail("127.0.0.1", 25));
    for channel in &channels {
        assert!(!format!("{channel:?}").contains(SECRET), "{channel:?}");
        // It is stored with its secrets, so the caller seals it.
        assert!(serde_json::to_string(channel).unwrap().contains(SECRET));
    }
}

#[tokio::test]
async fn errors_show_no_secret_although_the_server_repeats_them() {
    let repeat = |request: &crate::http_server::Received| {
        let headers: Vec<&str> = request.headers.values().map(String::as_str).collect();
        format!("{} {}", request.path, headers.join(" "))
    };
    for status in [302, 400, 401, 404, 413, 429, 500] {
        let server = Server::start(move |_, request| reply(status, &repeat(request)));
        for channel in http_channels(&server.url()) {
            let error = Sender::new(EgressPolicy::Loopback)
                .deliver(&channel, &message(), &outbox_id(), now())
                .await
                .unwrap_err();
            let shown = chain(&error);
            assert!(!shown.contains(SECRET) && !shown.contains(KEY), "{:?}: {shown}", channel.kind());
        }
    }
}

#[tokio::test]
async fn errors_without_an_answer_show_no_secret() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut channels = http_channels(&format!("http://{address}"));
    // Telegram's URL holds its token. One is enough: a lookup may take seconds where there is no network.
    channels.extend(http_channels("https://name.invalid").into_iter().skip(5).take(1));
    channels.push(mail("127.0.0.1", address.port()));
    for policy in [EgressPolicy::Public, EgressPolicy::Loopback] {
        for channel in &channels {
            let sent = Sender::new(policy).deliver(channel, &message(), &outbox_id(), now()).await;
            let shown = chain(&sent.unwrap_err());
            assert!(!shown.contains(SECRET), "{:?}: {shown}", channel.kind());
        }
    }
}
