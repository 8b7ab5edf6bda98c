//! `holdfast guest`: guests as last reported by their agents.

use holdfast_protocol::filter::GuestFilter;
use holdfast_protocol::id::{GuestUid, HostName};
use holdfast_protocol::operator::{GuestOnHost, HostDetail, HostState, HostView};
use holdfast_protocol::protection::ProtectionReport;
use holdfast_protocol::report::GuestReport;
use holdfast_protocol::usage::{UsageSeries, UsageSpan};
use jiff::Timestamp;
use serde::Serialize;

use super::{certificate, guest_audit, resource};
use crate::args::GuestCommand;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::render::host_state::HeardHost;
use crate::screen::Screen;
use crate::{clock, render};

/// As many as a page of the hub has at most.
const GUESTS_PER_PAGE: u32 = 500;

/// A guest with its host: the document for programs.
#[derive(Debug, Serialize)]
struct OnHost {
    host: HostName,
    host_state: HostState,
    /// Everything here is as old as this.
    seen_at: Option<Timestamp>,
    #[serde(flatten)]
    guest: GuestReport,
}

impl OnHost {
    fn heard(&self) -> HeardHost<'_> {
        HeardHost { name: &self.host, state: self.host_state, seen_at: self.seen_at }
    }
}

/// A guest with what it used: the document for programs.
#[derive(Debug, Serialize)]
struct GuestWithUse {
    #[serde(flatten)]
    on_host: OnHost,
    /// None for a guest that is not ours, and at a hub of an earlier version.
    usage: Option<UsageSeries>,
}

/// The promised protection of a managed guest: the document for programs.
#[derive(Debug, Serialize)]
struct GuestProtection {
    host: HostName,
    uid: GuestUid,
    name: String,
    protection: Option<Box<ProtectionReport>>,
}

impl GuestProtection {
    fn of(OnHost { host, guest, .. }: &OnHost) -> Option<Self> {
        let (host, name) = (host.clone(), guest.name.clone());
        Some(Self { host, uid: guest.uid?, name, protection: guest.protection.clone() })
    }
}

pub async fn run(command: GuestCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        GuestCommand::List { host, filter } => {
            let guests = guests(hub, host.as_deref(), filter.as_ref()).await?;
            screen.show(&guests, |guests, style| {
                let pairs: Vec<_> = guests.iter().map(|on_host| (&on_host.host, &on_host.guest)).collect();
                let hosts = guests.iter().map(OnHost::heard);
                render::guest::guests(&pairs, style) + &render::host_state::not_heard(hosts, clock::now())
            })
        }
        GuestCommand::Set(args) => resource::set(resource::GUESTS, &args, hub, screen).await,
        GuestCommand::Add(args) => resource::add(resource::GUESTS, &args, hub, screen).await,
        GuestCommand::Remove(args) => resource::remove(resource::GUESTS, &args, hub, screen).await,
        GuestCommand::Protection { host } => {
            let guests = guests(hub, host.as_deref(), None).await?;
            let ours: Vec<GuestProtection> = guests.iter().filter_map(GuestProtection::of).collect();
            screen.show(&ours, |_, style| {
                let pairs: Vec<_> = guests.iter().map(|on_host| (&on_host.host, &on_host.guest)).collect();
                render::protection::protection(&pairs, style)
            })
        }
        GuestCommand::Show { guest, host, span } => {
            let on_host = one(hub, guest, host.as_deref()).await?;
            let usage = usage(hub, &on_host, span).await?;
            screen.show(&GuestWithUse { on_host, usage }, |shown, _| {
                let (on_host, now) = (&shown.on_host, clock::now());
                let pair = (&on_host.host, &on_host.guest);
                render::guest::guest_with_use(pair, shown.usage.as_ref(), now)
                    + &render::host_state::not_heard([on_host.heard()], now)
            })
        }
        GuestCommand::Audit { guest, host } => {
            let OnHost { host, guest: found, .. } = one(hub, guest.clone(), host.as_deref()).await?;
            let uid = found.uid.ok_or(CliError::NoGuest { guest })?;
            guest_audit::run((host, uid), hub, screen).await
        }
        GuestCommand::Certificate(args) => {
            let OnHost { host, guest, .. } = one(hub, args.guest.clone(), args.host.as_deref()).await?;
            let uid = guest.uid.ok_or_else(|| CliError::NoGuest { guest: args.guest.clone() })?;
            certificate::of_guest((&host, uid), args, hub, screen).await
        }
    }
}

/// The one guest of this name.
async fn one(hub: &Hub, guest: String, host: Option<&str>) -> Result<OnHost, CliError> {
    let all = guests(hub, host, called(&guest).as_ref()).await?;
    let mut found: Vec<OnHost> = all.into_iter().filter(|on_host| is_called(on_host, &guest)).collect();
    match (found.pop(), found.is_empty()) {
        (None, _) => Err(CliError::NoGuest { guest }),
        (Some(on_host), true) => Ok(on_host),
        (Some(last), false) => {
            let hosts: Vec<&str> = found.iter().chain([&last]).map(|on_host| on_host.host.as_str()).collect();
            Err(CliError::ManyGuests { guest, hosts: hosts.join(", ") })
        }
    }
}

/// A name, uid or VMID as a filter. None for a text that is something else in a filter: then all guests are read.
fn called(guest: &str) -> Option<GuestFilter> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if guest.starts_with('-') || !guest.bytes().all(is_plain) {
        return None;
    }
    guest.parse().ok()
}

/// What the hub keeps of a guest's use.
async fn usage(hub: &Hub, on_host: &OnHost, span: UsageSpan) -> Result<Option<UsageSeries>, CliError> {
    let Some(uid) = on_host.guest.uid else { return Ok(None) };
    let (uid, path) = (uid.to_string(), ["v1", "hosts", on_host.host.as_str(), "usage"]);
    Ok(hub.find_permitted(&path, &[("guest", &uid), ("span", span.as_str())]).await?)
}

fn is_called(on_host: &OnHost, name: &str) -> bool {
    let guest = &on_host.guest;
    guest.name == name
        || guest.uid.is_some_and(|uid| uid.to_string() == name)
        || guest.vmid.is_some_and(|vmid| vmid.to_string() == name)
}

/// One host, or all that were not let go.
pub(super) async fn hosts(hub: &Hub, host: Option<&str>) -> Result<Vec<HostDetail>, CliError> {
    let names = match host {
        Some(host) => vec![host.to_owned()],
        None => {
            let hosts: Vec<HostView> = hub.list(&["v1", "hosts"], &[], WHOLE).await?;
            let kept = hosts.iter().filter(|host| host.state != HostState::Revoked);
            kept.map(|host| host.id.to_string()).collect()
        }
    };
    let mut details = Vec::new();
    for name in names {
        details.push(hub.get(&["v1", "hosts", &name]).await?);
    }
    Ok(details)
}

/// Of one host, or of all that were not let go.
async fn guests(
    hub: &Hub,
    host: Option<&str>,
    filter: Option<&GuestFilter>,
) -> Result<Vec<OnHost>, CliError> {
    let filter = filter.map(GuestFilter::to_string);
    let limit = GUESTS_PER_PAGE.to_string();
    let of = |name, value: Option<&'_ str>| value.map(|value| (name, value.to_owned()));
    let query = [of("host", host), of("filter", filter.as_deref()), of("limit", Some(&limit))];
    let query: Vec<(&str, String)> = query.into_iter().flatten().collect();
    let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let found: Vec<GuestOnHost> = hub.list(&["v1", "guests"], &query, WHOLE).await?;
    let on_host = |found: GuestOnHost| {
        let GuestOnHost { host, host_state, seen_at, guest, host_id: _ } = found;
        OnHost { host, host_state, seen_at, guest }
    };
    Ok(found.into_iter().map(on_host).collect())
}
