//! The arguments of the program, and its exit codes.
//!
//! In: one word. Out: 0 when it is done, 2 when an order or a session was refused, 1 when something failed. Read of the
//! environment are which boot this is, from the units, and in a session what sshd hands over of a person.

use std::ffi::OsString;
use std::process::ExitCode;

use holdfast_protocol::json::chain;

use crate::files::{Files, FilesError};
use crate::guard::{self, GuardError, Turn};
use crate::log;
use crate::moment::BootId;
use crate::order::{self, OrderOutcome};
use crate::session;

const USAGE: &str = "usage: holdfast-break-glass order | guard | tick | close | session | check | log

  order    judge the order that the agent put down; for holdfast-break-glass.service
  guard    close the open way at its end; for holdfast-break-glass-guard.service
  tick     close it now if its time is over; for holdfast-break-glass-boot.service
  close    close it now
  session  one recorded session; sshd runs this
  check    read root's settings and keys, and say what they let be opened
  log      hold the log to its hashes, and show it";

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Order,
    Guard,
    Tick,
    Close,
    Session,
    Check,
    Log,
}

/// How it ended.
enum Outcome {
    Done(String),
    Refused(String),
}

/// Why it failed.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Guard(#[from] GuardError),
}

/// Runs the program.
#[must_use]
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let Some((files, task)) = parse(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    if task == Task::Session {
        return attend(&files);
    }
    // Of the units. A person's session reads it from the kernel.
    let boot = std::env::var("HOLDFAST_BOOT_ID").ok().and_then(|text| BootId::try_from(text).ok());
    match perform(&files.in_boot(boot), task) {
        Ok(Outcome::Done(text)) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Ok(Outcome::Refused(text)) => {
            eprintln!("{text}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("{}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[OsString]) -> Option<(Files, Task)> {
    let task = |word: &OsString| {
        Some(match word.to_str()? {
            "order" => Task::Order,
            "guard" => Task::Guard,
            "tick" => Task::Tick,
            "close" => Task::Close,
            "session" => Task::Session,
            "check" => Task::Check,
            "log" => Task::Log,
            _ => return None,
        })
    };
    match arguments {
        [word] => Some((Files::of_the_host(), task(word)?)),
        #[cfg(debug_assertions)]
        [option, root, word] if option == "--root" => Some((Files::beneath(root.into()), task(word)?)),
        _ => None,
    }
}

fn perform(files: &Files, task: Task) -> Result<Outcome, CommandError> {
    Ok(match task {
        Task::Order => match order::take(files)? {
            OrderOutcome::NoOrder => Outcome::Done("there is no order".to_owned()),
            OrderOutcome::Opened(open) => {
                let order = &open.order;
                Outcome::Done(format!(
                    "way {} is open until {} by order {}",
                    order.way, order.closes_at, order.job
                ))
            }
            OrderOutcome::IsOpen => Outcome::Done("this order opened the way that is open".to_owned()),
            OrderOutcome::Refused(refusal) => {
                Outcome::Refused(format!("refused: {}: {}", refusal.code().as_str(), chain(&*refusal)))
            }
        },
        Task::Guard => {
            guard::watch(files)?;
            Outcome::Done("nothing is open".to_owned())
        }
        Task::Tick => Outcome::Done(words(guard::tick(files)?)),
        Task::Close => Outcome::Done(words(guard::close(files)?)),
        Task::Check => check(files)?,
        Task::Log => Outcome::Done(shown(files)?),
        Task::Session => Outcome::Refused(USAGE.to_owned()),
    })
}

fn words(turn: Turn) -> String {
    match turn {
        Turn::StaysOpen(seconds) => format!("a way stays open for {seconds} s"),
        Turn::IsClosed => "nothing is open".to_owned(),
    }
}

fn check(files: &Files) -> Result<Outcome, FilesError> {
    let Some(settings) = files.settings()? else {
        return Ok(Outcome::Refused(
            "break-glass is off: there is no /etc/holdfast/break-glass.toml".to_owned(),
        ));
    };
    let trust = files.trust(&settings)?;
    let mut text =
        vec![format!("host {} ({}), epoch {}", settings.own(), settings.host.id, settings.host.epoch)];
    text.push(format!("{} operators may sign", trust.roster.operators.operators()));
    let asked = settings.asked(&std::collections::BTreeSet::new());
    text.extend(asked.iter().map(|customer| format!("customer {customer} must consent")));
    for (name, way) in &settings.ways {
        let most = way.minutes_max().unwrap_or(settings.minutes_max).min(settings.minutes_max).minutes();
        text.push(format!("way {name}: at most {most} minutes"));
    }
    if settings.enabled {
        Ok(Outcome::Done(text.join("\n")))
    } else {
        text.push("break-glass is off: `enabled = false`".to_owned());
        Ok(Outcome::Refused(text.join("\n")))
    }
}

fn shown(files: &Files) -> Result<String, FilesError> {
    let lines = log::lines(&files.log()?)?;
    let line = |line: holdfast_protocol::audit::AuditLine| {
        let at = jiff::Timestamp::from_microsecond(line.at_us).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let job = line.operation.map(|job| format!(" {job}")).unwrap_or_default();
        format!("{} {at:.0} {}{job} {}", line.number, line.action, line.detail)
    };
    Ok(lines.into_iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// A person is on the other side: what failed is said to them.
fn attend(files: &Files) -> ExitCode {
    let typed = std::env::var("SSH_ORIGINAL_COMMAND").ok();
    let peer = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let peer = peer.split(' ').next().unwrap_or_default();
    match session::run(files, typed.as_deref(), peer) {
        Ok(status) => {
            status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Err(error) => {
            eprintln!("{}", chain(&error));
            ExitCode::from(2)
        }
    }
}
