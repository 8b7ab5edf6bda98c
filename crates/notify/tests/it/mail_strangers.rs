//! Mail servers that try to get a password or feign success.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use notify::{DeliveryError, EgressPolicy, Sender};
use serde_json::json;

use crate::fixtures::{certificates, channel, message, now, outbox_id};
use crate::http_server::{ReadWrite, tls_config};

/// What the server did before TLS, and the lines that it then got, before and after TLS.
struct Stranger {
    port: u16,
    heard: JoinHandle<(Vec<String>, Vec<String>)>,
}

fn lines(stream: &mut dyn ReadWrite, replies: &[&str]) -> Vec<String> {
    let mut heard = Vec::new();
    let mut reader = BufReader::new(stream);
    for reply in replies {
        if !reply.starts_with("220 hello") {
            let mut line = String::new();
            // An end of the connection is what a careful client answers.
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                break;
            }
            heard.push(line.trim_end().to_owned());
        }
        let _ = reader.get_mut().write_all(reply.as_bytes());
        let _ = reader.get_mut().flush();
    }
    let mut rest = String::new();
    while reader.read_line(&mut rest).unwrap_or(0) > 0 {
        heard.push(std::mem::take(&mut rest).trim_end().to_owned());
    }
    heard
}

/// Gives these replies, one for each line that comes, then speaks TLS.
fn start(certificate: &str, key: &str, before: &'static [&'static str]) -> Stranger {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = std::sync::Arc::new(tls_config(certificate, key));
    let heard = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut first = Vec::new();
        for reply in before {
            if !reply.starts_with("220 hello") {
                // Byte by byte: what follows belongs to TLS.
                let mut line = Vec::new();
                let mut byte = [0];
                while !line.ends_with(b"\n") {
                    if std::io::Read::read(&mut stream, &mut byte).unwrap_or(0) == 0 {
                        return (first, Vec::new());
                    }
                    line.push(byte[0]);
                }
                first.push(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            stream.write_all(reply.as_bytes()).unwrap();
        }
        let session = rustls::ServerConnection::new(config).unwrap();
        let mut tls = rustls::StreamOwned::new(session, stream);
        (first, lines(&mut tls, &["250-mail.test\r\n250 AUTH PLAIN\r\n"]))
    });
    Stranger { port, heard }
}

async fn deliver(port: u16, ca: &str) -> DeliveryError {
    let mail = channel(json!({
        "kind": "smtp", "server": "localhost", "port": port, "security": "starttls", "ca": ca,
        "login": { "user": "holdfast", "password": "correct horse" },
        "from": "holdfast@ops.example", "to": ["on-call@ops.example"],
    }));
    let sent = Sender::new(EgressPolicy::Loopback).deliver(&mail, &message(), &outbox_id(), now()).await;
    sent.unwrap_err()
}

#[tokio::test]
async fn a_server_without_starttls_gets_neither_password_nor_mail() {
    let (ca, certificate, key) = certificates();
    let stranger =
        start(&certificate, &key, &["220 hello\r\n", "250-mail.test\r\n250 AUTH PLAIN\r\n", "221 bye\r\n"]);
    let error = deliver(stranger.port, &ca).await;
    assert!(matches!(error, DeliveryError::Connection(_)), "{error}");
    let (before, after) = stranger.heard.join().unwrap();
    assert!(
        before.iter().chain(&after).all(|line| !line.starts_with("AUTH") && !line.starts_with("MAIL")),
        "{before:?}"
    );
}

/// A reply in front of the TLS handshake would be taken for the server's own after it, and every later reply for the
/// one before it.
#[tokio::test]
async fn a_reply_that_came_before_tls_is_not_taken_for_one_after_it() {
    let (ca, certificate, key) = certificates();
    let injected =
        &["220 hello\r\n", "250-mail.test\r\n250 STARTTLS\r\n", "220 go\r\n250-x\r\n250 AUTH PLAIN\r\n"];
    let stranger = start(&certificate, &key, injected);
    let error = deliver(stranger.port, &ca).await;
    assert!(matches!(error, DeliveryError::Connection(_)), "{error}");
    let (before, after) = stranger.heard.join().unwrap();
    assert_eq!(before, ["EHLO ops.example", "STARTTLS"]);
    assert_eq!(after, [""; 0], "nothing follows a handshake that failed");
}
