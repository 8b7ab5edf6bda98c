//! Requests over TLS that no HTTP client makes.
//!
//! In: the hostile guest with its token. Out: how each was answered. An odd request is refused or its connection ended; a
//! request that is merely unusual is answered as any other. Each connection ends by the agent's own bounds.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::attacks::{connect, here};
use super::client::{Guest, LISTENER, PATIENCE, Token};
use super::judge::{Reported, Signals};
use super::net;

/// Answers are read this far, in bytes.
const READ_MAX: u64 = 4 << 20;

/// Requests in a row, sent without waiting for the answers.
const PIPELINED: usize = 40;

/// What the agent may do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// An error or the end of the connection.
    Refused,
    /// Any well-formed answers, at most this many.
    Answers(usize),
}

struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    fit: Fit,
}

fn cases(guest: &Guest) -> Vec<Case> {
    let get = guest.head("GET", "/v1/self", Token::Own, 0);
    let post = |more: &str, body: &str| {
        let head = guest.head("POST", "/v1/hello", Token::Own, 0);
        head.replace("content-length: 0\r\n", more) + body
    };
    let case = |name, text: String, fit| Case { name, bytes: text.into_bytes(), fit };
    let last = get.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    let with_header = |line: &str| get.replacen("\r\n", &format!("\r\n{line}\r\n"), 1);
    vec![
        case("a header of 1 MiB", with_header(&format!("x: {}", "a".repeat(1 << 20))), Fit::Refused),
        case("1,000 headers", with_header(&vec!["x: y"; 1_000].join("\r\n")), Fit::Refused),
        case("a path of 100 KB", get.replace("/v1/self", &format!("/{}", "a".repeat(100_000))), Fit::Refused),
        case("a NUL in the path", get.replace("/v1/self", "/v1/se\0lf"), Fit::Refused),
        case("no HTTP", "\u{1}\u{2}\u{3}\r\n\r\n".to_owned(), Fit::Refused),
        case("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), Fit::Refused),
        case("HTTP/9.9", get.replace("HTTP/1.1", "HTTP/9.9"), Fit::Refused),
        case("two lengths", post("content-length: 2\r\ncontent-length: 3\r\n", "{}"), Fit::Refused),
        case("a length beyond all", post("content-length: 99999999999999999999\r\n", ""), Fit::Refused),
        case("a length of 1 EiB", post("content-length: 1152921504606846976\r\n", "{}"), Fit::Refused),
        case("a negative length", post("content-length: -1\r\n", "{}"), Fit::Refused),
        case(
            "a chunk that is too long",
            post("transfer-encoding: chunked\r\n", "fffffffffffffffff\r\n"),
            Fit::Refused,
        ),
        case("half a chunk", post("transfer-encoding: chunked\r\n", "5\r\n{}"), Fit::Refused),
        case(
            "the token twice",
            with_header(get.lines().find(|line| line.starts_with("authorization")).unwrap()),
            Fit::Refused,
        ),
        case("half a request", get[..get.len() / 2].to_owned(), Fit::Refused),
        case("HTTP/1.0", get.replace("HTTP/1.1", "HTTP/1.0"), Fit::Answers(1)),
        case(
            "a body with a GET",
            last.replace("content-length: 0", "content-length: 2") + "{}",
            Fit::Answers(1),
        ),
        case("many without waiting", get.repeat(PIPELINED - 1) + &last, Fit::Answers(PIPELINED)),
    ]
}

/// What was received until the connection ended, or none where it did not end.
async fn answered(guest: &Guest, case: &Case) -> Option<Vec<u8>> {
    let mut answer = Vec::new();
    let talk = async {
        let tcp = connect(net::address(guest.number).into()).await?;
        let to: SocketAddr = LISTENER.parse().unwrap();
        let connector = TlsConnector::from(guest.tls());
        let mut stream = connector.connect(ServerName::IpAddress(to.ip().into()), tcp).await?;
        // A client that is cut off while it writes notices it when it reads.
        let _said = stream.write_all(&case.bytes).await;
        // The agent does not answer a client that closed its sending side. A client that wants an answer uses
        // `Connection: close` instead.
        if case.fit == Fit::Refused {
            let _said = stream.shutdown().await;
        }
        let _end = (&mut stream).take(READ_MAX).read_to_end(&mut answer).await;
        Ok::<_, std::io::Error>(())
    };
    timeout(PATIENCE, talk).await.ok()?.ok()?;
    Some(answer)
}

/// The statuses of all answers in a row. None if anything else is between them.
fn statuses(answer: &[u8]) -> Option<Vec<u16>> {
    let text = String::from_utf8_lossy(answer);
    let heads = text.split("HTTP/1.").skip(1);
    let all = heads.map(|head| head.get(2..5)?.parse().ok()).collect::<Option<Vec<u16>>>()?;
    (text.is_empty() || text.starts_with("HTTP/1.")).then_some(all)
}

fn fault(case: &Case, answer: Option<&[u8]>) -> Option<String> {
    let Some(answer) = answer else { return Some(format!("{}: the connection did not end", case.name)) };
    let start = String::from_utf8_lossy(&answer[..answer.len().min(200)]).into_owned();
    let Some(statuses) = statuses(answer) else { return Some(format!("{}: {start:?}", case.name)) };
    let fits = match case.fit {
        Fit::Refused => statuses.len() <= 1 && statuses.iter().all(|status| (400..600).contains(status)),
        Fit::Answers(most) => (1..=most).contains(&statuses.len()),
    };
    (!fits).then(|| format!("{}: {statuses:?} {start:?}", case.name))
}

/// Plays each case until the neighbours have their answers.
pub fn odd_http(guest: &Guest, signals: &Signals) -> Reported {
    let cases = cases(guest);
    here(async {
        let (mut reported, mut said) = (Reported::default(), 0_usize);
        let mut first: BTreeMap<u16, usize> = BTreeMap::new();
        while !signals.over() || said < cases.len() {
            let case = &cases[said % cases.len()];
            let answer = answered(guest, case).await;
            reported.faults.extend(fault(case, answer.as_deref()));
            for status in answer.as_deref().and_then(statuses).unwrap_or_default() {
                *first.entry(status).or_default() += 1;
            }
            said += 1;
            signals.begun();
        }
        let counted: Vec<String> =
            first.iter().map(|(status, count)| format!("{count} × {status}")).collect();
        reported.counts = format!("{said} of {} kinds: {}", cases.len(), counted.join(", "));
        reported
    })
}
