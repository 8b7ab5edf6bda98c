//! Filters of guests.

use std::fmt;

use super::{FilterError, HostPart, NamePattern, Part, Presence, Word, choice, filter, refused, written};
use crate::code::ErrorCode;
use crate::id::{CustomerId, GoldenVersion, Vmid};
use crate::operator::HostView;
use crate::protection::Posture;
use crate::report::{GuestReport, GuestStatus, Running};

/// What a guest is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestPart {
    /// Any.
    All,
    /// Its name, or its uid.
    Name(NamePattern),
    /// Its VMID, between these two; a single number may be its name as well.
    Vmids(Vmid, Vmid),
    /// `@host-NAME`: where it is.
    Host(NamePattern),
    /// A property of its host that guests do not have: `@label-KEY=VALUE` or `@state-STATE`.
    OfHost(HostPart),
    /// `@customer-ID`.
    Customer(CustomerId),
    /// `@status-missing`.
    Status(GuestStatus),
    /// `@run-stopped`.
    Run(Running),
    /// `@image-2026.11.1`: what it was made from.
    Image(GoldenVersion),
    /// `@protection-unprotected`.
    Protection(Posture),
    /// `@condition-FROZEN`.
    Condition(ErrorCode),
    /// `@attention-some`: whether it has conditions.
    Attention(Presence),
}

const PROPERTIES: &str = "@all, @host-NAME, @label-KEY, @label-KEY=VALUE, @state-STATE (both of the host), @customer-ID, \
     @status-STATUS, @run-RUN, @image-VERSION, @protection-POSTURE, @condition-CODE, @attention-some and @attention-none";

impl Part for GuestPart {
    fn read(text: &str, word: Word<'_>) -> Result<Self, FilterError> {
        match word {
            Word::All => Ok(Self::All),
            Word::Name(name) => Ok(Self::Name(name)),
            Word::Vmids(first, last) => Ok(Self::Vmids(first, last)),
            Word::Property("host", value) => {
                NamePattern::parse(value).map(Self::Host).map_err(|why| refused(text, why))
            }
            Word::Property("label" | "state", _) => HostPart::read(text, word).map(Self::OfHost),
            Word::Property("customer", value) => value
                .parse()
                .map(Self::Customer)
                .map_err(|error: crate::id::IdError| refused(text, error.to_string())),
            Word::Property("status", value) => choice(text, value).map(Self::Status),
            Word::Property("run", value) => choice(text, value).map(Self::Run),
            Word::Property("image", value) => value
                .parse()
                .map(Self::Image)
                .map_err(|error: crate::id::IdError| refused(text, error.to_string())),
            Word::Property("protection", value) => choice(text, value).map(Self::Protection),
            Word::Property("condition", value) => choice(text, value).map(Self::Condition).map_err(|_| {
                refused(text, "there is no such code: `holdfast guest show` names those of a guest")
            }),
            Word::Property("attention", value) => choice(text, value).map(Self::Attention),
            Word::Property(..) => Err(refused(text, format!("guests have {PROPERTIES}"))),
        }
    }
}

impl GuestPart {
    /// Whether it holds for a guest of a host.
    #[must_use]
    pub fn holds(&self, host: &HostView, guest: &GuestReport) -> bool {
        match self {
            Self::All => true,
            Self::Name(name) => {
                name.matches(&guest.name) || guest.uid.is_some_and(|uid| name.matches(&uid.to_string()))
            }
            // A name may be a number.
            Self::Vmids(first, last) => {
                guest.vmid.is_some_and(|vmid| (*first..=*last).contains(&vmid))
                    || (first == last && guest.name == first.to_string())
            }
            Self::Host(name) => name.matches(host.name.as_str()) || name.matches(&host.id.to_string()),
            Self::OfHost(part) => part.holds(host),
            Self::Customer(customer) => guest.customer.as_ref() == Some(customer),
            Self::Status(status) => guest.status == *status,
            Self::Run(run) => guest.run == *run,
            Self::Image(image) => guest.golden.as_ref() == Some(image),
            Self::Protection(is) => {
                let posture = guest.protection.as_ref().and_then(|protection| protection.posture.as_ref());
                posture.is_some_and(|posture| posture.is == *is)
            }
            Self::Condition(code) => guest.conditions.iter().any(|condition| condition.code == *code),
            Self::Attention(presence) => Presence::of(guest.conditions.len()) == *presence,
        }
    }
}

impl fmt::Display for GuestPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("@all"),
            Self::Name(name) => name.fmt(f),
            Self::Vmids(first, last) if first == last => first.fmt(f),
            Self::Vmids(first, last) => write!(f, "{first}:{last}"),
            Self::Host(name) => write!(f, "@host-{name}"),
            Self::OfHost(part) => part.fmt(f),
            Self::Customer(customer) => write!(f, "@customer-{customer}"),
            Self::Status(status) => write!(f, "@status-{}", written(status)),
            Self::Run(run) => write!(f, "@run-{}", written(run)),
            Self::Image(image) => write!(f, "@image-{image}"),
            Self::Protection(posture) => write!(f, "@protection-{}", posture.as_str()),
            Self::Condition(code) => write!(f, "@condition-{}", written(code)),
            Self::Attention(presence) => write!(f, "@attention-{}", written(presence)),
        }
    }
}

filter! {
    /// Which guests a list has: such as `@customer-acme+@run-stopped,5000:5099,-%test%`.
    GuestFilter, GuestPart
}

impl GuestFilter {
    /// Whether the list has this guest of this host.
    #[must_use]
    pub fn selects(&self, host: &HostView, guest: &GuestReport) -> bool {
        self.0.select(|part| part.holds(host, guest))
    }
}
