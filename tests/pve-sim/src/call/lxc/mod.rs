//! Containers.
pub mod config;
pub mod create;
pub mod destroy;
pub mod disk;
mod from_server;
pub mod list;
pub mod mkfs;
pub mod power;
pub mod restore;
pub mod snapshot;

use super::Handler;

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    let at = at.replace("/nodes/{node}/lxc", "~");
    Some(match at.as_str() {
        "GET ~" => list::list,
        "POST ~" => create::create,
        "GET ~/{vmid}" => list::index,
        "DELETE ~/{vmid}" => destroy::destroy,
        "GET ~/{vmid}/config" => config::show,
        "PUT ~/{vmid}/config" => config::change,
        "GET ~/{vmid}/pending" => config::pending,
        "GET ~/{vmid}/status" => list::status_index,
        "GET ~/{vmid}/status/current" => list::status,
        "POST ~/{vmid}/status/start" => power::start,
        "POST ~/{vmid}/status/stop" => power::stop,
        "POST ~/{vmid}/status/shutdown" => power::shutdown,
        "POST ~/{vmid}/status/reboot" => power::reboot,
        "POST ~/{vmid}/status/suspend" => power::suspend,
        "POST ~/{vmid}/status/resume" => power::resume,
        "GET ~/{vmid}/interfaces" => list::interfaces,
        "GET ~/{vmid}/feature" => list::feature,
        "GET ~/{vmid}/rrddata" => list::rrddata,
        "PUT ~/{vmid}/resize" => disk::resize,
        "POST ~/{vmid}/move_volume" => disk::move_volume,
        "POST ~/{vmid}/template" => disk::template,
        "GET ~/{vmid}/snapshot" => snapshot::list,
        "POST ~/{vmid}/snapshot" => snapshot::create,
        "GET ~/{vmid}/snapshot/{snapname}" => snapshot::index,
        "DELETE ~/{vmid}/snapshot/{snapname}" => snapshot::delete,
        "POST ~/{vmid}/snapshot/{snapname}/rollback" => snapshot::rollback,
        "GET ~/{vmid}/snapshot/{snapname}/config" => snapshot::show,
        "PUT ~/{vmid}/snapshot/{snapname}/config" => snapshot::change,
        _ => return None,
    })
}
