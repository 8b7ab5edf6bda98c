//! Return of the previous program.
//!
//! In: the record of an exchange. Out: the previous program under its name, and running. Each part may be done twice: the
//! record says first that the build is taken back, so that a kill or a power cut leaves a way that is gone to its end by
//! the timer, by the next start, or by this program itself. No file but the program's is touched.

use std::path::Path;
use std::time::Duration;

use holdfast_protocol::json::chain;
use tracing::{info, warn};

use super::exchange::{self, Exchange, ExchangeError, ExchangeState};
use super::{UpdateError, replace, timer};
use crate::args::{EXIT_DONE, EXIT_FAILED, EXIT_NO_PERMISSION, TakeBackArgs};
use crate::failpoint::{Point, reached};
use crate::file::{self, FileError};
use crate::paths::Paths;
use crate::program::{Call, ProgramError, run_well};

/// The time limit of a call to systemd, which does not wait for the restart.
const LIMIT: Duration = Duration::from_secs(20);

/// Why the previous program did not come back.
#[derive(Debug, thiserror::Error)]
pub enum TakeBackError {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("the previous controller was not put back")]
    File(#[from] FileError),
    #[error(
        "the previous controller is put back, and systemd did not restart it: `systemctl restart guestd`"
    )]
    Restart(#[source] ProgramError),
}

impl TakeBackError {
    /// For the caller of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Exchange(ExchangeError::File(error)) | Self::File(error) if error.is_permission() => {
                EXIT_NO_PERMISSION
            }
            Self::Exchange(_) | Self::File(_) | Self::Restart(_) => EXIT_FAILED,
        }
    }
}

/// `guestd take-back`, which the timer starts under the previous program's second name.
pub async fn run(args: &TakeBackArgs) -> Result<u8, TakeBackError> {
    let paths = Paths::new(&args.root);
    let Some(exchange) = Exchange::load(&paths)? else {
        exchange::clear(&paths).await;
        note_line!("guestd: no controller is on trial");
        return Ok(EXIT_DONE);
    };
    put_back(&paths, &exchange)?;
    // It is not waited for: a build that hangs has ten minutes to stop, and systemd then kills it.
    let restart = Call::new(["systemctl", "restart", "--no-block", "guestd.service"], LIMIT);
    run_well(&restart).await.map_err(TakeBackError::Restart)?;
    note_line!("guestd: the agent did not confirm the new controller: the previous one is back");
    disarm(&paths).await;
    Ok(EXIT_DONE)
}

fn put_back(paths: &Paths, exchange: &Exchange) -> Result<(), TakeBackError> {
    let old = replace::old_path(&exchange.program);
    if exchange.state == ExchangeState::OnTrial {
        exchange.taken_back().store(paths)?;
    }
    reached(Point::TakenBack);
    if !is_same(&old, &exchange.program) {
        file::lay_by(&old, &exchange.program)?;
    }
    Ok(())
}

/// Whether both names are of one file, as after a return. A copy is put back once more, which does no harm.
fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |path: &Path| std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    id(one).is_some() && id(one) == id(other)
}

/// Puts the previous program back, and this process becomes it. Returns only with why not.
pub async fn become_old(paths: &Paths, exchange: &Exchange) -> UpdateError {
    info!("the agent takes this controller back: the previous one is put back");
    if let Err(error) = put_back(paths, exchange) {
        return UpdateError::TakeBack(error);
    }
    disarm(paths).await;
    UpdateError::Start(replace::become_it(&exchange.program))
}

async fn disarm(paths: &Paths) {
    if let Err(error) = timer::disarm(paths).await {
        warn!(error = chain(&error), "the timer of the exchange stays; it finds nothing to do");
    }
}
