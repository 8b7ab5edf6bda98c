//! `holdfast escrow`: the kit for a customer, and wrapped keys as files.
//!
//! What comes in: what the hub knows of a host. What goes out: a page without any secret, and files that open only with
//! the words of their sheets. The hub notifies the customer of each file that is read. Deliberately absent: a code, a
//! key, and the secret of an account.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use holdfast_protocol::desired::Desired;
use holdfast_protocol::escrow::by_hand::{self, GuestNumbers, OffSite, Step};
use holdfast_protocol::escrow::{
    CodeNumber, EscrowFiles, EscrowList, EscrowRead, EscrowView, newest_of_each_key,
};
use holdfast_protocol::id::{CustomerId, HostName, TargetName, Vmid};
use holdfast_protocol::operator::{DesiredVersion, HostDetail};
use holdfast_protocol::report::GuestReport;
use jiff::Timestamp;
use serde::Serialize;

use crate::args::EscrowCommand;
use crate::cmd_errors::EscrowCommandError;
use crate::error::CliError;
use crate::hub::Hub;
use crate::screen::Screen;
use crate::{clock, render};

/// The page: the document for programs.
#[derive(Debug, Serialize)]
pub struct Kit {
    schema: &'static str,
    pub host: HostName,
    /// Whose data it is.
    pub customer: CustomerId,
    /// When the page was made.
    pub made_at: Timestamp,
    /// One for each off-site target.
    pub targets: Vec<KitTarget>,
    /// The guests and their numbers.
    pub guests: Vec<GuestNumbers>,
}

/// One off-site target on the page.
#[derive(Debug, Serialize)]
pub struct KitTarget {
    pub target: TargetName,
    /// The sheet that opens its key, where there is one.
    pub sheet: Option<KitSheet>,
    /// Name and value, for people.
    pub facts: Vec<(&'static str, String)>,
    /// What the customer does.
    pub steps: Vec<Step>,
    /// What root types on the server, once.
    pub account: Vec<String>,
}

/// The sheet that opens a key.
#[derive(Debug, Serialize)]
pub struct KitSheet {
    pub code: CodeNumber,
    /// When it was made.
    pub made_at: String,
}

/// A file that was written.
#[derive(Debug, Serialize)]
pub struct FetchedKey {
    /// The path of the file.
    pub path: PathBuf,
    /// The kind of the file.
    #[serde(flatten)]
    pub version: EscrowView,
}

pub async fn run(command: EscrowCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        EscrowCommand::Kit { host } => {
            let kit = kit(hub, &host).await?;
            screen.show(&kit, |kit, _| render::escrow::kit(kit))
        }
        EscrowCommand::Fetch { host, code, to } => {
            // Checked before the read, so that the customer is not notified of a read that fails here.
            if !to.is_dir() {
                return Err(EscrowCommandError::NoFolder { path: to }.into());
            }
            let read = EscrowRead { code };
            let found: EscrowFiles = hub.post(&["v1", "hosts", &host, "escrow", "read"], &read).await?;
            let written: Result<Vec<FetchedKey>, EscrowCommandError> = found
                .files
                .into_iter()
                .map(|found| write(&to, found.version, found.file.as_bytes()))
                .collect();
            let written = written?;
            screen.show(&written, |written, _| render::escrow::fetched(written))
        }
    }
}

fn write(folder: &Path, version: EscrowView, bytes: &[u8]) -> Result<FetchedKey, EscrowCommandError> {
    let path = folder.join(by_hand::file_name(version.code));
    let unwritten = |source| EscrowCommandError::Unwritten { path: path.clone(), source };
    let mut file = File::create_new(&path).map_err(unwritten)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(unwritten)?;
    Ok(FetchedKey { path, version })
}

async fn kit(hub: &Hub, host: &str) -> Result<Kit, CliError> {
    let detail: HostDetail = hub.get(&["v1", "hosts", host]).await?;
    let name = detail.host.name.clone();
    let held: Option<DesiredVersion> = hub.find(&["v1", "hosts", host, "desired"]).await?;
    let held = held.ok_or_else(|| CliError::NoDocument { host: name.to_string() })?;
    let desired = Desired::parse(held.document.as_bytes())
        .map_err(|source| CliError::Held { host: name.to_string(), source })?;
    let codes: EscrowList = hub.get(&["v1", "hosts", host, "escrow"]).await?;
    let reported = detail.sections.guests.unwrap_or_default();
    Ok(page((&name, clock::now()), &desired, &codes.versions, &reported)?)
}

/// Puts the page together.
fn page(
    (host, made_at): (&HostName, Timestamp),
    desired: &Desired,
    codes: &[EscrowView],
    reported: &[GuestReport],
) -> Result<Kit, EscrowCommandError> {
    let customer = customer(host, desired, codes)?;
    let guests = guests(reported);
    let off_site = |target: &holdfast_protocol::storage::StorageTarget| {
        OffSite::of(&target.name, &target.backend, &customer)
    };
    let sites: Vec<OffSite> = desired.storage().iter().filter_map(off_site).collect();
    if sites.is_empty() {
        return Err(EscrowCommandError::NoOffSite { host: host.clone() });
    }
    let in_force = newest_of_each_key(codes);
    let target = |site: OffSite| {
        let sheet = in_force.iter().find(|view| view.fingerprint == site.key);
        let sheet = sheet.map(|view| KitSheet { code: view.code, made_at: view.made_at.to_string() });
        let code = sheet.as_ref().map(|sheet| sheet.code);
        KitTarget {
            facts: site.facts(),
            // Without a code there is no wrapped key, and what follows from one is of no use.
            steps: code.map(|code| by_hand::steps(Some(&site), code, &guests)).unwrap_or_default(),
            account: site.account_lines(),
            target: site.target,
            sheet,
        }
    };
    let targets = sites.into_iter().map(target).collect();
    Ok(Kit { schema: "holdfast.escrow-kit/v1", host: host.clone(), customer, made_at, targets, guests })
}

/// Whose data it is, as the codes say, or else as all guests do.
fn customer(
    host: &HostName,
    desired: &Desired,
    codes: &[EscrowView],
) -> Result<CustomerId, EscrowCommandError> {
    if let Some(newest) = codes.first() {
        return Ok(newest.customer.clone());
    }
    let mut all = desired.guests().iter().map(|guest| &guest.customer);
    let first = all.next();
    match first.filter(|first| all.all(|other| other == *first)) {
        Some(customer) => Ok(customer.clone()),
        None => Err(EscrowCommandError::NoCustomer { host: host.clone() }),
    }
}

/// The host's own guests, each with the number that it has and those that it had.
fn guests(reported: &[GuestReport]) -> Vec<GuestNumbers> {
    let own = reported.iter().filter(|guest| guest.uid.is_some());
    let numbers = |guest: &GuestReport| {
        let vmids: Vec<Vmid> = guest.vmid.iter().chain(&guest.former_vmids).copied().collect();
        let name = guest.name.parse().ok()?;
        (!vmids.is_empty()).then_some(GuestNumbers { name, vmids })
    };
    own.filter_map(numbers).collect()
}
