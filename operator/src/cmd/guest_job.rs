//! Signed jobs as customers see them: `holdfast job guests` and `object`.

use holdfast_protocol::objection::{GuestJobView, ObjectionRequest};

use crate::error::CliError;
use crate::hub::Hub;
use crate::screen::Screen;
use crate::{clock, render};

/// As many as a person reads.
const SHOWN: usize = 200;

pub async fn list(hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let all: Vec<GuestJobView> = hub.list(&["v1", "jobs"], &[], SHOWN).await?;
    screen.show(&all, |all, style| render::guest_job::jobs(all, clock::now(), style))
}

pub async fn object(
    job: &str,
    request: &ObjectionRequest,
    hub: &Hub,
    screen: &Screen,
) -> Result<(), CliError> {
    let view: GuestJobView = hub.post(&["v1", "jobs", job, "objection"], request).await?;
    screen.show(&view, |view, _| render::guest_job::objected(view, clock::now()))
}
