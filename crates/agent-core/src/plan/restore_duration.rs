//! Whether a guest's return takes longer than it did.
//!
//! What comes in: the restore tests of a guest's tier. What goes out: how long the newest that came back took, compared
//! with what those before it let expect. The rule:
//!
//! - *The newest* is the newest test that came back (*proved* or *booted only*) and of which both times are known:
//!   Proxmox's work of the restore, and from the start to the verdict. It is compared with up to
//!   [`limits::TREND_TESTS`] before it of the same verdict, since a test without checks inside the guest is over
//!   sooner. With fewer than [`limits::TREND_TESTS_MIN`] nothing is said.
//! - *Expected* is the median of those: half of them may have run at the same time as a backup, or over a bad line,
//!   before it moves. It is taken once of their times as they are, and once with each restore stretched by how much
//!   larger the newest backup is, where all sizes are known: reading and unpacking are work per byte, and some of it is
//!   not. A value between the two is explained by the size.
//! - *Slower* is more than half again as long as the longer of the two expectations, *faster* is where the shorter is
//!   more than half again as long as the newest, and both only by more than a minute ([`limits::TREND_BOUND_S`]). The
//!   rule is a factor and not a spread: eight weekly tests give no spread, and an operator who waits for a return
//!   counts in factors.
//!
//! The rule is our own; that a median bears outliers up to a half of its values, and a mean not one, is Hampel's
//! breakdown point (1971). Pure. Deliberately absent: what follows from it. It is reported and changes no guest's
//! posture, since a slow return is still a return.

use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::protection::Trend;

use crate::model::limits;
use crate::model::records::TestRecord;

/// A test that came back, with its times.
#[derive(Clone, Copy)]
struct Back<'a> {
    test: &'a TestRecord,
    restore_s: u64,
    up_s: u64,
}

impl<'a> Back<'a> {
    fn of(test: &'a TestRecord) -> Option<Self> {
        let came_back = matches!(test.verdict, TestVerdict::Proved | TestVerdict::BootedOnly);
        let (restore_s, up_s) = (test.took.restore_s?, test.took.up_s?);
        came_back.then_some(Self { test, restore_s, up_s })
    }

    fn whole_s(&self) -> u64 {
        self.restore_s.saturating_add(self.up_s)
    }

    /// As long as it would have taken with a backup of this size.
    fn stretched_s(&self, bytes: u64) -> Option<u64> {
        let own = self.test.bytes.filter(|own| *own > 0)?;
        let restore_s = u128::from(self.restore_s) * u128::from(bytes) / u128::from(own);
        Some(u64::try_from(restore_s).unwrap_or(u64::MAX).saturating_add(self.up_s))
    }
}

/// Computes it from the tests of one tier, in any order.
#[must_use]
pub fn trend<'a>(tests: impl Iterator<Item = &'a TestRecord>) -> Trend {
    let mut back: Vec<Back<'_>> = tests.filter_map(Back::of).collect();
    back.sort_by_key(|back| std::cmp::Reverse(back.test.at));
    let newest = back.first().copied();
    let verdict = newest.map(|newest| newest.test.verdict);
    back.retain(|back| Some(back.test.verdict) == verdict);
    back.truncate(limits::TREND_TESTS as usize + 1);
    let (Some(newest), Some((_, before))) = (newest, back.split_first()) else {
        return too_few(0);
    };
    if before.len() < limits::TREND_TESTS_MIN as usize {
        return too_few(back.len());
    }
    let plain_s = median(before.iter().map(Back::whole_s).collect());
    let stretched: Option<Vec<u64>> =
        newest.test.bytes.and_then(|bytes| before.iter().map(|before| before.stretched_s(bytes)).collect());
    let stretched_s = stretched.map_or(plain_s, median);
    judge(newest.whole_s(), plain_s, stretched_s)
}

fn too_few(tests: usize) -> Trend {
    let tests = u32::try_from(tests).unwrap_or(u32::MAX);
    Trend::TooFew { tests, needed: limits::TREND_TESTS_MIN + 1 }
}

fn judge(took_s: u64, plain_s: u64, stretched_s: u64) -> Trend {
    let (least, most) = (plain_s.min(stretched_s), plain_s.max(stretched_s));
    if markedly(took_s, most) {
        Trend::Slower { took_s, usual_s: most }
    } else if markedly(least, took_s) {
        Trend::Faster { took_s, usual_s: least }
    } else {
        Trend::Steady { took_s, usual_s: plain_s }
    }
}

/// Whether one time is markedly longer than another.
const fn markedly(longer: u64, shorter: u64) -> bool {
    longer.saturating_sub(shorter) > limits::TREND_BOUND_S
        && longer.saturating_mul(100) > shorter.saturating_mul(limits::TREND_BOUND_PERCENT)
}

/// Of an even number the mean of the two in the middle.
fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    let at = |place: usize| all.get(place).copied().unwrap_or_default();
    let middle = all.len() / 2;
    if all.len() % 2 == 1 { at(middle) } else { at(middle - 1).midpoint(at(middle)) }
}
