//! Tests of the local API over real TLS.
//!
//! | module | shows |
//! | --- | --- |
//! | `world` | a listener with two guests, each at its own address, and what must hold of every refusal |
//! | `wire` | a client that sends any bytes |
//! | `tokens` | tokens that are none, or another's, or from elsewhere |
//! | `paths` | calls in another spelling, to another host, by another method |
//! | `crossing` | every call about another guest, in path and body, and by callers that are no guest here |
//! | `framing` | requests whose end cannot be determined |
//! | `shapes` | bodies and headers of the wrong shape |
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod crossing;
mod framing;
mod paths;
mod shapes;
mod tokens;
mod wire;
mod world;

use world::World;

/// Each vector is refused by its code and changes nothing; one after the other, as one attacker would try them.
macro_rules! refused {
    ($name:ident, $all:expr, $at_least:expr) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let world = World::start().await;
            let count = $all(&world).await;
            println!("{count} vectors");
            assert!(count >= $at_least, "{count}");
            world.end().await;
        }
    };
}

refused!(tokens_are_refused_by_their_code_and_change_nothing, tokens::all, 1);
refused!(tokens_of_two_holders_are_refused_and_freeze_one_guest, tokens::holders, 1);
refused!(paths_are_refused_by_their_code_and_change_nothing, paths::all, 1);
refused!(frames_are_refused_by_their_code_and_change_nothing, framing::all, 1);
refused!(shapes_are_refused_by_their_code_and_change_nothing, shapes::all, 1);

/// Every call of the protocol's table, by callers that may not make it.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_crosses_from_one_guest_to_another() {
    let world = World::start().await;
    let cells = crossing::all(&world).await;
    println!("{cells} cells");
    assert!(cells >= 80, "{cells}");
    world.end().await;
}

/// A guest's client that would resume, if it could.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_resumed_by_a_client_that_tries() {
    let world = World::start().await;
    let mut tls = net::tls::client(&world.trust()).unwrap();
    tls.resumption = rustls::client::Resumption::in_memory_sessions(64);
    tls.enable_early_data = true;
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(tls));
    let request = world.request("GET", "/v1/self", Some(&world.web), "");
    for _ in 0..3 {
        let mut wire = world.connect_with(&connector, world::WEB_AT).await;
        wire.say(request.as_bytes()).await;
        assert_eq!(wire.answer(wire::HeadAlone::No).await.unwrap().status, 200);
        let (_, session) = wire.stream().get_ref();
        assert_eq!(session.handshake_kind(), Some(rustls::HandshakeKind::Full));
        assert_eq!(session.tls13_tickets_received(), 0);
        assert!(!session.is_early_data_accepted());
        assert_eq!(session.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
    }
    world.end().await;
}
