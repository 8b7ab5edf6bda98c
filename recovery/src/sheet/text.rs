//! Text of the sheet, the same in PDF and plain text.
//!
//! Commands are typed as printed here; tests take them from the printed page and run them.

use holdfast_protocol::escrow::by_hand::{self, Step};

use super::Sheet;
use crate::escrow::CodeNumber;

/// What it is.
pub const TITLE: &str = "Recovery code";

pub const SUBTITLE: &str = "for the encrypted off-site backups";

/// What it is for.
pub const PURPOSE: &str = "The off-site backups are encrypted. Their key is locked with the eleven words below. Whoever \
    has these words and the wrapped key (a small file, escrow-N.age) can read the backups, on any machine and without \
    the box they came from. Nobody else can, and that includes the operator who stores them.";

/// Above the words.
pub const TICK: &str = "Read each word once and tick it. Check that every letter is clear.";

/// Next to the last word.
pub const ELEVENTH: &str = "Word 11 follows from the others: it tells when one was mistyped.";

/// Above the fingerprint.
pub const FINGERPRINT: &str = "Fingerprint of the key";

/// With our program.
pub const WITH: &str = "With Holdfast";

/// With nothing of ours.
pub const WITHOUT: &str = "Without Holdfast";

/// Instead of steps, on the first page.
pub const WITHOUT_SHORT: &str = "No program of Holdfast is needed, and no help of the operator beyond the wrapped key and the \
    secret of the account: all that is typed stands on page 2.";

/// The second page: what is typed without Holdfast.
pub const BY_HAND: &str = "Without Holdfast";

/// Above the names of server and account.
pub const BACKUP_LOCATION: &str = "Where the backups are";

/// There, on a sheet without names.
pub const NO_LOCATION: &str = "This sheet names nobody. The operator's page (holdfast escrow kit) says what to write for each word \
    in capital letters: keep it apart from this sheet.";

/// Below the steps.
pub const YEARLY: &str = "Servers, accounts and guests change. The operator's page (holdfast escrow kit) is this one as it is \
    today: ask for it once a year, and keep it with this sheet.";

/// What to do with our program.
#[must_use]
pub fn steps_with(code: CodeNumber) -> Vec<Step> {
    let step = |says: &str, commands: &[String]| Step { says: says.to_owned(), commands: commands.to_vec() };
    vec![
        step(&by_hand::get_file(code), &[]),
        step(
            "On a machine with Holdfast's agent:",
            &[format!("agentd recover --from {} --to key.json", by_hand::file_name(code))],
        ),
        step(
            "Type the eleven words when asked. Capital letters, line breaks and numbers do not matter. A wrong word is reported \
             by its number.",
            &[],
        ),
        step(
            "Give the key to the storage that holds the backups, and restore from it:",
            &["pvesm set STORAGE --encryption-key key.json".to_owned()],
        ),
    ]
}

/// What to do with nothing of ours.
#[must_use]
pub fn steps_without(sheet: &Sheet<'_>) -> Vec<Step> {
    by_hand::steps(sheet.off_site(), sheet.record.context.code, sheet.guests)
}

/// The warning's first line.
pub const WARNING: &str =
    "If both the box and this code are lost, the off-site backups are lost for everyone.";

/// What follows from it.
pub const WARNING_MORE: &str = "Nobody can read them then: not you, not the operator, not the makers of Holdfast. Keep \
    this sheet away from the box, where neither fire nor thief reaches both. Do not photograph it, and type the words \
    nowhere but for a recovery or a drill. If the sheet is lost or was seen by others, have a new code made at once.";

/// A further page.
#[derive(Clone, Debug)]
pub struct Page {
    /// What it is called.
    pub title: &'static str,
    /// What to beware of, in large letters.
    pub caveat: &'static str,
    /// What it is.
    pub purpose: String,
    /// What is typed, a line each.
    pub commands: Vec<String>,
}

/// What to beware of with the wrapped key.
pub const WRAPPED_CAVEAT: &str =
    "Keep this page apart from the words. Alone it opens nothing; together with them it opens the backups.";

/// What to beware of with the bare key.
pub const BARE_CAVEAT: &str = "This page alone opens every backup made with this key. It needs no code, and it cannot be \
    revoked: whoever has copied it can read those backups for ever.";

/// The page with the wrapped key.
#[must_use]
pub fn wrapped(code: CodeNumber) -> Page {
    let file = by_hand::file_name(code);
    Page {
        title: "Wrapped key",
        caveat: WRAPPED_CAVEAT,
        purpose: format!(
            "This is the file {file}, as a QR code and as text. Type it, scan it with a phone, or scan the page as page.png and \
             type this:"
        ),
        // QR codes alone: in the squares of about one in a hundred, zbar finds a line of some bar code as well.
        commands: vec![format!("zbarimg -q --raw -Sdisable -Sqrcode.enable page.png > {file}")],
    }
}

/// The page with the bare key.
#[must_use]
pub fn bare() -> Page {
    Page {
        title: "Paper key",
        caveat: BARE_CAVEAT,
        purpose: "This is the key file of proxmox-backup-client (--keyfile), as a QR code and as text. Save it as key.json, \
                  all lines with their brackets and commas."
            .to_owned(),
        commands: Vec::new(),
    }
}
