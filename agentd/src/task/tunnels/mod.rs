//! The task that looks after tunnels.
//!
//! In: the tunnels that root's settings name, what systemd, their metrics and their far ends say, and signed jobs with
//! tokens. Out: reports, requests for a restart to root's service, tokens in their files. A tunnel needs nothing of this
//! task to carry traffic. Where nothing is named, nothing is read. Deliberately absent: any power over a service.

mod tokens;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::{TunnelName, UnitName};
use holdfast_protocol::json::chain;
use holdfast_protocol::report::{TunnelReport, TunnelState};
use holdfast_seal::HostKey;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::stop::Stop;
use crate::model::tunnel::restarts::RestartRequests;
use crate::model::tunnel::{
    Proof, ServiceState, TokenSupply, Tunnel, TunnelHistory, TunnelReading, TunnelsView,
};
use crate::port::clock::{Clock, Pause};
use crate::port::store::{Store, StoreError};
use crate::port::tunnels::{Systemctl, TunnelFiles, local_http, probe};

/// How often each tunnel is looked at.
pub const EVERY: Duration = Duration::from_secs(30);
/// Without tunnels.
const AT_REST: Duration = Duration::from_secs(3_600);

pub struct TunnelsTask {
    /// The tunnels that root's settings name.
    pub tunnels: Vec<Tunnel>,
    pub systemctl: Systemctl,
    pub files: TunnelFiles,
    pub store: Store,
    /// What tokens are sealed to.
    pub key: Arc<HostKey>,
    /// Where the reports are published.
    pub view: watch::Sender<Arc<TunnelsView>>,
    /// How often they are looked at.
    pub every: Duration,
    pub clock: Arc<dyn Clock>,
}

/// What is remembered between two turns.
#[derive(Default)]
struct TurnMemory {
    histories: BTreeMap<TunnelName, TunnelHistory>,
    systemd: SystemdAnswer,
}

/// Whether systemd answered last; only a change is logged.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum SystemdAnswer {
    #[default]
    Usable,
    Missing,
}

impl TunnelsTask {
    /// Looks until the agent stops.
    pub async fn run(self, mut stop: Stop) {
        let (mut changes, clock) = (self.store.changes(), Arc::clone(&self.clock));
        let mut memory = TurnMemory::default();
        loop {
            tokio::select! {
                () = stop.requested() => return,
                () = self.look(&mut memory) => {}
            }
            // Without tunnels only a job whose delay is over has to be answered.
            let mut pause: Pause<'_> =
                clock.sleep(if self.tunnels.is_empty() { AT_REST } else { self.every });
            let mut taken = None;
            loop {
                let jobs = changes.borrow_and_update().jobs;
                if taken != Some(jobs) {
                    taken = Some(jobs);
                    tokio::select! {
                        () = stop.requested() => return,
                        done = tokens::take(&self) => if let Err(error) = done {
                            tracing::warn!(error = chain(&error), "tokens of tunnels: this turn ended early");
                        }
                    }
                }
                tokio::select! {
                    () = stop.requested() => return,
                    changed = changes.changed() => if changed.is_err() { return },
                    () = &mut pause => break,
                }
            }
        }
    }

    async fn look(&self, memory: &mut TurnMemory) {
        let services = self.services(memory).await;
        let readings = self.readings(services).await;
        let now = self.clock.now();
        let mut requests = match self.store.tunnel_restarts().await {
            Ok(requests) => requests,
            Err(error) => {
                return tracing::warn!(error = chain(&error), "tunnels: the records cannot be read");
            }
        };
        let mut reports = Vec::with_capacity(self.tunnels.len());
        for (tunnel, reading) in self.tunnels.iter().zip(&readings) {
            let history = memory.histories.entry(tunnel.name.clone()).or_default();
            let (next, mut report) = history.next(tunnel, reading, now);
            *history = next;
            if requests.is_due(tunnel, &report, now) {
                let why = format!("tunnel {} ({}): {}", tunnel.name, tunnel.unit, report.why.as_str());
                match self.ask(&requests, tunnel, why).await {
                    Ok(next) => requests = next,
                    Err(error) => {
                        tracing::warn!(error = chain(&error), "no restart of a tunnel was asked for")
                    }
                }
            }
            report.restarts = requests.report(&tunnel.name, self.files.answer(&tunnel.name), now);
            report.token = (tunnel.token == TokenSupply::SignedJob).then(|| self.files.token(&tunnel.name));
            reports.push(report);
        }
        self.publish(reports);
    }

    /// What systemd says of each service.
    async fn services(&self, memory: &mut TurnMemory) -> Vec<Option<ServiceState>> {
        let units: Vec<UnitName> = self.tunnels.iter().map(|tunnel| tunnel.unit.clone()).collect();
        match self.systemctl.show(&units).await {
            Ok(services) => {
                memory.systemd = SystemdAnswer::Usable;
                services
            }
            Err(error) => {
                if memory.systemd == SystemdAnswer::Usable {
                    tracing::warn!(error = chain(&error), "systemd cannot be asked about tunnels");
                }
                memory.systemd = SystemdAnswer::Missing;
                vec![None; units.len()]
            }
        }
    }

    /// Asks metrics and far ends, all at once. Each question has a bound.
    async fn readings(&self, services: Vec<Option<ServiceState>>) -> Vec<TunnelReading> {
        let mut asked = JoinSet::new();
        for (place, tunnel) in self.tunnels.iter().enumerate() {
            let (metrics, target) = (tunnel.metrics, tunnel.probe.clone());
            asked.spawn(async move {
                let connections = async {
                    match metrics {
                        Some(at) => local_http::connections(at).await,
                        None => Proof::NotAsked,
                    }
                };
                let far_end = async {
                    match &target {
                        Some(target) => probe::ask(target).await,
                        None => Proof::NotAsked,
                    }
                };
                (place, tokio::join!(connections, far_end))
            });
        }
        let unasked =
            |service| TunnelReading { service, connections: Proof::NotAsked, probe: Proof::NotAsked };
        let mut readings: Vec<TunnelReading> = services.into_iter().map(unasked).collect();
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((place, (connections, probe))) => {
                    if let Some(reading) = readings.get_mut(place) {
                        (reading.connections, reading.probe) = (connections, probe);
                    }
                }
                Err(error) => tracing::error!(%error, "a question about a tunnel ended early"),
            }
        }
        readings
    }

    /// Asks for a restart; the records and the audit have it before.
    async fn ask(
        &self,
        requests: &RestartRequests,
        tunnel: &Tunnel,
        why: String,
    ) -> Result<RestartRequests, StoreError> {
        let now = self.clock.now();
        let next = requests.with(&tunnel.name, now);
        tracing::warn!("a restart is asked for: {why}");
        self.store.keep_tunnel_restart(next.clone(), why, now).await?;
        let (files, name) = (self.files.clone(), tunnel.name.clone());
        match tokio::task::spawn_blocking(move || files.ask(&name)).await {
            Ok(Ok(())) => {}
            // The report says that root's service is silent.
            Ok(Err(error)) => tracing::error!(error = chain(&error), "root's service could not be asked"),
            Err(error) => tracing::error!(%error, "a thread for files ended early"),
        }
        Ok(next)
    }

    fn publish(&self, reports: Vec<TunnelReport>) {
        self.view.send_if_modified(|last| {
            let next = TunnelsView { reports: Some(reports) };
            if **last == next {
                return false;
            }
            for report in next.reports.iter().flatten() {
                if last.report(&report.name).map(|last| last.state) != Some(report.state) {
                    log(report);
                }
            }
            *last = Arc::new(next);
            true
        });
    }
}

fn log(report: &TunnelReport) {
    let line = format!("tunnel {} is {}: {}", report.name, report.state.as_str(), report.why.as_str());
    match report.state {
        TunnelState::Up | TunnelState::Unproved => tracing::info!("{line}"),
        TunnelState::Degraded | TunnelState::Down | TunnelState::Stopped | TunnelState::Unknown => {
            tracing::warn!("{line}");
        }
    }
}
