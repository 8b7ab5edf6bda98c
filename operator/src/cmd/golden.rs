//! `holdfast golden`: golden images over all hosts.

use std::collections::BTreeMap;

use holdfast_protocol::golden_builds::{Agreement, ComparedBuilds};
use holdfast_protocol::id::{GoldenVersion, HostName};
use holdfast_protocol::operator::HostDetail;
use holdfast_protocol::report::{GoldenReport, ImageBuild, ImageStatus, Sections};
use serde::Serialize;

use super::approval;
use super::image_builds::{all_hosts, compared};
use crate::args::GoldenCommand;
use crate::error::CliError;
use crate::hub::Hub;
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
    /// How it was made, where its manifest is on the host.
    pub build: Option<ImageBuild>,
    /// Whether builders of the same inputs agree, as far as hosts report.
    pub agreement: Option<Agreement>,
    /// The guests that came from it.
    pub guests: Vec<String>,
    /// The newest version that this host may make guests from, where that is newer than this one.
    pub newer: Option<GoldenVersion>,
}

pub async fn run(command: GoldenCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        GoldenCommand::List { host } => list(host, hub, screen).await,
        GoldenCommand::Compare => compare(hub, screen).await,
        GoldenCommand::Approvals(args) => approval::list(args, hub, screen).await,
        GoldenCommand::Submit { file } => approval::submit_file(&file, hub, screen).await,
        GoldenCommand::Withdraw { job } => approval::withdraw(&job, hub, screen).await,
    }
}

async fn list(host: Option<String>, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    // What others built of the same inputs matters for one host, too.
    let hosts = all_hosts(hub).await?;
    let builds = compared(&hosts);
    let is_named = |detail: &&HostDetail| {
        host.as_ref()
            .is_none_or(|named| *named == detail.host.name.as_str() || *named == detail.host.id.to_string())
    };
    let mut goldens = Vec::new();
    for detail in hosts.iter().filter(is_named) {
        goldens.extend(images_on_host(&detail.host.name, &detail.sections, &builds));
    }
    if let Some(named) = host.as_ref().filter(|_| !hosts.iter().any(|detail| is_named(&detail))) {
        // The hub's own sentence for a host that there is not.
        let _unknown: HostDetail = hub.get(&["v1", "hosts", named]).await?;
    }
    screen.show(&goldens, |goldens, style| render::golden::goldens(goldens, style))
}

async fn compare(hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let builds = compared(&all_hosts(hub).await?);
    screen.show(&builds, |builds, style| render::golden::compared(builds, style))?;
    match differing(&builds) {
        Some(sentence) => Err(CliError::GoldensDiffer { sentence }),
        None => Ok(()),
    }
}

/// Which hosts have different images of the same inputs, in words.
fn differing(builds: &[ComparedBuilds]) -> Option<String> {
    let differ = builds.iter().filter(|builds| builds.agreement() == Agreement::Differ);
    let sentences: Vec<String> = differ.map(ComparedBuilds::sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join("; and "))
}

/// Every version that is stored on a host or that a guest there came from; the newest first.
pub fn images_on_host(host: &HostName, sections: &Sections, builds: &[ComparedBuilds]) -> Vec<ImageOnHost> {
    let mut found: BTreeMap<_, ImageOnHost> = BTreeMap::new();
    let empty = |version: &GoldenVersion| ImageOnHost {
        host: host.clone(),
        version: version.clone(),
        sha256: None,
        status: None,
        build: None,
        agreement: None,
        guests: Vec::new(),
        newer: None,
    };
    for GoldenReport { version, sha256, status, build, .. } in
        sections.host.iter().flat_map(|host| &host.goldens)
    {
        let of_these = build
            .as_ref()
            .and_then(|build| builds.iter().find(|one| one.inputs_sha256 == build.inputs_sha256));
        let golden = ImageOnHost {
            sha256: sha256.clone(),
            status: Some(*status),
            agreement: of_these.map(ComparedBuilds::agreement),
            build: build.clone(),
            ..empty(version)
        };
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
