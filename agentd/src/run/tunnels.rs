//! The start of the task that looks after tunnels.

use std::sync::Arc;

use tokio::sync::watch;

use super::Tasks;
use super::parts::Parts;
use crate::model::tunnel::{Tunnel, TunnelsView};
use crate::port::tunnels::{Systemctl, TunnelFiles};
use crate::task::stop::Stop;
use crate::task::tunnels::{EVERY, TunnelsTask};

/// Also where the settings name no tunnel: a job with a token is answered then, too.
pub(super) fn start(
    tasks: &mut Tasks,
    tunnels: &[Tunnel],
    parts: &Parts,
    view: watch::Sender<Arc<TunnelsView>>,
    stop: &Stop,
) {
    let task = TunnelsTask {
        tunnels: tunnels.to_vec(),
        systemctl: Systemctl::of_the_system(),
        files: TunnelFiles::of_the_host(),
        store: parts.store.clone(),
        key: Arc::clone(&parts.host_key),
        view,
        every: EVERY,
        clock: Arc::clone(&parts.clock),
    };
    let stop = stop.clone();
    tasks.spawn(async move {
        task.run(stop).await;
        "tunnels"
    });
}
