//! What hosts report of how images were built.
//!
//! In: the reports of all hosts. Out: the images by their inputs, and what an operator should know before signing for
//! one. Deliberately absent: the signature, and what is shown of the images otherwise.

use std::collections::BTreeMap;

use holdfast_protocol::golden_builds::{Agreement, ComparedBuilds};
use holdfast_protocol::id::GoldenVersion;
use holdfast_protocol::job::act::{Act, ReleaseKind};
use holdfast_protocol::operator::{HostDetail, HostState, HostView};

use crate::error::CliError;
use crate::hub::{Hub, WHOLE};

/// What the hub knows of every host that is not revoked.
pub async fn all_hosts(hub: &Hub) -> Result<Vec<HostDetail>, CliError> {
    let hosts: Vec<HostView> = hub.list(&["v1", "hosts"], &[], WHOLE).await?;
    let mut details = Vec::new();
    for host in hosts.iter().filter(|host| host.state != HostState::Revoked) {
        details.push(hub.get(&["v1", "hosts", &host.id.to_string()]).await?);
    }
    Ok(details)
}

/// The images of all hosts, by what they were built of.
pub fn compared(hosts: &[HostDetail]) -> Vec<ComparedBuilds> {
    let images = hosts.iter().flat_map(|detail| {
        let goldens = detail.sections.host.iter().flat_map(|host| &host.goldens);
        goldens.map(|image| (&detail.host.name, image))
    });
    ComparedBuilds::of(images)
}

/// What an operator should know of the builds before signing for an image, as lines; nothing for other jobs.
///
/// # Errors
/// [`CliError::DifferentBuilds`], where builders disagree and the operator did not say that this is known.
pub async fn before_approval(
    act: &Act,
    hub: &Hub,
    difference: DifferenceKnown,
) -> Result<Option<String>, CliError> {
    let Act::ApproveRelease(args) = act else { return Ok(None) };
    if args.kind != ReleaseKind::Golden {
        return Ok(None);
    }
    builds_of(args.sha256.as_str(), &all_hosts(hub).await?, difference).map(Some)
}

/// What an operator should know of the builds of an image, as lines.
///
/// # Errors
/// [`CliError::DifferentBuilds`], where builders disagree and the operator did not say that this is known.
pub fn builds_of(
    sha256: &str,
    hosts: &[HostDetail],
    difference: DifferenceKnown,
) -> Result<String, CliError> {
    let builds = compared(hosts);
    let Some(builds) = builds.iter().find(|builds| builds.has(sha256)) else {
        return Ok("Builds: no host reports how this image was built.\n".to_owned());
    };
    let sentence = builds.sentence();
    match (builds.agreement(), difference) {
        (Agreement::Agree, _) => Ok(format!("Builds agree: {sentence}.\n")),
        (Agreement::Single, _) => Ok(format!("Builds: one builder, nothing to compare with: {sentence}.\n")),
        (Agreement::Differ, DifferenceKnown::Yes) => {
            Ok(format!("BUILDS DIFFER, of the same inputs: {sentence}.\n"))
        }
        (Agreement::Differ, DifferenceKnown::No) => Err(CliError::DifferentBuilds { sentence }),
    }
}

/// The digests that hosts report of a version, each with its hosts.
pub fn digests(version: &GoldenVersion, hosts: &[HostDetail]) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for detail in hosts {
        let goldens = detail.sections.host.iter().flat_map(|host| &host.goldens);
        for sha256 in
            goldens.filter(|image| image.version == *version).filter_map(|image| image.sha256.clone())
        {
            found.entry(sha256).or_default().push(detail.host.name.to_string());
        }
    }
    found
}

/// Whether the operator said that builders of an image disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceKnown {
    Yes,
    No,
}
