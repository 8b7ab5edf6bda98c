//! Limits of CPU time, as Proxmox has them.
//!
//! In: `cpulimit` and `cpuunits` of a configuration. Out: whether they are those of the document. Proxmox writes a number of
//! cores, such as `1.5`; 0 and nothing are no limit (`29-limits-options`). A limit that is no such number differs from all.

use std::fmt;

use holdfast_protocol::desired::{CpuLimit, GuestLimits};

/// CPU time that a guest may use at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuLimitFact {
    #[default]
    Unlimited,
    /// In thousandths of a core.
    Millicores(u64),
    /// It could not be read.
    Unreadable,
}

impl CpuLimitFact {
    /// Reads `cpulimit`.
    #[must_use]
    pub fn read(text: Option<&str>) -> Self {
        let Some(text) = text else { return Self::Unlimited };
        match millicores(text) {
            Some(0) => Self::Unlimited,
            Some(milli) => Self::Millicores(milli),
            None => Self::Unreadable,
        }
    }

    /// Whether it is as the document says.
    #[must_use]
    pub fn is(self, wanted: CpuLimit) -> bool {
        match (self, wanted) {
            (Self::Unlimited, CpuLimit::Unlimited) => true,
            (Self::Millicores(milli), CpuLimit::CorePercent(percent)) => {
                milli == u64::from(percent.get()) * 10
            }
            (Self::Unlimited | Self::Unreadable, CpuLimit::CorePercent(_))
            | (Self::Millicores(_) | Self::Unreadable, CpuLimit::Unlimited) => false,
        }
    }
}

/// `1`, `1.5`, `0.05`: up to three digits behind the point.
fn millicores(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    let part = part.trim_end_matches('0');
    if whole.is_empty() || !is_number(whole) || !is_number(part) || part.len() > 3 {
        return None;
    }
    let part: u64 = format!("{part:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(part)
}

impl fmt::Display for CpuLimitFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str(UNLIMITED),
            Self::Millicores(milli) if milli % 10 == 0 => write!(f, "{} % of a core", milli / 10),
            Self::Millicores(milli) => write!(f, "{}.{} % of a core", milli / 10, milli % 10),
            Self::Unreadable => f.write_str("unreadable"),
        }
    }
}

const UNLIMITED: &str = "unlimited";

/// What the document says, in the same form.
#[must_use]
pub fn wanted(limit: CpuLimit) -> String {
    match limit {
        CpuLimit::Unlimited => UNLIMITED.to_owned(),
        CpuLimit::CorePercent(percent) => percent.to_string(),
    }
}

/// How much CPU time a guest may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuFacts {
    pub limit: CpuLimitFact,
    /// Its weight; none is Proxmox's own.
    pub weight: Option<u64>,
}

impl CpuFacts {
    /// Of two values of a configuration. A weight that is no number is none.
    #[must_use]
    pub fn read(limit: Option<&str>, weight: Option<&str>) -> Self {
        Self { limit: CpuLimitFact::read(limit), weight: weight.and_then(|text| text.parse().ok()) }
    }

    /// Those limits of the document that it does not have.
    #[must_use]
    pub fn missing(&self, wanted: &GuestLimits) -> Option<GuestLimits> {
        let missing = GuestLimits {
            cpu: wanted.cpu.filter(|limit| !self.limit.is(*limit)),
            cpu_weight: wanted.cpu_weight.filter(|weight| self.weight != Some(weight.get().into())),
            ..GuestLimits::default()
        };
        (!missing.is_empty()).then_some(missing)
    }

    /// How it differs from these limits, in words.
    #[must_use]
    pub fn unlike(&self, limits: &GuestLimits) -> String {
        let cpu = limits.cpu.map(|limit| format!("CPU time {}, wanted {}", self.limit, wanted(limit)));
        let weight = limits
            .cpu_weight
            .map(|weight| format!("CPU weight {}, wanted {}", self.weight_words(), weight.get()));
        [cpu, weight].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// The weight in words.
    #[must_use]
    pub fn weight_words(&self) -> String {
        self.weight.map_or_else(|| "usual".to_owned(), |weight| weight.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_limit_is_read_as_proxmox_writes_it() {
        for (text, fact, words) in [
            (None, CpuLimitFact::Unlimited, "unlimited"),
            (Some("0"), CpuLimitFact::Unlimited, "unlimited"),
            (Some("0.00"), CpuLimitFact::Unlimited, "unlimited"),
            (Some("1"), CpuLimitFact::Millicores(1000), "100 % of a core"),
            (Some("1.5"), CpuLimitFact::Millicores(1500), "150 % of a core"),
            (Some("0.05"), CpuLimitFact::Millicores(50), "5 % of a core"),
            (Some("0.333"), CpuLimitFact::Millicores(333), "33.3 % of a core"),
            (Some("8192"), CpuLimitFact::Millicores(8_192_000), "819200 % of a core"),
            (Some("0.3333"), CpuLimitFact::Unreadable, "unreadable"),
            (Some("1e3"), CpuLimitFact::Unreadable, "unreadable"),
            (Some("-1"), CpuLimitFact::Unreadable, "unreadable"),
            (Some(""), CpuLimitFact::Unreadable, "unreadable"),
        ] {
            let read = CpuLimitFact::read(text);
            assert_eq!((read, read.to_string().as_str()), (fact, words), "{text:?}");
        }
    }

    #[test]
    fn what_the_document_leaves_out_is_not_missing() {
        let limits = |value| serde_json::from_value::<GuestLimits>(value).unwrap();
        let has = CpuFacts::read(Some("1.5"), Some("50"));
        for (wanted, missing) in [
            (json!({}), None),
            (json!({ "cpu": { "core_percent": 150 }, "cpu_weight": 50 }), None),
            (json!({ "cpu": { "core_percent": 150 }, "cpu_weight": 51 }), Some(json!({ "cpu_weight": 51 }))),
            (json!({ "cpu": { "core_percent": 100 } }), Some(json!({ "cpu": { "core_percent": 100 } }))),
            (json!({ "cpu": "unlimited" }), Some(json!({ "cpu": "unlimited" }))),
        ] {
            assert_eq!(has.missing(&limits(wanted.clone())), missing.map(limits), "{wanted}");
        }
        assert_eq!(CpuFacts::default().missing(&limits(json!({ "cpu": "unlimited" }))), None);
        assert_eq!(CpuFacts::read(None, Some("x")).weight_words(), "usual");
    }
}
