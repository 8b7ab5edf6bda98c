//! A bare HTTP echo server, the baseline of the benchmark.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::routing::post;
use axum::{Json, Router};
use holdfast_protocol::checkin::CheckinRequest;
use hubd::authority::{Authority, Fresh, ServerCertificate};
use hubd::clock::{Clock as _, SystemClock};
use hubd::serve::{HostVerifier, server_config};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use net::tls::provider;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::server::input_ends;

pub async fn serve(folder: &Path, listen: SocketAddr) -> anyhow::Result<()> {
    let tls = tls(folder)?;
    let listener = TcpListener::bind(listen).await?;
    println!("{}", listener.local_addr()?);
    tokio::select! {
        result = accept(listener, TlsAcceptor::from(tls)) => result,
        () = input_ends() => Ok(()),
    }
}

/// The hub's own TLS settings, with its CA and a certificate for this machine.
pub fn tls(folder: &Path) -> anyhow::Result<Arc<rustls::ServerConfig>> {
    let now = SystemClock.now();
    let authority = Authority::open_or_make(folder, Fresh::No, now)?;
    let names = vec!["127.0.0.1".to_owned()];
    let certificate = ServerCertificate::make(&authority, &provider(), names, now)?;
    let clients = HostVerifier::new(&authority.cas().accepted())?;
    Ok(server_config(Arc::new(clients), Arc::new(certificate))?)
}

async fn echo(Json(report): Json<CheckinRequest>) -> Json<CheckinRequest> {
    Json(report)
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor) -> anyhow::Result<()> {
    let router = Router::new().route("/v1/agent/checkin", post(echo));
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (acceptor, router) = (acceptor.clone(), router.clone());
        connections.spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                let service = TowerToHyperService::new(router);
                // Who went away, went away.
                drop(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await,
                );
            }
        });
    }
}
