//! The baseline: axum and rustls with the same bytes.

use std::path::Path;
use std::sync::Arc;

use agentd::port::local_tls::LocalLeaf;
use anyhow::Result;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use holdfast_protocol::pin::PinSet;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use net::tls::Trust;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::client::Endpoint;

/// As long as what the agent answers here.
const BODY: &str = concat!(
    r#"{"schema_version":"holdfast.envelope/v1","request_id":"01a203b6-ba0f-7251-99c7-36b1b4885da3","correlation_id":"#,
    r#""01a203b6-ba0f-7251-99c7-36b1b4885da3","data":{"uid":"018f3c1e-6b1f-7c1d-9d0a-000000000001","name":"web","#,
    r#""customer":"acme","golden":"2026.11.1","size":{"cores":1,"memory_mib":256,"swap_mib":0,"rootfs_gib":4},"#,
    r#""network":{"bridge":"vmbr1","address":"127.66.8.91/24","gateway":null,"vlan":null},"agent_version":"0.1.0","#,
    r#""limits":{"requests_per_minute":120,"connections":8,"body_bytes":16384}},"error":null,"metadata":{"timestamp":"#,
    r#""2026-11-21T12:00:00Z"}}"#
);

pub struct Server {
    pub listener: Endpoint,
    served: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.served.abort();
    }
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "the server that is measured, ended with this")]
    pub async fn start(folder: &Path) -> Result<Self> {
        let leaf = LocalLeaf::open(folder)?;
        let acceptor = TlsAcceptor::from(leaf.server()?);
        let listener = TcpListener::bind("127.66.8.2:0").await?;
        let address = listener.local_addr()?;
        let router =
            Router::new().route("/v1/self", get(|| async { ([(CONTENT_TYPE, "application/json")], BODY) }));
        let served = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, router) = (acceptor.clone(), router.clone());
                tokio::spawn(async move {
                    // A client that closed its connection needs no handling.
                    drop(stream.set_nodelay(true));
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let service = TowerToHyperService::new(router);
                        let http = hyper::server::conn::http1::Builder::new();
                        drop(http.serve_connection(TokioIo::new(stream), service).await);
                    }
                });
            }
        });
        let tls = net::tls::client(&Trust::Pins(PinSet::from(leaf.pin())))?;
        Ok(Self { listener: Endpoint { address, connector: TlsConnector::from(Arc::new(tls)) }, served })
    }
}
