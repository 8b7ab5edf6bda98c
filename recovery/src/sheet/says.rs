//! What stands on the sheet, the same on paper and as text. Commands are typed as they stand here; tests take them from the
//! printed page and do so.

/// One step of what to do.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// In words.
    pub says: &'static str,
    /// What is typed, a line each.
    pub commands: &'static [&'static str],
}

/// What it is.
pub const TITLE: &str = "Recovery code";

/// For what.
pub const SUBTITLE: &str = "for the encrypted off-site backups";

/// What it is for.
pub const PURPOSE: &str = "The off-site backups are encrypted. Their key is locked with the eleven words below. Whoever \
    has these words and the wrapped key (a small file named escrow.age) can read the backups, on any machine and without \
    the box they came from. Nobody else can, and that includes the operator who stores them.";

/// Above the words.
pub const TICK: &str = "Read each word once and tick it. Check that every letter is clear.";

/// Beside the last word.
pub const ELEVENTH: &str = "Word 11 follows from the others: it tells when one was mistyped.";

/// Above the fingerprint.
pub const FINGERPRINT: &str = "Fingerprint of the key";

/// With our program.
pub const WITH: &str = "With Holdfast";

/// With nothing of ours.
pub const WITHOUT: &str = "Without Holdfast";

const GET_FILE: Step = Step {
    says: "Get the wrapped key, the file escrow.age: from the operator, from a backup disk, or from the page \"Wrapped key\".",
    commands: &[],
};

/// What to do with our program.
pub const STEPS_WITH: [Step; 4] = [
    GET_FILE,
    Step {
        says: "On a machine with Holdfast's agent:",
        commands: &["agentd recover --from escrow.age --to key.json"],
    },
    Step {
        says: "Type the eleven words when asked. Capital letters, line breaks and numbers do not matter. A wrong word is \
            told by its place.",
        commands: &[],
    },
    Step {
        says: "Give the key to the storage that holds the backups, and restore from it:",
        commands: &["pvesm set STORAGE --encryption-key key.json"],
    },
];

/// What to do with nothing of ours.
pub const STEPS_WITHOUT: [Step; 4] = [
    GET_FILE,
    Step { says: "On any Debian or Proxmox machine, as root:", commands: &["apt-get install age jq"] },
    Step {
        says: "Type this, and at the question for a passphrase the eleven words exactly as printed: in small letters, with \
            one space between two words.",
        commands: &["umask 077", "age -d escrow.age | jq -c .key > key.json"],
    },
    Step {
        says: "This must show the fingerprint from above. Then key.json is the key file of proxmox-backup-client \
            (--keyfile).",
        commands: &["jq -r .fingerprint key.json"],
    },
];

/// The warning's first line.
pub const WARNING: &str =
    "If both the box and this code are lost, the off-site backups are lost for everyone.";

/// What follows from it.
pub const WARNING_MORE: &str = "Nobody can read them then: not you, not the operator, not the makers of Holdfast. Keep \
    this sheet away from the box, where neither fire nor thief reaches both. Do not photograph it, and type the words \
    nowhere but for a recovery or a drill. If the sheet is lost or was seen by others, have a new code made at once.";

/// A further page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// What it is called.
    pub title: &'static str,
    /// What to beware of, in large letters.
    pub caveat: &'static str,
    /// What it is.
    pub purpose: &'static str,
    /// What is typed, a line each.
    pub commands: &'static [&'static str],
}

/// The page with the wrapped key.
pub const WRAPPED: Page = Page {
    title: "Wrapped key",
    caveat: "Keep this page apart from the words. Alone it opens nothing; together with them it opens the backups.",
    purpose: "This is the file escrow.age, as a QR code and as text. Type it, scan it with a phone, or scan the page as \
        page.png and type this:",
    // QR codes alone: in the squares of about one in a hundred, zbar finds a line of some bar code as well.
    commands: &["zbarimg -q --raw -Sdisable -Sqrcode.enable page.png > escrow.age"],
};

/// The page with the bare key.
pub const BARE: Page = Page {
    title: "Paper key",
    caveat: "This page alone opens every backup made with this key. It needs no code, and it cannot be revoked: whoever \
        has copied it can read those backups for ever.",
    purpose: "This is the key file of proxmox-backup-client (--keyfile), as a QR code and as text. Save it as key.json, all \
        lines with their brackets and commas.",
    commands: &[],
};
