//! `guestd volumes`: volumes by class, their mounts, and stack variables.
//!
//! Exit code 1: one of them is not mounted. What would be written there would land on the root disk.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use holdfast_protocol::local::MountView;
use serde::Serialize;

use crate::args::{EXIT_DONE, EXIT_FAILED, EXIT_NO_PERMISSION, VolumesArgs};
use crate::file::FileError;
use crate::paths::Paths;
use crate::quiesce::mounts::{self, Mounts, NoVolume};
use crate::stacks::{self, Class, Stacks, StacksError};
use crate::work::{Session, WorkError, print};

/// Why they cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum VolumesError {
    #[error(transparent)]
    Work(#[from] WorkError),
    #[error(transparent)]
    Stacks(#[from] StacksError),
    #[error(transparent)]
    Volume(#[from] NoVolume),
    #[error("the mounts are unknown")]
    Mounts(#[source] FileError),
    #[error("there is no stack {stack} in /etc/holdfast/stacks.toml")]
    NoStack { stack: String },
    #[error("{mount} is not mounted: stack {stack} would write to the root disk; mount the volume")]
    NotMounted { mount: String, stack: String },
    #[error("the variables cannot be printed")]
    Print(#[source] io::Error),
}

impl VolumesError {
    /// For the caller of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Work(error) => error.exit_code(),
            Self::Mounts(error) | Self::Stacks(StacksError::File(error)) if error.is_permission() => {
                EXIT_NO_PERMISSION
            }
            _ => EXIT_FAILED,
        }
    }
}

#[derive(Debug, Serialize)]
struct Volume {
    name: String,
    mount: String,
    class: Class,
    size_gib: u32,
    state: MountState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum MountState {
    Mounted,
    NotMounted,
}

/// The document for programs.
#[derive(Debug, Serialize)]
struct Volumes {
    schema: &'static str,
    volumes: Vec<Volume>,
}

pub async fn volumes(args: &VolumesArgs) -> Result<u8, VolumesError> {
    let paths = Paths::new(&args.paths.root);
    let session = Session::open(&args.paths)?;
    let storage = session.agent.storage(&session.token).await.map_err(WorkError::from)?;
    let mounts = Mounts::read(&paths).map_err(VolumesError::Mounts)?;
    if let Some(stack) = &args.stack {
        let text = variables(&stacks::load(&paths)?, stack.as_str(), &storage.volumes, &mounts)?;
        io::stdout().write_all(text.as_bytes()).map_err(VolumesError::Print)?;
        return Ok(EXIT_DONE);
    }
    let shown =
        storage.volumes.iter().filter(|volume| args.class.is_none_or(|class| mounts::class(volume) == class));
    let volumes: Vec<Volume> = shown.map(|volume| view(volume, &mounts)).collect();
    let all = volumes.iter().all(|volume| volume.state == MountState::Mounted);
    let document = Volumes { schema: "holdfast.guestd-volumes/v1", volumes };
    print(args.output, &document, || table(&document))?;
    Ok(if all { EXIT_DONE } else { EXIT_FAILED })
}

/// As an environment file has them. A volume that is not mounted is no place for a stack's data.
fn variables(
    stacks: &Stacks,
    name: &str,
    volumes: &[MountView],
    mounts: &Mounts,
) -> Result<String, VolumesError> {
    let stack = stacks.stacks.iter().find(|stack| stack.name.as_str() == name);
    let stack = stack.ok_or_else(|| VolumesError::NoStack { stack: name.to_owned() })?;
    let known = mounts::volumes(stack, volumes)?;
    if let Some(mount) = known.mounts.iter().find(|mount| !mounts.has(mount)) {
        return Err(VolumesError::NotMounted { mount: mount.to_string(), stack: name.to_owned() });
    }
    Ok(known.env.iter().map(|(key, value)| format!("{key}={value}\n")).collect())
}

fn view(volume: &MountView, mounts: &Mounts) -> Volume {
    Volume {
        name: volume.name.to_string(),
        mount: volume.mount.to_string(),
        class: mounts::class(volume),
        size_gib: volume.size_gib.get(),
        state: if mounts.has(&volume.mount) { MountState::Mounted } else { MountState::NotMounted },
    }
}

fn table(document: &Volumes) -> String {
    let mut text = String::new();
    for volume in &document.volumes {
        let state = match volume.state {
            MountState::Mounted => "mounted",
            MountState::NotMounted => "NOT MOUNTED",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:<20} {:<5} {:>6} GiB  {:<12} {}",
            volume.name,
            volume.class.as_str(),
            volume.size_gib,
            state,
            volume.mount
        );
    }
    let _ = writeln!(text, "{} volumes", document.volumes.len());
    text
}
