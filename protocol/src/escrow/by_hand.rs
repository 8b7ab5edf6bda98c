//! Steps to restore off-site backups without Holdfast.
//!
//! ```text
//! off-site target + customer + number of the sheet + guests ─▶ steps   what the customer types, on any Debian
//! off-site target + customer                               ─▶ account  what makes the account on the server, once
//! ```
//! The printed sheet and the operator's page are made of the same steps. The lines use Debian's own tools, `age`, `jq`
//! and the backup server's own client, each as that client was recorded to take it. They contain no secret: the
//! customer types the account's secret, and the wrapped key opens with the code alone. Without a target (a sheet
//! without names) a word in capital letters replaces each name. Deliberately absent: restoring with Proxmox VE or with
//! Holdfast.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::CodeNumber;
use crate::id::{CustomerId, GuestName, KeyFingerprint, TargetName, Vmid};
use crate::storage::Backend;
use crate::storage::backend::{DatastoreName, Namespace, Server};

/// Where a backup server listens. No target names another port.
pub const PORT: u16 = 8007;

/// More numbers than these are not named line by line: the server's list has them all, and a page has its end.
pub const LINES_MAX: usize = 8;

/// The token of the customer's account.
const TOKEN: &str = "sheet";

/// A backup server takes no longer name of an account, with its realm.
const ACCOUNT_MAX: usize = 64;

/// One step of what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// In words.
    pub says: String,
    /// The commands to type, a line each.
    pub commands: Vec<String>,
}

impl Step {
    fn new(says: impl Into<String>, commands: impl IntoIterator<Item = String>) -> Self {
        Self { says: says.into(), commands: commands.into_iter().collect() }
    }
}

/// A guest and the numbers under which its backups are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestNumbers {
    /// Its name.
    pub name: GuestName,
    /// Its VMIDs: the one that it has first, then those that it had.
    pub vmids: Vec<Vmid>,
}

/// An off-site target, as a customer reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffSite {
    /// Its name.
    pub target: TargetName,
    /// The server.
    pub server: Server,
    /// The datastore on it.
    pub datastore: DatastoreName,
    /// The namespace in that; the root one, where there is none.
    pub namespace: Option<Namespace>,
    /// SHA-256 of the server's certificate.
    pub certificate: KeyFingerprint,
    /// The key that all backups there are encrypted with.
    pub key: KeyFingerprint,
    /// The customer's own account there, which can only read.
    pub account: String,
}

impl OffSite {
    /// Of a target, where it is a backup server.
    #[must_use]
    pub fn of(target: &TargetName, backend: &Backend, customer: &CustomerId) -> Option<Self> {
        match backend {
            Backend::Pbs { server, datastore, namespace, fingerprint, key } => Some(Self {
                target: target.clone(),
                server: server.clone(),
                datastore: datastore.clone(),
                namespace: namespace.clone(),
                certificate: fingerprint.clone(),
                key: key.clone(),
                account: account(customer),
            }),
            Backend::LocalDir { .. } | Backend::Usb { .. } | Backend::Nfs { .. } | Backend::Cifs { .. } => {
                None
            }
        }
    }

    /// Who the customer is to the server: the token of the account.
    #[must_use]
    pub fn auth_id(&self) -> String {
        format!("{}!{TOKEN}", self.account)
    }

    /// Name and value, for people.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let namespace = self.namespace.as_ref().map_or("(none)", Namespace::as_str);
        vec![
            ("Off-site target", self.target.to_string()),
            ("Server", self.server.as_str().to_owned()),
            ("Port", PORT.to_string()),
            ("Datastore", self.datastore.as_str().to_owned()),
            ("Namespace", namespace.to_owned()),
            ("Account", self.auth_id()),
            ("Certificate", self.certificate.as_str().to_owned()),
            ("Key", self.key.as_str().to_owned()),
        ]
    }

    /// What root types on the server, once for each customer: an account that reads this namespace and changes nothing.
    ///
    /// A token has the rights that both it and its user have, so both get the role.
    #[must_use]
    pub fn account_lines(&self) -> Vec<String> {
        let mut path = format!("/datastore/{}", self.datastore.as_str());
        if let Some(namespace) = &self.namespace {
            path += &format!("/{}", namespace.as_str());
        }
        let (account, token) = (&self.account, self.auth_id());
        vec![
            format!("proxmox-backup-manager user create {account}"),
            format!("proxmox-backup-manager user generate-token {account} {TOKEN}"),
            format!("proxmox-backup-manager acl update {path} DatastoreReader --auth-id {account}"),
            format!("proxmox-backup-manager acl update {path} DatastoreReader --auth-id '{token}'"),
        ]
    }
}

/// The customer's account on a server: by the customer's name, or by its hash where that is too long for an account.
fn account(customer: &CustomerId) -> String {
    let plain = format!("{customer}-read@pbs");
    if plain.len() <= ACCOUNT_MAX {
        return plain;
    }
    let mut short = String::new();
    for byte in Sha256::digest(customer.as_str()).iter().take(12) {
        // Writing into a String cannot fail.
        let _infallible = write!(short, "{byte:02x}");
    }
    format!("{short}-read@pbs")
}

/// The wrapped key of a code, as a file: so it is called at the operator, on a backup disk and on the sheet.
#[must_use]
pub fn file_name(code: CodeNumber) -> String {
    format!("escrow-{code}.age")
}

/// Where a wrapped key is got from.
#[must_use]
pub fn get_file(code: CodeNumber) -> String {
    let file = file_name(code);
    format!(
        "Get the wrapped key, the file {file}: from the operator (holdfast escrow fetch), from a backup disk (the folder \
         .holdfast), or from the page \"Wrapped key\"."
    )
}

/// All that is typed, from a fresh machine to the guests' files.
#[must_use]
pub fn steps(off_site: Option<&OffSite>, code: CodeNumber, guests: &[GuestNumbers]) -> Vec<Step> {
    let mut steps = programs();
    steps.extend(key(code));
    steps.extend(server(off_site));
    steps.extend(files(off_site, guests));
    steps
}

fn programs() -> Vec<Step> {
    let install = [
        "apt-get update && apt-get install -y age jq wget ca-certificates",
        "K=/usr/share/keyrings/proxmox-archive-keyring.gpg",
        "wget -O $K https://enterprise.proxmox.com/debian/proxmox-archive-keyring-trixie.gpg",
        "echo \"deb [signed-by=$K] http://download.proxmox.com/debian/pbs-client trixie main\" | tee \
         /etc/apt/sources.list.d/pbs-client.list",
        "apt-get update && apt-get install -y proxmox-backup-client",
    ];
    let install = install.map(str::to_owned);
    let says = "On any machine with Debian 13, as root, in an empty folder. A Proxmox VE machine has the backup client: there the \
                first line is enough.";
    vec![Step::new(says, install)]
}

fn key(code: CodeNumber) -> Vec<Step> {
    let file = file_name(code);
    let open = ["umask 077".to_owned(), format!("age -d {file} | jq -c .key > key.json")];
    vec![
        Step::new(format!("{} Put it into this folder.", get_file(code)), []),
        Step::new(
            "Type this, and at the question for a passphrase the eleven words exactly as printed: in small letters, with one \
             space between two words.",
            open,
        ),
        Step::new("This must show the fingerprint of the key.", ["jq -r .fingerprint key.json".to_owned()]),
    ]
}

fn server(off_site: Option<&OffSite>) -> Vec<Step> {
    let repository = off_site.map_or_else(
        || format!("ACCOUNT@SERVER:{PORT}:DATASTORE"),
        |at| format!("{}@{}:{PORT}:{}", at.auth_id(), at.server.as_str(), at.datastore.as_str()),
    );
    let certificate = off_site.map_or("CERTIFICATE", |at| at.certificate.as_str());
    let says = "Say where the backups are. The question is for the secret of the account, which the operator gave you: it stands \
                on no sheet.";
    let lines = [
        format!("export PBS_REPOSITORY='{repository}'"),
        format!("export PBS_FINGERPRINT={certificate}"),
        "read -rsp 'Secret: ' PBS_PASSWORD && export PBS_PASSWORD".to_owned(),
    ];
    let list = format!("proxmox-backup-client snapshot list{} --output-format text", in_namespace(off_site));
    vec![Step::new(says, lines), Step::new("See what is there.", [list])]
}

fn in_namespace(off_site: Option<&OffSite>) -> String {
    match off_site {
        None => " --ns NAMESPACE".to_owned(),
        Some(OffSite { namespace: Some(namespace), .. }) => format!(" --ns {}", namespace.as_str()),
        Some(OffSite { namespace: None, .. }) => String::new(),
    }
}

fn files(off_site: Option<&OffSite>, guests: &[GuestNumbers]) -> Vec<Step> {
    let ns = in_namespace(off_site);
    let named = off_site.map_or(&[][..], |_| guests);
    let mut choose: Vec<String> = Vec::new();
    for guest in named {
        for (place, vmid) in guest.vmids.iter().enumerate() {
            let former = if place == 0 { "" } else { ", a number that it had before" };
            choose.push(format!("VMID={vmid}  # {}{former}", guest.name));
        }
    }
    let mut says =
        "Choose a guest, by its number in the list (ct/NUMBER), and do this and the next step for each."
            .to_owned();
    if choose.is_empty() {
        choose.push("VMID=NUMBER".to_owned());
    }
    if let more @ 1.. = choose.len().saturating_sub(LINES_MAX) {
        choose.truncate(LINES_MAX);
        says += &format!(" {more} more numbers are not named here.");
    }
    let restore = [
        format!("proxmox-backup-client restore ct/$VMID root.pxar guest-$VMID{ns} --keyfile key.json"),
        format!(
            "proxmox-backup-client restore ct/$VMID pct.conf -{ns} --keyfile key.json > guest-$VMID.conf"
        ),
    ];
    let older = "Its newest backup comes back: the files into a folder, its settings into a file. For an older one write \
                 ct/NUMBER/TIME as the list does.";
    vec![
        Step::new(says, choose),
        Step::new(older, restore),
        Step::new(
            "When all is back, take the key away.",
            ["shred -u key.json && unset PBS_PASSWORD".to_owned()],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off_site(namespace: Option<&str>, customer: &str) -> OffSite {
        let mut pbs = serde_json::json!({ "server": "backup.example", "datastore": "store1",
            "fingerprint": vec!["86"; 32].join(":"), "key": vec!["ab"; 32].join(":") });
        if let Some(namespace) = namespace {
            pbs["namespace"] = namespace.into();
        }
        let backend = serde_json::from_value(serde_json::json!({ "pbs": pbs })).unwrap();
        OffSite::of(&"off1".parse().unwrap(), &backend, &customer.parse().unwrap()).unwrap()
    }

    fn guest(name: &str, vmids: &[u32]) -> GuestNumbers {
        let vmids = vmids.iter().map(|vmid| Vmid::try_from(*vmid).unwrap()).collect();
        GuestNumbers { name: name.parse().unwrap(), vmids }
    }

    fn lines(off_site: Option<&OffSite>, guests: &[GuestNumbers]) -> Vec<String> {
        let code = CodeNumber::try_from(2).unwrap();
        steps(off_site, code, guests).into_iter().flat_map(|step| step.commands).collect()
    }

    #[test]
    fn every_number_that_a_guest_had_is_named() {
        let guests = [guest("web-1", &[20_001, 19_000]), guest("mail", &[20_002])];
        let lines = lines(Some(&off_site(Some("hf"), "acme")), &guests);
        let chosen: Vec<&String> = lines.iter().filter(|line| line.starts_with("VMID=")).collect();
        assert_eq!(
            chosen,
            ["VMID=20001  # web-1", "VMID=19000  # web-1, a number that it had before", "VMID=20002  # mail"]
        );
        assert!(lines.contains(&"age -d escrow-2.age | jq -c .key > key.json".to_owned()));
        assert!(
            lines.contains(
                &"export PBS_REPOSITORY='acme-read@pbs!sheet@backup.example:8007:store1'".to_owned()
            )
        );
    }

    #[test]
    fn without_a_namespace_none_is_asked_for() {
        let at = off_site(None, "acme");
        assert!(lines(Some(&at), &[]).iter().all(|line| !line.contains("--ns")));
        assert!(at.account_lines().iter().any(|line| line.contains(" /datastore/store1 DatastoreReader ")));
    }

    #[test]
    fn a_sheet_without_names_has_no_server_and_no_guest() {
        let text = lines(None, &[guest("web-1", &[20_001])]).join("\n");
        assert!(text.contains("ACCOUNT@SERVER:8007:DATASTORE") && text.contains("--ns NAMESPACE"), "{text}");
        assert!(!text.contains("web-1") && !text.contains("20001"), "{text}");
    }

    #[test]
    fn an_account_is_never_longer_than_a_server_takes() {
        let (one, other) = ("c".repeat(63), format!("{}d", "c".repeat(62)));
        let accounts = [off_site(None, &one).account, off_site(None, &other).account];
        assert_ne!(accounts[0], accounts[1]);
        assert!(accounts.iter().all(|account| account.len() <= ACCOUNT_MAX), "{accounts:?}");
        assert_eq!(off_site(None, "acme").account, "acme-read@pbs");
    }

    #[test]
    fn the_account_reads_its_namespace_and_changes_nothing() {
        let lines = off_site(Some("a/hf"), "acme").account_lines();
        let roles: Vec<&String> = lines.iter().filter(|line| line.contains(" acl ")).collect();
        assert_eq!(roles.len(), 2, "the user and its token");
        assert!(roles.iter().all(|line| line.contains("acl update /datastore/store1/a/hf DatastoreReader ")));
        assert!(lines.iter().all(|line| !line.contains("password")), "{lines:?}");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let guests: Vec<GuestNumbers> = (0..15).map(|n| guest(&format!("web-{n}"), &[20_000 + n])).collect();
        let steps = steps(Some(&off_site(None, "acme")), CodeNumber::FIRST, &guests);
        let choose =
            steps.iter().find(|step| step.commands.iter().any(|line| line.starts_with("VMID="))).unwrap();
        assert_eq!(choose.commands.len(), LINES_MAX);
        assert!(choose.says.ends_with("7 more numbers are not named here."), "{}", choose.says);
    }
}
