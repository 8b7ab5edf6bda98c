//! The metrics of a tunnel at the loopback.
//!
//! In: the address that root named. Out: how many connections are ready. HTTP/1.0 with one request for each connection:
//! the answer ends with it, and is never in chunks. Deliberately absent: other hosts; the settings take the loopback alone.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::model::tunnel::cloudflared;
use crate::model::tunnel::judgement::Proof;

/// It is on this machine.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A page of metrics of cloudflared has 20 KiB.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;

/// How many connections the tunnel says are ready: by `/ready`, or by its metrics where it knows no `/ready`.
pub async fn connections(at: SocketAddr) -> Proof<u32> {
    let first = match get(at, "/ready").await {
        Ok(answer) => answer,
        Err(why) => return Proof::Failed(why),
    };
    if let Some(ready) = cloudflared::ready(first.status, &first.body) {
        return Proof::Answered(ready);
    }
    match get(at, "/metrics").await {
        Ok(answer) => cloudflared::in_metrics(answer.status, &answer.body).map_or_else(
            || Proof::Failed(format!("{at} answers, and not as cloudflared does")),
            Proof::Answered,
        ),
        Err(why) => Proof::Failed(why),
    }
}

struct Answer {
    status: u16,
    body: Vec<u8>,
}

async fn get(at: SocketAddr, path: &str) -> Result<Answer, String> {
    match tokio::time::timeout(ANSWER_WITHIN, exchange(at, path)).await {
        Ok(Ok(bytes)) => parse(&bytes).ok_or_else(|| format!("{at} answers, and not in HTTP")),
        Ok(Err(error)) => Err(format!("{at}: {error}")),
        Err(_) => Err(format!("{at} does not answer within {} s", ANSWER_WITHIN.as_secs())),
    }
}

async fn exchange(at: SocketAddr, path: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(at).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {at}\r\n\r\n").as_bytes()).await?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(bytes.get(..end)?).ok()?;
    let mut words = head.lines().next()?.split(' ');
    words.next().filter(|version| version.starts_with("HTTP/1."))?;
    Some(Answer { status: words.next()?.parse().ok()?, body: bytes.get(end + 4..)?.to_vec() })
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// What is found where each connection gets the next of these answers.
    async fn found(answers: &[&[u8]]) -> Proof<u32> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let serve = async {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 256];
                let _length = stream.read(&mut request).await.unwrap();
                stream.write_all(answer).await.unwrap();
            }
        };
        tokio::join!(connections(at), serve).0
    }

    #[tokio::test]
    async fn connections_are_read_by_ready_or_by_metrics() {
        let ready =
            b"HTTP/1.0 503 Service Unavailable\r\nDate: x\r\n\r\n{\"status\":503,\"readyConnections\":0}"
                .as_slice();
        assert_eq!(found(&[ready]).await, Proof::Answered(0));
        let missing = b"HTTP/1.0 404 Not Found\r\n\r\n404 page not found\n".as_slice();
        let metrics =
            b"HTTP/1.0 200 OK\r\n\r\n# TYPE x gauge\ncloudflared_tunnel_ha_connections 4\n".as_slice();
        assert_eq!(found(&[missing, metrics]).await, Proof::Answered(4));
        for other in [[missing, missing], [b"SSH-2.0-x\r\n", metrics], [missing, b""]] {
            let count = if other[0].starts_with(b"SSH") { 1 } else { 2 };
            assert!(matches!(found(&other[..count]).await, Proof::Failed(_)), "{other:?}");
        }
    }

    #[tokio::test]
    async fn a_closed_port_is_a_failure_with_its_reason() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        drop(listener);
        let Proof::Failed(why) = connections(at).await else { panic!("it is closed") };
        assert!(why.contains("refused"), "{why}");
    }
}
