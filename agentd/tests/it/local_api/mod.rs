//! The local API over real TLS, with raw bytes where a client would not say them: part 3.4.5 of the catalogue as tables.
//!
//! | module | shows |
//! | --- | --- |
//! | `world` | a listener with two guests, each at its own address, and what must hold of every refusal |
//! | `wire` | somebody who says any bytes |
//! | `tokens` | tokens that are none, or another's, or from elsewhere |
//! | `paths` | calls in another spelling, to another host, by another method |
//! | `crossing` | every call about another guest, in path and body, and by whoever is nobody here |
//! | `framing` | requests of which nobody could say where they end |
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

/// One after the other against one agent, as one attacker would try them.
#[tokio::test(flavor = "multi_thread")]
async fn each_vector_is_refused_by_its_code_and_changes_nothing() {
    let world = World::start().await;
    let (tokens, paths) = (tokens::all(&world).await, paths::all(&world).await);
    let (framing, shapes) = (framing::all(&world).await, shapes::all(&world).await);
    let holders = tokens::holders(&world).await;
    let all = tokens + paths + framing + shapes + holders;
    println!(
        "{all} vectors: {tokens} of tokens, {holders} of holders, {paths} of paths, {framing} of framing, {shapes} of shapes"
    );
    assert!(all >= 300, "{all}");
    world.end().await;
}

/// Every call of the protocol's table, by whoever should not say it.
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
    let mut tls = holdfast_tls::client(&world.trust()).unwrap();
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
