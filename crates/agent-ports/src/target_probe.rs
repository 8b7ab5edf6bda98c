//! Whether a storage target takes reads and writes, or its server answers.
//!
//! Input: which disk should be mounted where, or a server and a port. Output: yes, or a sentence. A mount stays when
//! its disk dies. Proxmox reports a share whose server is gone as "active" for as long as the kernel waits. So both are
//! tried. Each try is bounded in time. A disk that hangs blocks the thread that checks it: there is never a second such
//! thread for the same target. Deliberately absent: what follows from it (`plan/storage`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_protocol::id::TargetName;
use holdfast_protocol::storage::backend::Server;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::disk_marker::{self, Expected};
use crate::model::storage::place;

/// A sleeping disk wakes within seconds; one that takes longer does not work.
const DISK_MAX: Duration = Duration::from_secs(30);

/// To look up a name and open one connection.
const SERVER_MAX: Duration = Duration::from_secs(5);

type Answer = Result<(), String>;

/// The only check of a disk that may be under way: locked while a caller waits for it, kept where it did not end in
/// time.
type Turn = Arc<tokio::sync::Mutex<Option<JoinHandle<Answer>>>>;

/// Whether targets work.
#[derive(Clone)]
pub struct TargetProbe(Way);

#[derive(Clone)]
enum Way {
    Real(Arc<Mutex<BTreeMap<TargetName, Turn>>>),
    Reported(Arc<dyn Fn(&TargetName) -> Answer + Send + Sync>),
}

impl TargetProbe {
    /// The disks and servers themselves.
    #[must_use]
    pub fn real() -> Self {
        Self(Way::Real(Arc::default()))
    }

    /// The answers of a function, for tests.
    #[must_use]
    pub fn reported(says: impl Fn(&TargetName) -> Answer + Send + Sync + 'static) -> Self {
        Self(Way::Reported(Arc::new(says)))
    }

    /// Reads the marker of a mounted disk, and writes some bytes that last.
    ///
    /// # Errors
    /// A sentence: it is not mounted, is another disk, does not take it, or does not answer within 30 s.
    pub async fn disk(&self, expected: Expected) -> Answer {
        let turn = match &self.0 {
            Way::Reported(says) => return says(&expected.target),
            Way::Real(turns) => {
                let mut turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(turns.entry(expected.target.clone()).or_default())
            }
        };
        let mut turn = turn.lock().await;
        let mut looking = turn.take().unwrap_or_else(|| {
            tokio::task::spawn_blocking(move || disk_marker::probe(&place(&expected.target), &expected))
        });
        match tokio::time::timeout(DISK_MAX, &mut looking).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err("looking at it broke off".to_owned()),
            Err(_) => {
                *turn = Some(looking);
                Err(format!("it did not answer within {} s", DISK_MAX.as_secs()))
            }
        }
    }

    /// Opens a connection to a server, and closes it again.
    ///
    /// # Errors
    /// A sentence: no server answers at that port.
    pub async fn server(&self, target: &TargetName, server: &Server, port: u16) -> Answer {
        if let Way::Reported(says) = &self.0 {
            return says(target);
        }
        let connecting = TcpStream::connect((server.as_str(), port));
        match tokio::time::timeout(SERVER_MAX, connecting).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("{} does not answer on port {port}: {error}", server.as_str())),
            Err(_) => Err(format!(
                "{} does not answer on port {port} within {} s",
                server.as_str(),
                SERVER_MAX.as_secs()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both a backup's end and the loop ask of the same disk: one waits for the other, and neither sees the other's file.
    #[tokio::test]
    async fn one_look_at_a_disk_at_a_time() {
        let probe = TargetProbe::real();
        let Way::Real(turns) = &probe.0 else { panic!("it is real") };
        let name: TargetName = "t-of-no-disk".parse().unwrap();
        let turn = Arc::clone(turns.lock().unwrap().entry(name.clone()).or_default());
        let held = turn.lock().await;
        let mark = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01".parse().unwrap();
        let expected = Expected { target: name, mark, before: disk_marker::Before::Marked };
        let other = probe.clone();
        let mut second = Box::pin(other.disk(expected));
        let waits = tokio::select! {
            biased;
            _ = &mut second => false,
            () = std::future::ready(()) => true,
        };
        assert!(waits, "while another looks");
        drop(held);
        assert!(second.await.is_err(), "nothing is mounted there");
    }

    #[tokio::test]
    async fn a_server_that_is_gone_is_reported_with_its_port() {
        let probe = TargetProbe::real();
        let (target, server) = ("nas1".parse().unwrap(), Server::try_from("nas.invalid".to_owned()).unwrap());
        let says = probe.server(&target, &server, 2049).await.unwrap_err();
        assert!(says.starts_with("nas.invalid does not answer on port 2049"), "{says}");
    }
}
