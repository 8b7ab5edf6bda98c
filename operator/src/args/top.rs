//! Arguments of `holdfast top`.

use clap::Args as ClapArgs;

/// Of `holdfast top`.
#[derive(Debug, ClapArgs)]
pub struct TopArgs {
    /// Seconds between two looks at the hub.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=300))]
    pub every: u16,
    /// Print one look and end. This is the default where the output is not a terminal.
    #[arg(long)]
    pub once: bool,
}
