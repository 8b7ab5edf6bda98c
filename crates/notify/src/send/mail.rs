//! Deliveries by SMTP.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{error::Error as _, io, net::SocketAddr};

use jiff::Timestamp;
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, AsyncTokioStream, Certificate, CertificateStore, TlsParameters, TlsParametersBuilder,
};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::error::quote;
use super::{DeliveryError, Receipt, Remark, resolve, tls};
use crate::channel::Smtp;
use crate::channel::smtp::{Login, Security};
use crate::egress::EgressPolicy;
use crate::id::OutboxId;
use crate::message::Message;
use crate::reason::Reason;

/// A whole delivery. Some servers hold every stranger for half a minute.
const MAIL_WAIT: Duration = Duration::from_secs(60);
/// The mail is accepted by then; a server that does not say goodbye changes nothing.
const QUIT_WAIT: Duration = Duration::from_secs(2);
const MECHANISMS: [Mechanism; 2] = [Mechanism::Plain, Mechanism::Login];

/// Delivers a message to all recipients by one mail.
pub(super) async fn deliver(
    smtp: &Smtp,
    policy: EgressPolicy,
    (message, id): (&Message, &OutboxId),
    now: Timestamp,
) -> Result<Receipt, DeliveryError> {
    let mail = smtp.mail(message, id, now);
    let sent = tokio::time::timeout(MAIL_WAIT, Box::pin(send(smtp, policy, &mail))).await;
    sent.map_err(|_| DeliveryError::Timeout { within: MAIL_WAIT })?
}

async fn send(smtp: &Smtp, policy: EgressPolicy, mail: &[u8]) -> Result<Receipt, DeliveryError> {
    let failed = |error| failure(&error, smtp.login.as_ref());
    let addresses = resolve::resolve(&smtp.server, smtp.port(), policy).await?;
    let mut connection = connect(smtp, &addresses).await?;
    if let Some(login) = &smtp.login {
        let credentials = Credentials::new(login.user.clone(), login.password.expose().to_owned());
        connection.auth(&MECHANISMS, &credentials).await.map_err(|error| match failed(error) {
            DeliveryError::Refused { status, said, .. } => {
                DeliveryError::Refused { reason: Reason::Credential, status, said }
            }
            other => other,
        })?;
    }
    connection.command(Mail::new(Some(smtp.from.address().clone()), Vec::new())).await.map_err(failed)?;
    let receipt = name_recipients(smtp, &mut connection).await?;
    connection.command(Data).await.map_err(failed)?;
    connection.message(mail).await.map_err(failed)?;
    let _ = tokio::time::timeout(QUIT_WAIT, connection.quit()).await;
    Ok(receipt)
}

/// One recipient that is refused does not keep the mail from the others.
async fn name_recipients(
    smtp: &Smtp,
    connection: &mut AsyncSmtpConnection,
) -> Result<Receipt, DeliveryError> {
    let mut receipt = Receipt::default();
    let mut last = None;
    for to in &smtp.to {
        let reply = connection.command(Rcpt::new(to.address().clone(), Vec::new())).await;
        let Err(error) = reply else { continue };
        let error = match failure(&error, smtp.login.as_ref()) {
            DeliveryError::Refused { status, said, .. } => {
                DeliveryError::Refused { reason: Reason::Address, status, said }
            }
            other => other,
        };
        let (DeliveryError::Refused { status, .. } | DeliveryError::Unavailable { status, .. }) = &error
        else {
            return Err(error);
        };
        receipt.remarks.push(Remark::RecipientRefused { address: to.address().to_string(), status: *status });
        // A recipient who may be accepted later decides whether a repeat is worth it.
        last = match last {
            Some(DeliveryError::Unavailable { .. }) => last,
            _ => Some(error),
        };
    }
    match last {
        Some(error) if receipt.remarks.len() == smtp.to.len() => Err(error),
        _ => Ok(receipt),
    }
}

async fn connect(smtp: &Smtp, addresses: &[SocketAddr]) -> Result<AsyncSmtpConnection, DeliveryError> {
    let failed = |error| failure(&error, smtp.login.as_ref());
    // The name that this client gives itself: one that the recipient's server can resolve.
    let hello = ClientId::Domain(smtp.from.address().domain().to_owned());
    match smtp.security {
        Security::Tls => {
            let tls = tls_parameters(smtp).await?;
            AsyncSmtpConnection::connect_tokio1(addresses, Some(MAIL_WAIT), &hello, Some(tls), None)
                .await
                .map_err(failed)
        }
        Security::Starttls => {
            let tls = tls_parameters(smtp).await?;
            let stream = Box::new(SingleByteReads(open(addresses).await?));
            let mut connection =
                AsyncSmtpConnection::connect_with_transport(stream, &hello).await.map_err(failed)?;
            connection.starttls(tls, &hello).await.map_err(failed)?;
            Ok(connection)
        }
        Security::PlainLoopback => {
            let stream = Box::new(open(addresses).await?);
            AsyncSmtpConnection::connect_with_transport(stream, &hello).await.map_err(failed)
        }
    }
}

async fn open(addresses: &[SocketAddr]) -> Result<TcpStream, DeliveryError> {
    TcpStream::connect(addresses).await.map_err(|error| DeliveryError::Connection(error.into()))
}

async fn tls_parameters(smtp: &Smtp) -> Result<TlsParameters, DeliveryError> {
    let unusable = |error: SmtpError| DeliveryError::Tls(error.into());
    let mut builder =
        TlsParametersBuilder::new(smtp.server.clone()).certificate_store(CertificateStore::None);
    for root in tls::roots(smtp.ca.as_ref()).await? {
        builder = builder.add_root_certificate(Certificate::from_der(root.to_vec()).map_err(unusable)?);
    }
    builder.build().map_err(unusable)
}

/// What an SMTP error means. A reply code decides; without one the connection failed.
fn failure(error: &SmtpError, login: Option<&Login>) -> DeliveryError {
    let said = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let said = quote(&said, login.map(|login| login.password.expose()));
    match error.status().map(u16::from) {
        Some(status) if error.is_permanent() => {
            let reason = match status {
                530 | 534 | 535 | 538 => Reason::Credential,
                552 => Reason::TooLong,
                _ => Reason::Request,
            };
            DeliveryError::Refused { reason, status, said }
        }
        Some(status) => DeliveryError::Unavailable { status, said },
        None => DeliveryError::Connection(said.into()),
    }
}

/// A connection that gives one byte at a time, so that nothing which came before the TLS handshake is in the buffer of
/// the SMTP client after it. Otherwise someone on the way could put replies in front of the server's own.
#[derive(Debug)]
struct SingleByteReads(TcpStream);

impl AsyncRead for SingleByteReads {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let mut byte = [0];
        let mut one = ReadBuf::new(&mut byte);
        ready!(Pin::new(&mut self.0).poll_read(context, &mut one))?;
        buffer.put_slice(one.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SingleByteReads {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl AsyncTokioStream for SingleByteReads {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }
}
