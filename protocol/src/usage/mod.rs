//! Measured use of a host and its guests over time.
//!
//! The agent takes a sample each minute and sends it with its next check-in; the hub keeps it, downsampled, for plots and
//! metrics. A sample steers nothing: it is lost without harm, and what is missing in it was not measured.

mod metric;
mod series;

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::metric::{MetricScope, MetricSpec, Unit, UsageMetric};
pub use self::series::{UnknownSpan, UsagePoint, UsageSeries, UsageSpan};

use crate::id::GuestUid;

/// Samples in one check-in, at most. The rest come with the next.
pub const SAMPLES_PER_CHECKIN: usize = 5;

/// Guests in one sample, at most: those with the lowest ids.
pub const SAMPLE_GUESTS_MAX: usize = 256;

/// Seconds between two samples.
pub const SAMPLE_EVERY_S: u32 = 60;

/// What one subject used. A metric that is not there was not measured.
pub type Readings = BTreeMap<UsageMetric, u64>;

/// One minute of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageSample {
    /// The end of the minute, by the agent's clock.
    pub at: Timestamp,
    /// The host.
    pub host: Readings,
    /// Its guests that ran.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub guests: BTreeMap<GuestUid, Readings>,
}
