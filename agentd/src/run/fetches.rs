//! The start of the tasks that fetch approved files from the hub.

use std::sync::Arc;

use holdfast_protocol::envelope::ErrorBody;
use tokio::sync::watch;

use super::Tasks;
use super::parts::Parts;
use crate::model::observed::MissingControllers;
use crate::model::view::HostSnapshot;
use crate::port::golden_folder::GoldenFolder;
use crate::port::helper::Helper;
use crate::port::hub::Hub;
use crate::settings::Settings;
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
        clock: Arc::clone(&parts.clock),
    };
    let stop = stop.clone();
    tasks.spawn(async move {
        task.run(stop).await;
        "golden_fetch"
    });
}
