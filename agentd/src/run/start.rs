//! The loops, each with what it needs, and the channels between them.
//!
//! In: the opened parts and the listeners. Out: the tasks, under names that the log knows.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use agent_slots::withdrawal::TrialWithdrawal;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::report::Sections;
use jiff::SignedDuration;
use notify::Sender;
use tokio::sync::watch;

use super::parts::Parts;
use super::{BoundListeners, RunError, Tasks, fetches, of_tests, tunnels};
use crate::api::routes::{router, test_router};
use crate::api::{ApiSettings, Local};
use crate::execute::failpoint::{self, Failpoints};
use crate::execute::offsite::Asker;
use crate::execute::slots::HeavyLane;
use crate::execute::{GuestEndpoint, Ports};
use crate::model::hardware_health::HardwareView;
use crate::model::limits;
use crate::model::observed::MissingControllers;
use crate::model::offsite::Pruners;
use crate::model::policy::TestPlace;
use crate::model::storage::StorageView;
use crate::model::tunnel::TunnelsView;
use crate::model::usage::UsageReading;
use crate::model::usage_levels::UsageLevels;
use crate::model::view::{HostSnapshot, ProgressLines};
use crate::port::admin_socket;
use crate::port::backoff::spread;
use crate::port::break_glass::BreakGlassFiles;
use crate::port::guest_address::GuestAddresses;
use crate::port::helper::Helper;
use crate::port::hub::{Contact, Hub};
use crate::port::hub_alarm_file::HubAlarmFile;
use crate::port::kernel_use::KernelUse;
use crate::port::mounts::Mounts;
use crate::port::pbs::Direct;
use crate::port::target_probe::TargetProbe;
use crate::settings::Settings;
use crate::task::admin_socket::StatusTask;
use crate::task::break_glass::{BreakGlassTask, SharedStatus};
use crate::task::diagnostics::{self, DiagnosticsTask};
use crate::task::escrow::{EscrowTask, HubCopies};
use crate::task::guest_audit::GuestAuditTask;
use crate::task::hardware::HardwareTask;
use crate::task::hub_alarm::HubAlarmTask;
use crate::task::hub_sync::HubSync;
use crate::task::local_api::guests::KnownTask;
use crate::task::local_api::{self, Serving};
use crate::task::metrics::{self, MetricsSource};
use crate::task::observe::Observer;
use crate::task::reconcile::{ObserveInterval, Reconcile};
use crate::task::report::ReportTask;
use crate::task::restore_certificates::RestoreCertificatesTask;
use crate::task::stop::Stop;
use crate::task::storage::StorageTask;
use crate::task::upkeep::UpkeepTask;
use crate::task::usage::{UsageQueue, UsageTask};
use crate::task::watchdog::WatchdogTask;

/// The channels between the loops.
struct Wires {
    view: watch::Sender<Arc<HostSnapshot>>,
    storage: watch::Sender<Arc<StorageView>>,
    hardware: watch::Sender<Arc<HardwareView>>,
    sections: watch::Sender<Arc<Sections>>,
    contact: watch::Sender<Contact>,
    usage: UsageQueue,
    levels: watch::Sender<Arc<UsageLevels>>,
    break_glass: watch::Sender<SharedStatus>,
    withdrawal: watch::Sender<Option<TrialWithdrawal>>,
    missing_controllers: watch::Sender<Arc<MissingControllers>>,
    tunnels: watch::Sender<Arc<TunnelsView>>,
    lines: watch::Sender<ProgressLines>,
    heavy: HeavyLane,
    failpoints: Arc<dyn Failpoints>,
    pruners: watch::Sender<Arc<Pruners>>,
    golden_trouble: watch::Sender<Option<ErrorBody>>,
    targets: TargetProbe,
}

pub(super) fn start(
    settings: &Settings,
    parts: Parts,
    mut listeners: BoundListeners,
    stop: &Stop,
    laid_down: Option<ErrorBody>,
) -> Result<Tasks, RunError> {
    let wires = Wires {
        view: watch::channel(Arc::new(HostSnapshot::default())).0,
        storage: watch::channel(Arc::new(StorageView::default())).0,
        hardware: watch::channel(Arc::new(HardwareView::default())).0,
        sections: watch::channel(Arc::new(Sections::default())).0,
        usage: UsageQueue::default(),
        levels: watch::channel(Arc::new(UsageLevels::default())).0,
        break_glass: watch::channel(SharedStatus::default()).0,
        withdrawal: watch::channel(None).0,
        missing_controllers: watch::channel(Arc::default()).0,
        tunnels: watch::channel(Arc::new(TunnelsView::default())).0,
        lines: watch::channel(ProgressLines::new()).0,
        heavy: HeavyLane::new(limits::HEAVY_AT_ONCE),
        failpoints: failpoint::from_environment(),
        pruners: watch::channel(Arc::default()).0,
        golden_trouble: watch::channel(None).0,
        targets: TargetProbe::real(),
        contact: watch::channel(Contact {
            reached_at: None,
            problem: None,
            certificate_ends_at: parts.identity.enrolled.not_after,
        })
        .0,
    };
    let status_listener = admin_socket::open(&settings.state.dir)?;
    let bound = listeners
        .guests
        .addresses()
        .map_err(|source| RunError::Kernel { what: "its own addresses", source })?;
    let first = bound.first().ok_or(RunError::Setting {
        at: "local_api.listen".to_owned(),
        rule: "at least one address of the guests' bridge, with port",
    })?;
    let guest_listener = GuestEndpoint { endpoint: format!("https://{first}"), pin: parts.leaf.pin() };

    let mut tasks = Tasks::new();
    of_tests::stall(&mut tasks, stop);
    start_metrics(&mut tasks, listeners.metrics.take(), &parts, &wires, stop);
    start_local_api(&mut tasks, &parts, &wires, listeners, stop)?;
    let refused_files = laid_down.into_iter().collect();
    let at_guests = (status_listener, *first);
    start_tellers(&mut tasks, &parts, &wires, (at_guests, refused_files), stop);
    start_storage(&mut tasks, &parts, &wires, stop);
    start_evidence(&mut tasks, settings, &parts, stop);
    fetches::start_agent_update(&mut tasks, settings, &parts, wires.withdrawal.clone(), stop);
    fetches::start_controllers(&mut tasks, &parts, wires.missing_controllers.clone(), stop);
    let images = (wires.view.subscribe(), wires.golden_trouble.clone());
    fetches::start_goldens(&mut tasks, (settings, &parts), images.0, images.1, stop);
    start_upkeep(&mut tasks, settings, &parts, &wires, stop);
    tunnels::start(&mut tasks, &settings.tunnel, &parts, wires.tunnels.clone(), stop);
    start_hub_alarm(&mut tasks, settings, &parts, &wires, stop)?;
    start_reconcile(&mut tasks, settings, &parts, &wires, guest_listener, stop);
    let sync = HubSync {
        folder: parts.folder,
        identity: parts.identity,
        own: parts.own,
        handed: parts.handed,
        store: parts.store,
        sections: wires.sections.subscribe(),
        usage: wires.usage.clone(),
        contact: wires.contact,
        clock: parts.clock,
        dial: Arc::new(Hub::enrolled),
        dial_without: Arc::new(Hub::without_certificate),
        failpoints: wires.failpoints,
        spread,
    };
    let stop = stop.clone();
    tasks.spawn(async move {
        sync.run(stop).await;
        "hub_sync"
    });
    Ok(tasks)
}

fn start_local_api(
    tasks: &mut Tasks,
    parts: &Parts,
    wires: &Wires,
    listeners: BoundListeners,
    stop: &Stop,
) -> Result<(), RunError> {
    let local = Local::new(
        parts.store.clone(),
        Arc::clone(&parts.clock),
        wires.view.subscribe(),
        ApiSettings {
            pin: parts.leaf.pin(),
            hub: parts.identity.hub.clone(),
            quiesce_bound: parts.quiesce_bound,
            test_guest: parts.policy.scratch.as_ref().and_then(TestPlace::guest_address),
            artifacts: parts.artifacts.clone(),
        },
        GuestAddresses::of(Arc::clone(&parts.pve), Arc::clone(&parts.clock)),
    );
    let (known_now, known) = watch::channel(Arc::default());
    let addresses = KnownTask {
        store: parts.store.clone(),
        view: wires.view.subscribe(),
        scratch: parts.policy.scratch.as_ref().and_then(TestPlace::guest_address),
        known: known_now,
    };
    let for_addresses = stop.clone();
    tasks.spawn(async move {
        addresses.run(for_addresses).await;
        "known_addresses"
    });
    let calls = [(listeners.guests, router(Arc::clone(&local))), (listeners.tests, test_router(local))];
    for (listeners, router) in calls.into_iter().filter(|(listeners, _)| !listeners.is_empty()) {
        let (tls, store, clock) = (parts.leaf.server()?, parts.store.clone(), Arc::clone(&parts.clock));
        let serving = Serving { listeners, tls, router, known: known.clone(), store, clock };
        let stop = stop.clone();
        tasks.spawn(async move {
            local_api::run(serving, stop).await;
            "local_api"
        });
    }
    Ok(())
}

/// The tasks that only report: the report, the admin socket, systemd.
fn start_tellers(
    tasks: &mut Tasks,
    parts: &Parts,
    wires: &Wires,
    ((listener, local_api), refused_files): ((tokio::net::UnixListener, SocketAddr), Vec<ErrorBody>),
    stop: &Stop,
) {
    let report = ReportTask {
        token_ages: Arc::clone(&parts.token_ages),
        store: parts.store.clone(),
        view: wires.view.subscribe(),
        storage: wires.storage.subscribe(),
        hardware: wires.hardware.subscribe(),
        levels: wires.levels.subscribe(),
        tunnels: wires.tunnels.subscribe(),
        break_glass: wires.break_glass.subscribe(),
        sections: wires.sections.clone(),
        clock: Arc::clone(&parts.clock),
        started_at: parts.clock.now(),
        status: refused_files,
        handed: parts.handed.clone(),
        recipient: parts.host_key.recipient().ok(),
        contact: wires.contact.subscribe(),
    };
    let metrics = metrics_source(parts, wires);
    let reader = diagnostics::Reader {
        sections: wires.sections.subscribe(),
        tasks: diagnostics::tasks_of(&parts.pve),
        clock: Arc::clone(&parts.clock),
    };
    let readings = DiagnosticsTask { store: parts.store.clone(), reader: reader.clone() };
    let status = StatusTask {
        reader,
        host: parts.identity.enrolled.host_id,
        own: parts.own.clone(),
        hub: parts.identity.hub.clone(),
        contact: wires.contact.subscribe(),
        store: parts.store.clone(),
        helper: Helper::shipped(),
        local_api,
        handed: parts.handed.clone(),
        sections: wires.sections.subscribe(),
        metrics,
        take_tokens: Arc::clone(&parts.take_tokens),
        token_ages: Arc::clone(&parts.token_ages),
        view: wires.view.subscribe(),
        lines: wires.lines.subscribe(),
        heavy: wires.heavy.watch(),
        withdrawal: wires.withdrawal.subscribe(),
        clock: Arc::clone(&parts.clock),
        failpoints: Arc::clone(&wires.failpoints),
    };
    let watchdog = WatchdogTask {
        view: wires.view.subscribe(),
        sections: wires.sections.subscribe(),
        contact: wires.contact.subscribe(),
        clock: Arc::clone(&parts.clock),
    };
    let (for_report, for_status, for_watchdog) = (stop.clone(), stop.clone(), stop.clone());
    let for_readings = stop.clone();
    tasks.spawn(async move {
        readings.run(for_readings).await;
        "diagnostics"
    });
    tasks.spawn(async move {
        report.run(for_report).await;
        "report"
    });
    tasks.spawn(async move {
        status.run(listener, for_status).await;
        "status"
    });
    tasks.spawn(async move {
        watchdog.run(for_watchdog).await;
        "watchdog"
    });
}

fn metrics_source(parts: &Parts, wires: &Wires) -> MetricsSource {
    MetricsSource {
        sections: wires.sections.subscribe(),
        usage: wires.usage.clone(),
        contact: wires.contact.subscribe(),
        heavy: wires.heavy.watch(),
        clock: Arc::clone(&parts.clock),
    }
}

/// Where the settings name a port for it.
fn start_metrics(
    tasks: &mut Tasks,
    listener: Option<tokio::net::TcpListener>,
    parts: &Parts,
    wires: &Wires,
    stop: &Stop,
) {
    let Some(listener) = listener else { return };
    let (source, stop) = (metrics_source(parts, wires), stop.clone());
    tasks.spawn(async move {
        metrics::run(listener, source, stop).await;
        "metrics"
    });
}

/// What is read or kept small now and then.
fn start_upkeep(tasks: &mut Tasks, settings: &Settings, parts: &Parts, wires: &Wires, stop: &Stop) {
    let upkeep = UpkeepTask {
        store: parts.store.clone(),
        clock: Arc::clone(&parts.clock),
        audit_months: settings.audit.keep_months,
    };
    let hardware = HardwareTask {
        files: of_tests::hardware(),
        view: wires.hardware.clone(),
        clock: Arc::clone(&parts.clock),
    };
    let break_glass = BreakGlassTask {
        files: BreakGlassFiles::of(&settings.state.dir),
        store: parts.store.clone(),
        view: wires.view.subscribe(),
        status: wires.break_glass.clone(),
        clock: Arc::clone(&parts.clock),
    };
    let (for_upkeep, for_hardware, for_break_glass) = (stop.clone(), stop.clone(), stop.clone());
    tasks.spawn(async move {
        break_glass.run(for_break_glass).await;
        "break_glass"
    });
    tasks.spawn(async move {
        upkeep.run(for_upkeep).await;
        "upkeep"
    });
    tasks.spawn(async move {
        hardware.run(for_hardware).await;
        "hardware"
    });
}

/// Where the settings name a channel for it.
fn start_hub_alarm(
    tasks: &mut Tasks,
    settings: &Settings,
    parts: &Parts,
    wires: &Wires,
    stop: &Stop,
) -> Result<(), RunError> {
    let Some(alarm) = &settings.hub_alarm else { return Ok(()) };
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    let task = HubAlarmTask {
        host: parts.identity.enrolled.host_id,
        node: settings.proxmox.node.clone(),
        contact: wires.contact.subscribe(),
        channel: alarm.place().read(credentials.as_deref()).map_err(RunError::HubAlarm)?,
        sender: Sender::new(alarm.deliver_to),
        after: SignedDuration::from_secs(alarm.after_s.into()),
        file: HubAlarmFile::of(&settings.state.dir),
        clock: Arc::clone(&parts.clock),
    };
    let stop = stop.clone();
    tasks.spawn(async move {
        task.run(stop).await;
        "hub_alarm"
    });
    Ok(())
}

/// What travels to the hub next to the report: certificates of restore tests, and audit records.
fn start_evidence(tasks: &mut Tasks, settings: &Settings, parts: &Parts, stop: &Stop) {
    let task = RestoreCertificatesTask {
        store: parts.store.clone(),
        folder: parts.folder.clone(),
        dial: Arc::new(Hub::enrolled),
        node: settings.proxmox.node.clone(),
        clock: Arc::clone(&parts.clock),
    };
    let audit = GuestAuditTask {
        store: parts.store.clone(),
        folder: parts.folder.clone(),
        dial: Arc::new(Hub::enrolled),
        clock: Arc::clone(&parts.clock),
    };
    let (stop, for_audit) = (stop.clone(), stop.clone());
    tasks.spawn(async move {
        task.run(stop).await;
        "restore_certificates"
    });
    tasks.spawn(async move {
        audit.run(for_audit).await;
        "guest_audit"
    });
}

fn start_storage(tasks: &mut Tasks, parts: &Parts, wires: &Wires, stop: &Stop) {
    let storage = StorageTask {
        store: parts.store.clone(),
        helper: Helper::shipped(),
        mounts: Arc::new(Mounts::of_the_kernel()),
        view: wires.storage.clone(),
        pve: Arc::clone(&parts.pve),
        keeper: parts.keeper.clone(),
        asker: Asker { key: Arc::clone(&parts.host_key), dial: Arc::new(Direct) },
        pruners: wires.pruners.clone(),
        probe: wires.targets.clone(),
        host: wires.view.subscribe(),
        clock: Arc::clone(&parts.clock),
    };
    let copies = EscrowTask {
        store: parts.store.clone(),
        storage: wires.storage.subscribe(),
        hub: HubCopies {
            folder: parts.folder.clone(),
            dial: Arc::new(Hub::enrolled),
            handed: parts.handed.clone(),
        },
        clock: Arc::clone(&parts.clock),
        failpoints: Arc::clone(&wires.failpoints),
    };
    let (stop, for_copies) = (stop.clone(), stop.clone());
    tasks.spawn(async move {
        storage.run(stop).await;
        "storage"
    });
    tasks.spawn(async move {
        copies.run(for_copies).await;
        "escrow"
    });
}

fn start_reconcile(
    tasks: &mut Tasks,
    settings: &Settings,
    parts: &Parts,
    wires: &Wires,
    listener: GuestEndpoint,
    stop: &Stop,
) {
    let policy = parts.policy.clone();
    let storages: BTreeSet<_> = std::iter::once(&policy.storage)
        .chain(&policy.bulk_storage)
        .chain(&policy.guest_storages)
        .chain(&policy.backup_storage)
        .cloned()
        .collect();
    let place = (settings.proxmox.node.clone(), policy.pool.clone());
    let (readings, read) = watch::channel(UsageReading::default());
    let usage = UsageTask {
        readings: read,
        meter: of_tests::usage_meter(),
        queue: wires.usage.clone(),
        store: parts.store.clone(),
        levels: wires.levels.clone(),
        kernel: KernelUse::real(),
        clock: Arc::clone(&parts.clock),
    };
    let for_usage = stop.clone();
    tasks.spawn(async move {
        usage.run(for_usage).await;
        "usage"
    });
    let eye = Observer::new(Arc::clone(&parts.pve), Arc::clone(&parts.clock), place, storages)
        .publishing_use(readings);
    let ports = Ports::new(Arc::clone(&parts.pve), parts.store.clone(), Arc::clone(&parts.clock), listener);
    let (lines, heavy) = (wires.lines.clone(), wires.heavy.clone());
    let (scratch, failpoints) = (parts.scratch.clone(), Arc::clone(&wires.failpoints));
    let (pruners, artifacts) = (wires.pruners.subscribe(), parts.artifacts.clone());
    let (targets, missing_controllers) = (wires.targets.clone(), wires.missing_controllers.subscribe());
    let golden_trouble = wires.golden_trouble.subscribe();
    let ports = Ports {
        missing_controllers,
        golden_trouble,
        scratch,
        lines,
        heavy,
        failpoints,
        pruners,
        artifacts,
        targets,
        ..ports
    };
    let reconcile = Reconcile {
        ports,
        eye,
        policy,
        node: settings.proxmox.node.clone(),
        interval: ObserveInterval::ByDocument,
        view: wires.view.clone(),
        stop: stop.clone(),
    };
    tasks.spawn(async move {
        reconcile.run().await;
        "reconcile"
    });
}
