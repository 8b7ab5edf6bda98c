//! `pve-sim fault`: manual edits and armed faults.
mod armed;
mod hand;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use pve_sim::fault::control::{Order, Outcome, send};

/// Arm faults and change the node by hand.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The state folder of the running simulator.
    #[arg(long)]
    state: PathBuf,
    #[command(subcommand)]
    what: FaultCommand,
}

#[derive(Debug, Subcommand)]
enum FaultCommand {
    #[command(flatten)]
    Hand(hand::Hand),
    #[command(flatten)]
    Armed(armed::Armed),
    /// List the requests that were sent but must never be; exit 1 if there are any. Needs `serve --guard`, running or ended.
    Offences,
    /// List the armed faults.
    List,
    /// Disarm everything.
    Clear,
    /// Carry out a script: one order in JSON a line.
    Script {
        /// The file.
        file: PathBuf,
    },
}

/// Sends the orders.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let paths = pve_sim::state::Paths::new(&arguments.state);
    let orders = match arguments.what {
        FaultCommand::Offences => return offences(&paths.run()),
        FaultCommand::Hand(hand) => hand.orders()?,
        FaultCommand::Armed(armed) => vec![Order::Arm(armed.into())],
        FaultCommand::List => vec![Order::List],
        FaultCommand::Clear => vec![Order::Clear],
        FaultCommand::Script { file } => script(&file)?,
    };
    for order in orders {
        match send(&paths.control(), &order)? {
            Outcome::Done => {}
            Outcome::Armed(faults) => faults
                .iter()
                .try_for_each(|fault| serde_json::to_string(fault).map(|text| println!("{text}")))?,
            Outcome::Failed(why) => anyhow::bail!("{why}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn offences(run: &Path) -> anyhow::Result<ExitCode> {
    let found =
        pve_sim::guard::read_book(run).context("nobody watched: start `pve-sim serve` with --guard")?;
    found.iter().for_each(|offence| println!("{offence}"));
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn script(file: &Path) -> anyhow::Result<Vec<Order>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| serde_json::from_str(line).with_context(|| format!("not an order: {line}")))
        .collect::<Result<_, _>>()
}
