//! The control socket for faults and manual edits.
//!
//! One connection, one line of JSON in, one line of JSON out. The socket is in the state folder and is open to its owner only.
//! In: [`Order`]s. Out: [`Outcome`]s. Lines are bounded; nothing else is read.
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use super::Fault;
use super::admin::{Edit, apply};
use crate::node::Node;

/// The longest order: a whole configuration file fits.
const LINE_BYTES_MAX: u64 = 256 * 1024;

/// A request to the control socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Do this by hand, now.
    Edit(Edit),
    /// Arm this fault, once.
    Arm(Fault),
    Clear,
    /// List the armed faults.
    List,
}

/// The result of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Done,
    /// The armed faults.
    Armed(Vec<Fault>),
    /// Not done, for this reason.
    Failed(String),
}

/// Why an order did not get through.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// No simulator listens.
    #[error("no running simulator answers on this state folder; start `pve-sim serve` on it first")]
    NotRunning(#[source] std::io::Error),
    /// The answer is not one.
    #[error("the simulator's answer cannot be read; both sides must be of one version")]
    Answer(#[source] serde_json::Error),
}

/// Carries out one order.
#[must_use]
pub fn obey(node: &Arc<Node>, order: &Order) -> Outcome {
    match order {
        Order::Edit(edit) => {
            apply(node, edit).map_or_else(|refusal| Outcome::Failed(refusal.message), |()| Outcome::Done)
        }
        Order::Arm(fault) => {
            node.faults.arm(fault.clone());
            Outcome::Done
        }
        Order::Clear => {
            node.faults.clear();
            Outcome::Done
        }
        Order::List => Outcome::Armed(node.faults.armed()),
    }
}

/// Listens in the state folder.
///
/// # Errors
/// When the socket cannot be made.
pub fn bind(path: &Path) -> std::io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt as _;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves orders, one after the other, until `end` turns true.
pub async fn serve(node: Arc<Node>, listener: UnixListener, mut end: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            _ = end.changed() => return,
            accepted = listener.accept() => accepted,
        };
        let answered = match accepted {
            Ok((stream, _)) => one(Arc::clone(&node), stream).await,
            Err(error) => Err(error),
        };
        if let Err(error) = answered {
            tracing::warn!(%error, "control connection failed");
        }
    }
}

async fn one(node: Arc<Node>, stream: UnixStream) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    BufReader::new(reader.take(LINE_BYTES_MAX)).read_line(&mut line).await?;
    let outcome = match serde_json::from_str::<Order>(&line) {
        Ok(order) => tokio::task::spawn_blocking(move || obey(&node, &order))
            .await
            .unwrap_or_else(|error| Outcome::Failed(error.to_string())),
        Err(error) => Outcome::Failed(format!("the order cannot be read: {error}")),
    };
    let mut text = serde_json::to_string(&outcome).map_err(std::io::Error::from)?;
    text.push('\n');
    writer.write_all(text.as_bytes()).await
}

/// Sends one order to a running simulator.
///
/// # Errors
/// When none runs or its answer cannot be read.
pub fn send(socket: &Path, order: &Order) -> Result<Outcome, OrderError> {
    use std::io::{BufRead as _, Write as _};
    let exchange = || -> std::io::Result<String> {
        let mut stream = std::os::unix::net::UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60)))?;
        let mut text = serde_json::to_string(order).map_err(std::io::Error::from)?;
        text.push('\n');
        stream.write_all(text.as_bytes())?;
        let mut answer = String::new();
        std::io::BufReader::new(stream).read_line(&mut answer)?;
        Ok(answer)
    };
    serde_json::from_str(&exchange().map_err(OrderError::NotRunning)?).map_err(OrderError::Answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_plain_json() {
        let order = Order::Edit(Edit::Stop { vmid: 150 });
        let text = r#"{"edit":{"edit":"stop","vmid":150}}"#;
        assert_eq!(serde_json::to_string(&order).expect("text"), text);
        assert_eq!(serde_json::from_str::<Order>(text).expect("order"), order);
        assert_eq!(serde_json::from_str::<Order>("\"clear\"").expect("order"), Order::Clear);
    }
}
