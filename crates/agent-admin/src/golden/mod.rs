//! `agentd golden`: images on this host.
//!
//! Exit code 0: done. 1: the helper or the builder refused. 65: the request does not fit the actual state. 69: no
//! answer. Building goes through the root helper. Nothing is approved here: that takes an operator's signature.

mod list;
mod prune;
mod request;

use std::io::IsTerminal;
use std::path::PathBuf;

use holdfast_protocol::id::GoldenVersion;

use super::Output;
use crate::port::admin_socket::StatusError;
use crate::port::golden_dump::{self, GoldenDumpError, StoredImage};
use crate::port::held_folder::HeldError;
use crate::port::helper::{BuiltGolden, BuiltHow, GoldenStage, Helper, HelperError};
use crate::settings::{ConfigPath, GoldenDumpSettings, Settings, SettingsError};

/// The arguments.
#[derive(Debug, clap::Args)]
pub struct GoldenArguments {
    #[command(subcommand)]
    command: GoldenCommand,
}

#[derive(Debug, clap::Subcommand)]
enum GoldenCommand {
    /// Build a new image with the root helper, from Debian's archives and the recipe of this package. Takes minutes.
    Build(BuildArguments),
    /// Show the images on this host: version, age, digest, whether guests may be made from it, and which guests were.
    List(list::ListArguments),
    /// Show which images are no longer needed; with --yes, remove the named ones, as root.
    Prune(prune::PruneArguments),
    /// Write the draft that an operator signs to approve an image for new guests (`holdfast sign HOST --draft FILE`).
    ApproveRequest(request::RequestArguments),
}

/// The arguments of `build`.
#[derive(Debug, clap::Args)]
struct BuildArguments {
    /// Text for people, or JSON (`holdfast.golden-built/v1`) for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    /// The configuration.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The helper.
    #[error(transparent)]
    Helper(#[from] HelperError),
    /// The runtime.
    #[error("the runtime cannot be started")]
    Runtime(#[source] std::io::Error),
    /// The folder.
    #[error(transparent)]
    Dump(#[from] GoldenDumpError),
    /// No folder.
    #[error(
        "agent.toml has no [golden_dump]: name the storage and the folder that golden images are built into"
    )]
    NoDump,
    /// No such version.
    #[error("golden {0} is not on this box: `agentd golden list` shows those that are")]
    NoSuch(GoldenVersion),
    /// The archive.
    #[error("the archive {} cannot be read", path.display())]
    Archive {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The archive does not match its manifest.
    #[error("{} hashes to {found}, its manifest says {said}: it was exchanged or is damaged; build another version", path.display())]
    Exchanged {
        /// Which.
        path: PathBuf,
        /// Its actual hash.
        found: String,
        /// Its expected hash.
        said: String,
    },
    /// Which guests there are is not known.
    #[error("which guests came from which image is not known, so none is taken away")]
    Status(#[source] StatusError),
    /// The agent has just started.
    #[error("the agent has not seen its guests yet, so no image is taken away: ask again in a minute")]
    Unseen,
    /// An image that was named, and is needed.
    #[error("golden {version} stays ({why}), so nothing was taken away: leave it out")]
    Stays {
        /// Which.
        version: GoldenVersion,
        /// Why.
        why: String,
    },
    /// Other users than root can write to the folder.
    #[error("nothing is taken away where somebody else than root has a hand")]
    Folder(#[source] HeldError),
    /// A file that stays.
    #[error("{} cannot be removed: the folder is root's, so root runs this", path.display())]
    Remove {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A value that no job can carry.
    #[error("this cannot be written as a request: {0}")]
    Unwritable(String),
    /// The file for the request.
    #[error("{} cannot be written: it must not be there yet", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl GoldenError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) | Self::NoDump => 78,
            Self::Helper(HelperError::Refused { .. } | HelperError::Unbuilt(_)) => 1,
            Self::Helper(_) | Self::Status(_) | Self::Unseen => 69,
            Self::NoSuch(_) | Self::Exchanged { .. } | Self::Stays { .. } => 65,
            Self::Folder(_) => 77,
            Self::Dump(_) | Self::Archive { .. } => 66,
            Self::Write { .. } | Self::Remove { .. } => 73,
            Self::Runtime(_) | Self::Unwritable(_) => 70,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`GoldenError`].
pub fn run(arguments: GoldenArguments) -> Result<(), GoldenError> {
    match arguments.command {
        GoldenCommand::Build(arguments) => build(&arguments),
        GoldenCommand::List(arguments) => list::run(&arguments),
        GoldenCommand::Prune(arguments) => prune::run(&arguments),
        GoldenCommand::ApproveRequest(arguments) => request::run(&arguments),
    }
}

/// The built image: the document for programs.
#[derive(serde::Serialize)]
struct Built<'a> {
    schema: &'static str,
    #[serde(flatten)]
    built: &'a BuiltGolden,
}

fn build(arguments: &BuildArguments) -> Result<(), GoldenError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(GoldenError::Runtime)?;
    let begun = super::now();
    let reports = arguments.output == Output::Table || std::io::stderr().is_terminal();
    let built = runtime.block_on(Helper::shipped().golden_build(|stage| {
        if reports {
            let seconds = super::now().duration_since(begun).as_secs();
            eprintln!("{seconds:>5} s  {}", words(stage));
        }
    }))?;
    match arguments.output {
        Output::Json => {
            super::print_json(&Built { schema: "holdfast.golden-built/v1", built: &built });
        }
        Output::Table => print!("{}", page(&built)),
    }
    Ok(())
}

const fn words(stage: GoldenStage) -> &'static str {
    match stage {
        GoldenStage::Debian => "fetching and unpacking Debian",
        GoldenStage::Image => "putting the image together",
        GoldenStage::Pack => "packing it",
        GoldenStage::Scan => "looking for secrets in it",
    }
}

fn page(built: &BuiltGolden) -> String {
    let how = match built.how {
        BuiltHow::Built => "built",
        BuiltHow::Already => "the same bytes were there already",
    };
    format!(
        "golden   {0} ({how})\narchive  {1}\nsha256   {2}\nsize     {3} MB\nNo guest is made from it before an operator \
         signs: `agentd golden approve-request {0}`.\n",
        built.version,
        built.archive,
        built.sha256,
        built.size_bytes / 1_000_000
    )
}

/// The settings, the folder, and the images there, oldest first.
fn stored(config: &ConfigPath) -> Result<(Settings, GoldenDumpSettings, Vec<StoredImage>), GoldenError> {
    let settings = Settings::load(config)?;
    let dump = settings.golden_dump.clone().ok_or(GoldenError::NoDump)?;
    let (found, wrong) = golden_dump::read(&dump.folder)?;
    for error in &wrong {
        eprintln!("agentd: {}", holdfast_protocol::json::chain(error));
    }
    Ok((settings, dump, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_says_what_comes_next() {
        let built = BuiltGolden {
            version: "2026.11.1".parse().unwrap(),
            archive: "vzdump-lxc-900001-x.tar.zst".to_owned(),
            sha256: "ab".repeat(32),
            size_bytes: 151_000_000,
            how: BuiltHow::Built,
        };
        let page = page(&built);
        assert!(page.contains("151 MB") && page.contains("approve-request 2026.11.1"), "{page}");
    }
}
