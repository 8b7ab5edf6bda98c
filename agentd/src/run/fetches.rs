//! The start of the tasks that fetch approved files from the hub.

use std::sync::Arc;

use agent_slots::withdrawal::TrialWithdrawal;
use holdfast_protocol::envelope::ErrorBody;
use tokio::sync::watch;

use super::Tasks;
use super::parts::Parts;
use crate::model::observed::MissingControllers;
use crate::model::view::HostSnapshot;
use crate::port::golden_folder::GoldenFolder;
use crate::port::helper::Helper;
use crate::port::hub::Hub;
use crate::port::slots_file;
use crate::port::update_folder::UpdateFolder;
use crate::settings::Settings;
use crate::task::agent_update::AgentUpdateTask;
use crate::task::controller_fetch::ControllerFetchTask;
use crate::task::golden_fetch::GoldenFetchTask;
use crate::task::stop::Stop;

/// Builds of the guest agent.
pub(super) fn start_controllers(
    tasks: &mut Tasks,
    parts: &Parts,
    missing: watch::Sender<Arc<MissingControllers>>,
    stop: &Stop,
) {
    let task = ControllerFetchTask {
        store: parts.store.clone(),
        folder: parts.folder.clone(),
        dial: Arc::new(Hub::enrolled),
        artifacts: parts.artifacts.clone(),
        missing,
        clock: Arc::clone(&parts.clock),
    };
    let stop = stop.clone();
    tasks.spawn(async move {
        task.run(stop).await;
        "controller_fetch"
    });
}

/// Golden images.
pub(super) fn start_goldens(
    tasks: &mut Tasks,
    (settings, parts): (&Settings, &Parts),
    view: watch::Receiver<Arc<HostSnapshot>>,
    trouble: watch::Sender<Option<ErrorBody>>,
    stop: &Stop,
) {
    let task = GoldenFetchTask {
        view,
        identity: parts.folder.clone(),
        dial: Arc::new(Hub::enrolled),
        folder: GoldenFolder::of(&settings.state.dir),
        helper: Helper::shipped(),
        trouble,
        placed: None,
        clock: Arc::clone(&parts.clock),
    };
    let stop = stop.clone();
    tasks.spawn(async move {
        task.run(stop).await;
        "golden_fetch"
    });
}

/// Releases of this agent.
pub(super) fn start_agent_update(
    tasks: &mut Tasks,
    settings: &Settings,
    parts: &Parts,
    withdrawal: watch::Sender<Option<TrialWithdrawal>>,
    stop: &Stop,
) {
    let task = AgentUpdateTask {
        store: parts.store.clone(),
        folder: parts.folder.clone(),
        dial: Arc::new(Hub::enrolled),
        updates: UpdateFolder::of(&settings.state.dir),
        slots: slots_file::read,
        withdrawal,
        restart: Arc::new(stop_this_process),
        clock: Arc::clone(&parts.clock),
    };
    let stop = stop.clone();
    tasks.spawn(async move {
        task.run(stop).await;
        "agent_update"
    });
}

/// An orderly stop, as systemd would ask for it; systemd then starts the agent again.
fn stop_this_process() {
    if let Err(error) =
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)
    {
        tracing::error!(%error, "the agent cannot stop itself: restart it (`systemctl restart agentd`)");
    }
}
