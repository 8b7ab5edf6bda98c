//! Command line arguments of `holdfast escrow`.

use std::path::PathBuf;

use clap::Subcommand;
use holdfast_protocol::escrow::CodeNumber;

/// Of `holdfast escrow`.
#[derive(Debug, Subcommand)]
pub enum EscrowCommand {
    /// Print the page for the customer: where the backups are, which guests, and every command to type on any Debian
    /// machine.
    #[command(after_long_help = "\
The page is made from what the hub knows today: the off-site targets of the document, the guests with every VMID that \
they had, and which sheet opens which key. It holds no secret. Its last part is for the backup server: the lines that \
create the customer's own account, which can read this namespace and change nothing. Give the customer the page and, \
by another way, the account's secret. Do so once a year, and whenever a target changes.")]
    Kit {
        /// The host's name or id.
        host: String,
    },
    /// Write the wrapped keys to files, the newest of each key. The customer is notified of each, and the hub records
    /// it.
    #[command(after_long_help = "\
A file opens only with the eleven words of its sheet, which only the customer has. The hub releases it only when it \
has an address at which to notify the customer (`[[escrow_notice]]` in hub.toml).")]
    Fetch {
        /// The host's name or id.
        host: String,
        /// Write the file of this sheet, instead of the newest of each key.
        #[arg(long, value_name = "NUMBER")]
        code: Option<CodeNumber>,
        /// The folder for the files, named escrow-NUMBER.age; none of them may exist yet.
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        to: PathBuf,
    },
}
