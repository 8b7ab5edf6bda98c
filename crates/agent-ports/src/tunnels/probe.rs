//! The far end of a tunnel, asked through it.
//!
//! In: the target that root named. Out: what it answered. A page is one request without redirects, of which the first
//! kilobytes are read; an error of 500 and above is one of the far end or of what is in between. A connection is closed
//! at once.

use std::time::Duration;

use holdfast_protocol::json::chain;
use notify::{EgressPolicy, Sender};
use tokio::net::TcpStream;

use crate::model::tunnel::ProbeTarget;
use crate::model::tunnel::judgement::Proof;

/// Name, way and answer together.
const CONNECTION_WITHIN: Duration = Duration::from_secs(10);

/// Asks once.
pub async fn ask(target: &ProbeTarget) -> Proof<String> {
    match target {
        ProbeTarget::Https(url) => page(url).await,
        ProbeTarget::Tcp(place) => {
            match tokio::time::timeout(CONNECTION_WITHIN, TcpStream::connect(place.as_str())).await {
                Ok(Ok(_)) => Proof::Answered("it takes connections".to_owned()),
                Ok(Err(error)) => Proof::Failed(error.to_string()),
                Err(_) => Proof::Failed(format!("no connection within {} s", CONNECTION_WITHIN.as_secs())),
            }
        }
    }
}

async fn page(url: &str) -> Proof<String> {
    // Root named it, and a tunnel leads to addresses of private networks, too.
    match Sender::new(EgressPolicy::Loopback).page(url).await {
        Ok(answer) if answer.status < 500 => Proof::Answered(format!("status {}", answer.status)),
        Ok(answer) => Proof::Failed(format!("status {}", answer.status)),
        Err(error) => Proof::Failed(chain(&error).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_port_answers_while_it_is_open() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap().to_string();
        let target = ProbeTarget::Tcp(place);
        assert!(matches!(ask(&target).await, Proof::Answered(_)));
        drop(listener);
        assert!(matches!(ask(&target).await, Proof::Failed(_)));
    }

    #[tokio::test]
    async fn a_page_without_tls_is_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        let serve = async { drop(listener.accept().await) };
        let (found, ()) = tokio::join!(async { ask(&ProbeTarget::Https(url)).await }, serve);
        assert!(matches!(found, Proof::Failed(_)), "{found:?}");
    }
}
