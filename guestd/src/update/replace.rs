//! Trial run and installation of the new program.
//!
//! There is a whole program under our name at every moment. The old one is kept in the same folder as `guestd.old`: the
//! timer that is armed before the exchange runs it, and puts it back.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::exchange::{self, Exchange};
use super::{UpdateError, timer};
use crate::failpoint::{Point, reached};
use crate::file;
use crate::paths::Paths;
use crate::program::{self, Call};

/// It says its version and ends; a slow disk has it read first.
const TRY_LIMIT: Duration = Duration::from_secs(30);

/// Where the new one is written: in the folder of ours, so that a rename is enough.
pub fn new_path(program: &Path) -> PathBuf {
    with(program, ".new")
}

/// Where ours is kept.
pub fn old_path(program: &Path) -> PathBuf {
    with(program, ".old")
}

fn with(program: &Path, ending: &str) -> PathBuf {
    let mut name = program.file_name().map(OsString::from).unwrap_or_default();
    name.push(ending);
    program.with_file_name(name)
}

/// Has it say its version.
pub async fn try_out(new: &Path, target: &str) -> Result<(), UpdateError> {
    let call = Call::new([new.to_string_lossy().as_ref(), "--version"], TRY_LIMIT);
    let said = program::run_well(&call).await.map_err(UpdateError::DoesNotRun)?;
    let said = said.out.trim();
    if said != format!("guestd {target}") {
        let said = said.chars().take(100).collect();
        return Err(UpdateError::OtherVersion { said, target: target.to_owned() });
    }
    reached(Point::Tried);
    Ok(())
}

/// Puts it in our place and executes it. Returns only with an error, and then this program continues under its own
/// name.
pub async fn put_in(
    paths: &Paths,
    (program, new): (&Path, &Path),
    exchange: &Exchange,
    trial: Duration,
) -> Result<Infallible, UpdateError> {
    let old = old_path(program);
    file::lay_by(program, &old)?;
    reached(Point::OldKept);
    // From here on the previous program comes back by itself, whatever becomes of the new one.
    exchange.store(paths)?;
    if let Err(error) = timer::arm(paths, &old, trial).await {
        exchange::clear(paths).await;
        return Err(error.into());
    }
    reached(Point::ExchangeArmed);
    let error = match file::rename(new, program) {
        Ok(()) => {
            reached(Point::Swapped);
            let error = UpdateError::Start(become_it(program));
            file::lay_by(&old, program)?;
            error
        }
        Err(error) => error.into(),
    };
    exchange::clear(paths).await;
    Err(error)
}

#[expect(
    clippy::disallowed_methods,
    reason = "another build of the controller, in this process's place and with its arguments"
)]
pub fn become_it(program: &Path) -> std::io::Error {
    std::process::Command::new(program).args(std::env::args_os().skip(1)).exec()
}
