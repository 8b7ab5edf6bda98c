//! A guest's calls about itself: hello, self, storage.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::{GuestUid, MountPath};
use holdfast_protocol::local::hello::{PROGRAMS_MAX, WHY_BYTES_MAX};
use holdfast_protocol::local::window::STACKS_MAX;
use holdfast_protocol::local::{Hello, HelloAnswer, ImageAge, MountState, MountView, SelfView, StorageView};
use holdfast_protocol::root_disk;

use super::auth::GuestScope;
use super::envelope::Data;
use super::error::ApiError;
use super::{LIMITS, Local, body};
use crate::model::limits;
use crate::model::records::{HelloRecord, ReportedConditions};

/// Versions and boot ids are shown in tables.
const WORD_CHARS_MAX: usize = 64;

pub(super) async fn hello(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    body: Body,
) -> Result<Data<HelloAnswer>, ApiError> {
    let hello = read_hello(body).await?;
    let said = HelloRecord {
        version: hello.version,
        health: hello.health,
        boot_id: hello.boot_id,
        build: hello.build.and_then(|build| String::from(build).try_into().ok()),
        reported: ReportedConditions {
            unwell: hello.unwell,
            upgrade: hello.upgrade,
            restart_needed: hello.restart_needed,
            root_disk: hello.root_disk,
        },
        at: local.clock.now(),
    };
    local.store.record_hello(scope.uid(), said).await?;
    Ok(Data(HelloAnswer { again_in_s: limits::hello_again_s(local.wanted.count().await?) }))
}

/// A hello whose text can be shown.
pub(super) async fn read_hello(body: Body) -> Result<Hello, ApiError> {
    let hello: Hello = body::read("the hello", body).await?;
    let word = |what, text: &str| {
        let plain = text.chars().all(|c| c.is_ascii_graphic());
        if plain && (1..=WORD_CHARS_MAX).contains(&text.len()) {
            Ok(())
        } else {
            Err(ApiError::Part { what, rule: "1 to 64 printable ASCII characters without blanks" })
        }
    };
    word("version", &hello.version)?;
    word("boot_id", &hello.boot_id)?;
    if hello.unwell.len() > STACKS_MAX {
        return Err(ApiError::Part { what: "unwell", rule: "at most 32 stacks" });
    }
    let whys =
        hello.unwell.iter().map(|stack| &stack.why).chain(hello.upgrade.iter().map(|upgrade| &upgrade.why));
    let plain =
        |text: &str, most: usize| (1..=most).contains(&text.len()) && !text.chars().any(char::is_control);
    if !whys.into_iter().all(|why| plain(why, WHY_BYTES_MAX)) {
        return Err(ApiError::Part { what: "why", rule: "1 to 128 bytes without control characters" });
    }
    let programs = hello.restart_needed.iter().flat_map(|needed| &needed.programs);
    let few = hello.restart_needed.as_ref().is_none_or(|needed| needed.programs.len() <= PROGRAMS_MAX);
    if !few || !programs.into_iter().all(|name| plain(name, WORD_CHARS_MAX)) {
        return Err(ApiError::Part { what: "programs", rule: "at most 8 names of 1 to 64 bytes" });
    }
    if hello.root_disk.as_ref().is_some_and(|data| data.items.len() > root_disk::ITEMS_MAX) {
        return Err(ApiError::Part { what: "root_disk", rule: "at most 8 places" });
    }
    Ok(hello)
}

pub(super) async fn itself(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
) -> Result<Data<SelfView>, ApiError> {
    let guest = wanted(&local, &scope).await?;
    Ok(Data(SelfView {
        uid: guest.uid,
        name: guest.name,
        customer: guest.customer,
        // The golden that it was made from; the document may name another one by now.
        golden: scope.record().golden.clone(),
        golden_age: golden_age(&local, scope.uid()),
        size: guest.size,
        network: guest.network,
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        limits: LIMITS,
    }))
}

/// How old the image of a guest is, as the host was last seen.
fn golden_age(local: &Local, uid: GuestUid) -> Option<ImageAge> {
    let view = local.view.borrow();
    let built_at = view.guests.iter().find(|guest| guest.uid == Some(uid))?.golden_built_at?;
    let days = local.clock.now().duration_since(built_at).as_hours() / 24;
    Some(ImageAge { built_at, days: u32::try_from(days).unwrap_or(0) })
}

pub(super) async fn storage(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
) -> Result<Data<StorageView>, ApiError> {
    let guest = wanted(&local, &scope).await?;
    let seen = local.view.borrow().mounts.get(&guest.uid).cloned();
    Ok(Data(mounts(guest, seen.as_ref())))
}

/// The mounts of a guest as the document wants them, each with whether it is there; `attached` are the paths that were
/// seen.
pub(super) fn mounts(guest: DesiredGuest, attached: Option<&BTreeSet<String>>) -> StorageView {
    let state = |mount: &MountPath| match attached {
        None => MountState::Unknown,
        Some(paths) if paths.contains(mount.as_str()) => MountState::Attached,
        Some(_) => MountState::Desired,
    };
    let volumes = guest.volumes.into_iter().map(|volume| MountView {
        state: state(&volume.mount),
        name: volume.name,
        mount: volume.mount,
        size_gib: volume.size_gib,
        kind: volume.kind,
    });
    StorageView { rootfs_gib: guest.size.rootfs_gib, volumes: volumes.collect() }
}

async fn wanted(local: &Local, scope: &GuestScope) -> Result<DesiredGuest, ApiError> {
    local.wanted.guest(scope.uid()).await?.ok_or(ApiError::Unmanaged)
}
