//! `holdfast state`: snapshots of what all hosts should be, and are.

use std::io::Write as _;
use std::path::Path;

use holdfast_protocol::state::Line;

use crate::args::{StateCommand, StateRef};
use crate::error::CliError;
use crate::hub::Hub;
use crate::screen::Screen;
use crate::state::compare::compare;
use crate::state::file::NewFile;
use crate::state::source::{Part, all_kept, read};
use crate::state::summary::StateSummary;
use crate::state_errors::StateCommandError;
use crate::{clock, render};

pub async fn run(command: StateCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        StateCommand::Snapshot { customer, filter, out } => {
            let part = Part { customer, filter };
            let Some(path) = out else { return print(hub, &part, screen).await };
            let summary = save(hub, &StateRef::Now, &part, &path).await?;
            screen.show(&summary.tail, |_, _| render::state::written(&summary, Some(&path)))
        }
        StateCommand::List => {
            let kept = all_kept(hub).await?;
            screen.show(&kept, |kept, style| render::state::kept(kept, style))
        }
        StateCommand::Show { snapshot, customer, out } => {
            let part = Part { customer, filter: None };
            let summary = match out {
                Some(path) => save(hub, &snapshot, &part, &path).await?,
                None => summary(hub, &snapshot, &part).await?,
            };
            screen.show(&summary, |summary, style| render::state::summary(summary, clock::now(), style))
        }
        StateCommand::Compare { before, after, customer } => {
            let part = Part { customer, filter: None };
            let comparison = compare(hub, (&before, &after), &part).await?;
            screen.show(&comparison, |comparison, _| render::state::comparison(comparison))
        }
    }
}

/// A document on standard output, with its figures on standard error.
async fn print(hub: &Hub, part: &Part, screen: &Screen) -> Result<(), CliError> {
    let mut summary = StateSummary::default();
    let mut out = std::io::stdout().lock();
    read(hub, &StateRef::Now, part, |text, line| {
        let printed = out.write_all(text).and_then(|()| out.write_all(b"\n"));
        printed.map_err(StateCommandError::Print)?;
        note(&mut summary, line);
        Ok(())
    })
    .await?;
    screen.note(render::state::written(&summary, None).trim_end());
    Ok(())
}

/// Head and tail alone.
fn note(summary: &mut StateSummary, line: Line) {
    match line {
        Line::Head(_) | Line::Tail(_) => summary.take(line),
        Line::Host(_) => {}
    }
}

async fn summary(hub: &Hub, of: &StateRef, part: &Part) -> Result<StateSummary, StateCommandError> {
    let mut summary = StateSummary::default();
    read(hub, of, part, |_, line| {
        summary.take(line);
        Ok(())
    })
    .await?;
    Ok(summary)
}

async fn save(hub: &Hub, of: &StateRef, part: &Part, path: &Path) -> Result<StateSummary, StateCommandError> {
    let (mut summary, mut file) = (StateSummary::default(), NewFile::create(path)?);
    read(hub, of, part, |text, line| {
        file.push(text)?;
        file.push(b"\n")?;
        summary.take(line);
        Ok(())
    })
    .await?;
    file.end()?;
    Ok(summary)
}
