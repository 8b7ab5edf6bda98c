//! Probes of targets in use.
//!
//! In: the records, what is remembered of each target, time. Out: the result of each disk and server, stored in that
//! memory. One try of a target at a time, concurrent with everything else. Deliberately absent: what follows from it
//! (`plan/storage`).

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_protocol::id::TargetName;
use holdfast_protocol::storage::TargetState;
use holdfast_protocol::storage::backend::{Backend, Server};
use tokio::task::{JoinError, JoinSet};

use super::memory::Memory;
use crate::model::storage::{MarkerSeen, ServerSeen, TargetRecord};
use crate::port::disk_marker::{Before, Expected};
use crate::port::target_probe::TargetProbe;

/// Each disk: one small write that lasts.
const DISK_EVERY: Duration = Duration::from_secs(30);

/// One that failed is tried sooner.
const FAILING_EVERY: Duration = Duration::from_secs(10);

/// Each server: one connection.
const SERVER_EVERY: Duration = Duration::from_secs(30);

/// Where NFS listens (RFC 7530), and SMB.
const NFS_PORT: u16 = 2049;
const SMB_PORT: u16 = 445;

/// What one try found.
pub enum ProbeAttempt {
    /// The disk of this mount.
    Disk(u64, Result<(), String>),
    Server(Result<(), String>),
}

/// All tries. Nothing of it is needed after a restart.
#[derive(Default)]
pub struct Probes {
    under_way: JoinSet<(TargetName, ProbeAttempt)>,
    /// When each target is tried next; the end of time while a try is under way.
    next: BTreeMap<TargetName, Duration>,
}

/// What of a target can be tried now.
enum Trial {
    Disk(u64, Expected),
    Server(Server, u16),
}

impl Probes {
    /// Begins what is due.
    pub fn begin(
        &mut self,
        records: &[TargetRecord],
        targets: &BTreeMap<TargetName, Memory>,
        probe: &TargetProbe,
        now: Duration,
    ) {
        self.next.retain(|name, _| records.iter().any(|record| record.approval.name == *name));
        for record in records {
            let name = &record.approval.name;
            if self.next.get(name).is_some_and(|next| *next > now) {
                continue;
            }
            let Some(trial) = trial(record, targets.get(name)) else { continue };
            self.next.insert(name.clone(), Duration::MAX);
            let (name, probe) = (name.clone(), probe.clone());
            self.under_way.spawn(async move {
                let tried = match trial {
                    Trial::Disk(id, expected) => ProbeAttempt::Disk(id, probe.disk(expected).await),
                    Trial::Server(server, port) => {
                        ProbeAttempt::Server(probe.server(&name, &server, port).await)
                    }
                };
                (name, tried)
            });
        }
    }

    /// The next one that ends; never, where none is under way.
    pub async fn news(&mut self) -> Result<(TargetName, ProbeAttempt), JoinError> {
        match self.under_way.join_next().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    /// Takes in what one found.
    pub fn hear(
        &mut self,
        news: Result<(TargetName, ProbeAttempt), JoinError>,
        targets: &mut BTreeMap<TargetName, Memory>,
        now: Duration,
    ) {
        let (name, tried) = match news {
            Ok(news) => news,
            Err(error) => {
                tracing::error!(%error, "trying a storage target broke off");
                // It is not known which target it was: all that can be tried are tried.
                self.next.clear();
                return;
            }
        };
        let memory = targets.entry(name.clone()).or_default();
        let every = match tried {
            ProbeAttempt::Disk(id, answer) => {
                let every = if answer.is_ok() { DISK_EVERY } else { FAILING_EVERY };
                // A disk that was mounted again meanwhile was looked at anew.
                if let Some((confirmed, marker)) = &mut memory.target.confirmed
                    && *confirmed == id
                {
                    *marker = answer.map_or_else(MarkerSeen::Failing, |()| MarkerSeen::Ours);
                }
                every
            }
            ProbeAttempt::Server(answer) => {
                memory.target.server = answer.map_or_else(ServerSeen::Silent, |()| ServerSeen::Answers);
                SERVER_EVERY
            }
        };
        self.next.insert(name, now.saturating_add(every));
    }
}

fn trial(record: &TargetRecord, memory: Option<&Memory>) -> Option<Trial> {
    if record.status != TargetState::Attached {
        return None;
    }
    match &record.approval.backend {
        Backend::LocalDir { .. } | Backend::Usb { .. } => match memory?.target.confirmed.as_ref()? {
            (id, MarkerSeen::Ours | MarkerSeen::Failing(_)) => {
                let target = record.approval.name.clone();
                Some(Trial::Disk(*id, Expected { target, mark: record.mark, before: Before::Marked }))
            }
            (
                _,
                MarkerSeen::Unwritable(_)
                | MarkerSeen::Missing
                | MarkerSeen::Other(_)
                | MarkerSeen::Unread(_),
            ) => None,
        },
        Backend::Nfs { server, .. } => Some(Trial::Server(server.clone(), NFS_PORT)),
        Backend::Cifs { server, .. } => Some(Trial::Server(server.clone(), SMB_PORT)),
        // Queried by `offsite`.
        Backend::Pbs { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use holdfast_protocol::storage::Approval;
    use serde_json::json;

    use super::*;

    fn record(backend: &serde_json::Value) -> TargetRecord {
        let approval: Approval = serde_json::from_value(
            json!({ "name": "t1", "class": "slow", "role": "local-backup", "backend": backend }),
        )
        .unwrap();
        let mark = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01".parse().unwrap();
        TargetRecord { approval, status: TargetState::Attached, mark, marked: None, entry: None }
    }

    #[tokio::test]
    async fn a_disk_that_dies_under_its_mount_is_seen_and_seen_again_when_it_works() {
        let works = Arc::new(AtomicBool::new(false));
        let probe = TargetProbe::reported({
            let works = Arc::clone(&works);
            move |_| works.load(Ordering::Relaxed).then_some(()).ok_or_else(|| "it takes no write".to_owned())
        });
        let record = record(&json!({ "usb": { "uuid": "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a01" } }));
        let (name, records) = (record.approval.name.clone(), [record]);
        let (mut probes, mut targets) = (Probes::default(), BTreeMap::new());
        probes.begin(&records, &targets, &probe, Duration::ZERO);
        assert!(probes.under_way.is_empty(), "what is not mounted is not tried");
        let mut memory = Memory::default();
        memory.target.confirmed = Some((7, MarkerSeen::Ours));
        targets.insert(name.clone(), memory);
        probes.begin(&records, &targets, &probe, Duration::ZERO);
        let news = probes.news().await;
        probes.hear(news, &mut targets, Duration::ZERO);
        let seen = |targets: &BTreeMap<TargetName, Memory>| targets[&name].target.confirmed.clone();
        assert_eq!(seen(&targets), Some((7, MarkerSeen::Failing("it takes no write".to_owned()))));
        works.store(true, Ordering::Relaxed);
        probes.begin(&records, &targets, &probe, FAILING_EVERY / 2);
        assert!(probes.under_way.is_empty(), "not more often than it costs");
        probes.begin(&records, &targets, &probe, FAILING_EVERY);
        let news = probes.news().await;
        probes.hear(news, &mut targets, FAILING_EVERY);
        assert_eq!(seen(&targets), Some((7, MarkerSeen::Ours)));
    }

    #[tokio::test]
    async fn what_was_tried_of_a_former_mount_says_nothing_of_this_one() {
        let name: TargetName = "t1".parse().unwrap();
        let mut memory = Memory::default();
        memory.target.confirmed = Some((8, MarkerSeen::Ours));
        let mut targets = BTreeMap::from([(name.clone(), memory)]);
        let tried = ProbeAttempt::Disk(7, Err("gone".to_owned()));
        Probes::default().hear(Ok((name.clone(), tried)), &mut targets, Duration::ZERO);
        assert_eq!(targets[&name].target.confirmed, Some((8, MarkerSeen::Ours)));
    }

    #[tokio::test]
    async fn a_share_is_tried_at_its_server() {
        let probe = TargetProbe::reported(|_| Err("it does not answer".to_owned()));
        for backend in [
            json!({ "nfs": { "server": "nas.example", "export": "/export/a" } }),
            json!({ "cifs": { "server": "nas.example", "share": "backup" } }),
        ] {
            let (records, mut targets) = ([record(&backend)], BTreeMap::new());
            let mut probes = Probes::default();
            probes.begin(&records, &targets, &probe, Duration::ZERO);
            let news = probes.news().await;
            probes.hear(news, &mut targets, Duration::ZERO);
            assert_eq!(
                targets[&records[0].approval.name].target.server,
                ServerSeen::Silent("it does not answer".to_owned())
            );
        }
    }
}
