//! `holdfast golden`: golden images over all hosts.

use std::collections::BTreeMap;

use holdfast_protocol::id::{GoldenVersion, HostName};
use holdfast_protocol::operator::{HostDetail, HostState, HostView};
use holdfast_protocol::report::{GoldenReport, ImageStatus, Sections};
use serde::Serialize;

use crate::args::GoldenCommand;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::render;
use crate::screen::Screen;

/// One version on one host: the document for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageOnHost {
    pub host: HostName,
    pub version: GoldenVersion,
    /// The hash of its archive there, as far as the host reported it.
    pub sha256: Option<String>,
    /// Whether guests may be made from it; none where the archive is gone.
    pub status: Option<ImageStatus>,
    /// The guests that came from it.
    pub guests: Vec<String>,
    /// The newest version that this host may make guests from, where that is newer than this one.
    pub newer: Option<GoldenVersion>,
}

pub async fn run(command: GoldenCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let GoldenCommand::List { host } = command;
    let names = match host {
        Some(host) => vec![host],
        None => {
            let hosts: Vec<HostView> = hub.list(&["v1", "hosts"], &[], WHOLE).await?;
            let kept = hosts.iter().filter(|host| host.state != HostState::Revoked);
            kept.map(|host| host.id.to_string()).collect()
        }
    };
    let mut goldens = Vec::new();
    for name in names {
        let detail: HostDetail = hub.get(&["v1", "hosts", &name]).await?;
        goldens.extend(images_on_host(&detail.host.name, &detail.sections));
    }
    screen.show(&goldens, |goldens, style| render::golden::goldens(goldens, style))
}

/// Every version that is stored on a host or that a guest there came from; the newest first.
pub fn images_on_host(host: &HostName, sections: &Sections) -> Vec<ImageOnHost> {
    let mut found: BTreeMap<_, ImageOnHost> = BTreeMap::new();
    let empty = |version: &GoldenVersion| ImageOnHost {
        host: host.clone(),
        version: version.clone(),
        sha256: None,
        status: None,
        guests: Vec::new(),
        newer: None,
    };
    for GoldenReport { version, sha256, status, .. } in sections.host.iter().flat_map(|host| &host.goldens) {
        let golden = ImageOnHost { sha256: sha256.clone(), status: Some(*status), ..empty(version) };
        found.insert(version.age_key(), golden);
    }
    for guest in sections.guests.iter().flatten() {
        let Some(version) = &guest.golden else { continue };
        found.entry(version.age_key()).or_insert_with(|| empty(version)).guests.push(guest.name.clone());
    }
    let usable = found.values().rfind(|golden| golden.status == Some(ImageStatus::Approved));
    let newest = usable.map(|golden| golden.version.clone());
    let mut goldens: Vec<ImageOnHost> = found.into_values().rev().collect();
    for golden in &mut goldens {
        golden.newer = newest.clone().filter(|newest| newest.age_key() > golden.version.age_key());
    }
    goldens
}
