//! Totals that a customer's guests may have on one host.
//!
//! In: `customer_limits` and the guests of a document. Out: the first total above its limit, with the sum. Pure, so that
//! `holdfast`, hub and agent refuse the same documents. Counted is what the document gives: a guest that it no longer names
//! counts no more, and swap never.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DesiredDocument, DesiredError, DesiredGuest, Unique};
use crate::id::CustomerId;
use crate::size::{CustomerCores, CustomerDiskGib, CustomerMemoryMib};

/// Customers with limits in one document.
pub const CUSTOMER_LIMITS_MAX: usize = 1_000;

/// A refusal names so many of the guests that count, the largest first.
const NAMED_GUESTS_MAX: usize = 5;

/// What all guests of a customer on this host may have together. What is left out is not bounded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomerLimits {
    /// Whose guests.
    pub customer: CustomerId,
    /// Cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<CustomerCores>,
    /// Memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<CustomerMemoryMib>,
    /// Root disks and volumes in GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_gib: Option<CustomerDiskGib>,
}

/// A total above its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomerTotal {
    /// The limit's JSON path.
    pub path: String,
    /// Whose guests.
    pub customer: CustomerId,
    /// What the document gives them.
    pub sum: u64,
    /// What they may have.
    pub limit: u64,
    /// Of what.
    pub unit: &'static str,
    /// The largest of them, each with its part.
    pub largest: Vec<(String, u64)>,
    /// How many there are.
    pub guests: usize,
}

impl fmt::Display for CustomerTotal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, customer, sum, limit, unit, largest, guests } = self;
        let named: Vec<String> = largest.iter().map(|(name, part)| format!("{name} {part}")).collect();
        let rest = match guests.saturating_sub(largest.len()) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let guests = if *guests == 1 { "1 guest".to_owned() } else { format!("{guests} guests") };
        write!(
            f,
            "the {guests} of customer {customer} would have {sum} {unit} on this host ({}{rest}), and {path} allows {limit}: make \
             guests smaller, or raise the limit in the document",
            named.join(", ")
        )
    }
}

/// A part of a guest that counts.
type Part = fn(&DesiredGuest) -> u64;

fn cores(guest: &DesiredGuest) -> u64 {
    guest.size.cores.get().into()
}

fn memory(guest: &DesiredGuest) -> u64 {
    guest.size.memory_mib.get().into()
}

fn disk(guest: &DesiredGuest) -> u64 {
    let volumes = guest.volumes.iter().map(|volume| u64::from(volume.size_gib.get()));
    volumes.fold(guest.size.rootfs_gib.get().into(), u64::saturating_add)
}

/// Each customer once, and no total above its limit.
pub(super) fn check(document: &DesiredDocument) -> Result<(), DesiredError> {
    let limits = &document.customer_limits;
    if limits.len() > CUSTOMER_LIMITS_MAX {
        let (what, count, max) = ("customers with limits", limits.len(), CUSTOMER_LIMITS_MAX);
        return Err(DesiredError::TooMany { what, count, max });
    }
    if limits.is_empty() {
        return Ok(());
    }
    let mut of_customer: BTreeMap<&CustomerId, Vec<&DesiredGuest>> = BTreeMap::new();
    for guest in &document.guests {
        of_customer.entry(&guest.customer).or_default().push(guest);
    }
    let mut names = BTreeSet::new();
    for (at, limit) in limits.iter().enumerate() {
        let path = |field: &str| format!("customer_limits[{at}].{field}");
        if !names.insert(&limit.customer) {
            let (path, value) = (path("customer"), limit.customer.to_string());
            return Err(DesiredError::Twice { path, what: Unique::Customer, value });
        }
        let guests = of_customer.get(&limit.customer).map(Vec::as_slice).unwrap_or_default();
        let parts: [(&str, Option<u32>, &'static str, Part); 3] = [
            ("cores", limit.cores.map(CustomerCores::get), "cores", cores),
            ("memory_mib", limit.memory_mib.map(CustomerMemoryMib::get), "MiB memory", memory),
            ("disk_gib", limit.disk_gib.map(CustomerDiskGib::get), "GiB of disk", disk),
        ];
        for (field, most, unit, part) in parts {
            let Some(most) = most.map(u64::from) else { continue };
            let sum = guests.iter().map(|guest| part(guest)).fold(0, u64::saturating_add);
            if sum > most {
                let mut largest: Vec<(String, u64)> =
                    guests.iter().map(|guest| (guest.name.to_string(), part(guest))).collect();
                largest.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
                largest.truncate(NAMED_GUESTS_MAX);
                return Err(DesiredError::CustomerTotal(Box::new(CustomerTotal {
                    path: path(field),
                    customer: limit.customer.clone(),
                    sum,
                    limit: most,
                    unit,
                    largest,
                    guests: guests.len(),
                })));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Desired;
    use super::*;
    use crate::code::ErrorCode;

    fn document(limits: &Value, guests: u32) -> Value {
        let guest = |n: u32| {
            json!({
                "uid": format!("018f3c1e-6b1f-7c1d-9d0a-{n:012}"), "name": format!("web-{n}"), "customer": "acme", "run": "running",
                "golden": "2026.11.1", "size": { "cores": n, "memory_mib": 512, "swap_mib": 512, "rootfs_gib": 8 },
                "network": { "bridge": "vmbr0", "address": format!("10.66.0.{n}/24") },
                "volumes": [{ "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot" }]
            })
        };
        let guests: Vec<Value> = (1..=guests).map(guest).collect();
        json!({
            "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30, "customer_limits": limits, "guests": guests
        })
    }

    fn judged(limits: Value, guests: u32) -> Result<Desired, DesiredError> {
        Desired::parse(document(&limits, guests).to_string().as_bytes())
    }

    #[test]
    fn a_total_may_be_reached_and_not_passed() {
        let limits = json!([{ "customer": "acme", "cores": 3, "memory_mib": 1024, "disk_gib": 24 }, { "customer": "globex" }]);
        assert!(judged(limits.clone(), 2).is_ok(), "exactly as much");
        for (field, value, sum) in
            [("cores", 2, "3 cores"), ("memory_mib", 1_023, "1024 MiB memory"), ("disk_gib", 23, "24 GiB")]
        {
            let mut less = limits.clone();
            less[0][field] = json!(value);
            let refused = judged(less, 2).unwrap_err();
            assert_eq!(refused.path(), Some(format!("customer_limits[0].{field}").as_str()));
            assert_eq!(refused.code(), ErrorCode::CustomerLimit);
            let text = refused.to_string();
            assert!(text.contains(sum) && text.contains(&format!("allows {value}")), "{text}");
        }
    }

    #[test]
    fn a_refusal_names_the_largest_guests() {
        let text = judged(json!([{ "customer": "acme", "cores": 27 }]), 7).unwrap_err().to_string();
        assert_eq!(
            text,
            "the 7 guests of customer acme would have 28 cores on this host (web-7 7, web-6 6, web-5 5, web-4 4, web-3 3, and 2 \
             more), and customer_limits[0].cores allows 27: make guests smaller, or raise the limit in the document"
        );
    }

    #[test]
    fn a_customer_has_limits_once() {
        let twice = judged(json!([{ "customer": "acme" }, { "customer": "acme" }]), 1).unwrap_err();
        assert_eq!(
            (twice.code(), twice.path()),
            (ErrorCode::DuplicateName, Some("customer_limits[1].customer"))
        );
    }
}
