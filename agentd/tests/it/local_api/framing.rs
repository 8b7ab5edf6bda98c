//! Tests of ambiguous and endless requests.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::local_api::wire::HeadAlone;
use crate::local_api::world::{Expect, WEB_AT, World};

/// The request behind the doubtful one, which must never be parsed as a request.
fn smuggled(world: &World) -> String {
    world.request("GET", "/v1/self", Some(&world.web), "")
}

fn rows(world: &World) -> Vec<(&'static str, String)> {
    let bearer = format!("authorization: Bearer {}\r\n", world.web);
    let next = smuggled(world);
    let post =
        |lines: &str, body: &str| world.head("POST", "/v1/snapshots", &format!("{bearer}{lines}")) + body;
    let get = |lines: &str| world.head("GET", "/v1/self", &format!("{bearer}{lines}"));
    let line = |line: &str| format!("{line}\r\nhost: {}\r\n{bearer}\r\n", world.address);
    vec![
        (
            "two lengths that differ",
            post("content-length: 2\r\ncontent-length: 40\r\n", &format!("{{}}{next}")),
        ),
        ("a length with a sign", post("content-length: +2\r\n", "{}")),
        ("a length below nothing", post("content-length: -1\r\n", "{}")),
        ("a length in hex", post("content-length: 0x2\r\n", "{}")),
        ("a list of lengths", post("content-length: 2, 2\r\n", "{}")),
        ("a length beyond all numbers", post("content-length: 99999999999999999999\r\n", "{}")),
        ("a length of words", post("content-length: two\r\n", "{}")),
        ("a transfer coding nobody knows", post("transfer-encoding: gzip\r\n", "{}")),
        (
            "chunked, and then something",
            post("transfer-encoding: chunked, identity\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        ),
        ("a folded header", get("x-long: a\r\n b\r\n")),
        ("a folded host", format!("GET /v1/self HTTP/1.1\r\nhost:\r\n {}\r\n{bearer}\r\n", world.address)),
        ("a blank before the colon", get("content-length : 2\r\n")),
        ("a header without a name", get(": x\r\n")),
        ("a header without a colon", get("nonsense\r\n")),
        ("a zero byte in a header", get("x-zero: a\0b\r\n")),
        ("a bare carriage return", get("x-bare: a\rb\r\n")),
        ("an escape in a header", get("x-escape: a\u{1b}[2J\r\n")),
        ("seventeen kilobytes of head", get(&format!("x-long: {}\r\n", "a".repeat(17 * 1024)))),
        ("two hundred headers", get(&"x-many: 1\r\n".repeat(200))),
        ("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0".to_owned()),
        ("the first HTTP", "GET /v1/self\r\n\r\n".to_owned()),
        ("HTTP/1.2", line("GET /v1/self HTTP/1.2")),
        ("HTTP/3.0", line("GET /v1/self HTTP/3.0")),
        ("another protocol", line("GET /v1/self HTCPCP/1.0")),
        ("no version", line("GET /v1/self")),
        ("two blanks", line("GET  /v1/self HTTP/1.1")),
        ("a tab", line("GET\t/v1/self HTTP/1.1")),
        ("a method with a brace", line("G{T /v1/self HTTP/1.1")),
        ("words", "HELO agent\r\n\r\n".to_owned()),
        ("a client's hello inside TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\r\n\r\n".to_owned()),
    ]
}

/// Chunked bodies. Whatever the chunks are, the agent does not begin to read them.
fn in_pieces(world: &World) -> Vec<(&'static str, String)> {
    let bearer = format!("authorization: Bearer {}\r\n", world.web);
    let next = smuggled(world);
    let post =
        |lines: &str, body: &str| world.head("POST", "/v1/snapshots", &format!("{bearer}{lines}")) + body;
    let chunked = "transfer-encoding: chunked\r\n";
    vec![
        ("pieces", post(chunked, "2\r\n{}\r\n0\r\n\r\n")),
        (
            "a length and pieces",
            post(&format!("content-length: 5\r\n{chunked}"), &format!("0\r\n\r\n{next}")),
        ),
        (
            "pieces and a length",
            post(&format!("{chunked}content-length: 5\r\n"), &format!("0\r\n\r\n{next}")),
        ),
        ("pieces, twice said", post(&format!("{chunked}{chunked}"), "0\r\n\r\n")),
        ("pieces in odd letters", post("Transfer-Encoding: cHuNkEd\r\n", "0\r\n\r\n")),
        ("a piece's size with a sign", post(chunked, &format!("+2\r\n{{}}\r\n0\r\n\r\n{next}"))),
        ("a piece's size beyond all numbers", post(chunked, "ffffffffffffffffff\r\n{}\r\n")),
        (
            "a mebibyte behind a piece's size",
            post(chunked, &format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "x".repeat(1 << 20))),
        ),
        ("a trailer that is a request", post(chunked, &format!("0\r\n{next}"))),
        (
            "pieces at a call without a body",
            world.head("GET", "/v1/self", &format!("{bearer}{chunked}")) + "0\r\n\r\n",
        ),
    ]
}

pub async fn all(world: &World) -> usize {
    let (rows, pieces) = (rows(world), in_pieces(world));
    let count = rows.len() + pieces.len();
    for (name, bytes) in rows {
        world.refuses(name, WEB_AT, bytes.as_bytes(), Expect::Closed).await;
    }
    for (name, bytes) in pieces {
        let answer = world.refuses(name, WEB_AT, bytes.as_bytes(), Expect::Closed).await;
        // A client that was still sending when the connection ended may not get the reason.
        if let Some(answer) = answer {
            assert_eq!(answer.code(), Some(ErrorCode::Range), "{name}");
            assert!(answer.head.contains(&"connection: close".to_owned()), "{name}: {:?}", answer.head);
        }
    }
    count + without_tls(world).await + Box::pin(slow(world)).await
}

/// What does not even speak TLS.
async fn without_tls(world: &World) -> usize {
    let plain = world.request("GET", "/v1/self", Some(&world.web), "");
    let rows: [&[u8]; 4] =
        [plain.as_bytes(), b"\0\0\0\0\0\0\0\0", b"SSH-2.0-x\r\n", &[0x16, 3, 1, 0xff, 0xff, 1]];
    for bytes in rows {
        let (before, calls) = (world.state(), world.calls());
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        drop(stream.write_all(bytes).await);
        let mut heard = Vec::new();
        let end = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut heard)).await;
        assert!(end.is_ok(), "{bytes:?} was neither answered nor closed");
        // At most TLS's own alert that this is no TLS.
        assert!(heard.len() <= 7 && !heard.starts_with(b"HTTP"), "{heard:?}");
        assert!(world.state() == before && world.calls() == calls);
        world.serves(WEB_AT, &world.web).await;
    }
    rows.len()
}

/// Heads and bodies that never end: the agent ends them, and serves others meanwhile.
async fn slow(world: &World) -> usize {
    let before = (world.state(), world.calls());
    let silent = async {
        let mut wire = world.connect(WEB_AT).await;
        assert!(wire.ends().await, "a silent connection was kept");
    };
    let dripping = async {
        let mut wire = world.connect(WEB_AT).await;
        let bytes = world.request("GET", "/v1/self", Some(&world.web), "");
        let drip = async {
            for byte in bytes.as_bytes().chunks(1) {
                wire.say(byte).await;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        // Some two hundred bytes would take forty seconds; the agent's patience ends long before.
        let _cut = tokio::time::timeout(Duration::from_secs(8), drip).await;
        let answer = wire.answer(HeadAlone::No).await;
        assert!(answer.as_ref().is_none_or(|it| it.status == 408), "{answer:?}");
    };
    let others = async {
        for _ in 0..50 {
            world.serves(crate::local_api::world::DB_AT, &world.db).await;
        }
    };
    tokio::join!(silent, dripping, others);
    assert_eq!(world.state(), before.0);
    assert_eq!(world.calls(), before.1 + 50, "a request that never ended was heard");
    // A body that stops half-way is heard by its handler, which gives up.
    let bearer = format!("authorization: Bearer {}\r\ncontent-length: 100\r\n", world.web);
    let half = world.head("POST", "/v1/snapshots", &bearer) + "{\"name\":";
    world.refuses("half a body", WEB_AT, half.as_bytes(), Expect::Code(ErrorCode::Unavailable)).await;
    3
}
