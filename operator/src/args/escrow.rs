//! Command line arguments of `holdfast escrow`.

use std::path::PathBuf;

use clap::Subcommand;
use holdfast_protocol::escrow::CodeNumber;

/// Of `holdfast escrow`.
#[derive(Debug, Subcommand)]
pub enum EscrowCommand {
    /// Print the page for the customer: where the backups are, which guests, and every command to type on any Debian.
    #[command(after_long_help = "\
The page is made of what the hub knows today: the off-site targets of the document, the guests with every VMID that they had, \
and which sheet opens which key. It holds no secret. Its last part is for the backup server: the lines that make the customer's \
own account, which reads this namespace and changes nothing. Give the customer the page and, by another way, the account's \
secret; once a year, and whenever a target changes.")]
    Kit {
        /// The host's name or id.
        host: String,
    },
    /// Write the wrapped keys to files, of each key the newest. The customer is notified of each, and the hub records it.
    #[command(after_long_help = "\
A file opens with the eleven words of its sheet alone, which only the customer has. The hub releases it only when it has an \
address to notify the customer at (`[[escrow_notice]]` in hub.toml).")]
    Fetch {
        /// The host's name or id.
        host: String,
        /// The file of this sheet, instead of the newest of each key.
        #[arg(long, value_name = "NUMBER")]
        code: Option<CodeNumber>,
        /// Where the files are written, as escrow-NUMBER.age; none may be there yet.
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        to: PathBuf,
    },
}
