//! The two clocks, and how long a way is still open.
//!
//! A way is bound by both: by the wall clock, which counts on while the host is off, and by `CLOCK_BOOTTIME` within one
//! boot, which cannot be set. The wall clock is taken to be no earlier than the newest time that was seen. After a reboot
//! the rest of the time counts on from what was last written, less [`REBOOT_COST_S`]. So neither a clock that is set back
//! nor a reboot makes a way last longer. In: clocks and the open way. Out: seconds that are left.

use holdfast_protocol::job::UtcSecond;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How often the rest of the time is written down while a way is open.
pub const TICK_S: u64 = 20;

/// What a reboot takes away: more than the time since the last tick, which is not written down.
pub const REBOOT_COST_S: i64 = 60;

/// Which boot of the machine this is: the kernel's text, with or without its dashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BootId(String);

impl TryFrom<String> for BootId {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, &'static str> {
        let digits = text.replace('-', "").to_ascii_lowercase();
        if (8..=64).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            Ok(Self(digits))
        } else {
            Err("a boot id is hex digits and '-'")
        }
    }
}

impl From<BootId> for String {
    fn from(boot: BootId) -> Self {
        boot.0
    }
}

/// One reading of the clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    pub wall: Timestamp,
    pub boot: BootId,
    /// Seconds since that boot, those of sleep as well.
    pub up_s: i64,
}

/// How long a way may still be open, as it was last written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    pub closes_at: UtcSecond,
    pub boot: BootId,
    /// Seconds since that boot at which it is over.
    pub up_end_s: i64,
    /// What was left when this was written.
    pub left_s: i64,
}

impl Moment {
    /// The wall clock, and never earlier than the newest time that was seen.
    #[must_use]
    pub fn at_least(&self, latest: UtcSecond) -> Timestamp {
        self.wall.max(latest.at())
    }
}

impl Term {
    /// Of a way that is opened now.
    #[must_use]
    pub fn begin(now: &Moment, closes_at: UtcSecond, seconds: i64) -> Self {
        let up_end_s = now.up_s.saturating_add(seconds);
        Self { closes_at, boot: now.boot.clone(), up_end_s, left_s: seconds }
    }

    /// Seconds that are left; none or fewer when it is over. They never grow.
    #[must_use]
    pub fn left_s(&self, now: &Moment, latest: UtcSecond) -> i64 {
        let by_wall = self.closes_at.second().saturating_sub(now.at_least(latest).as_second());
        let by_boot = if self.boot == now.boot {
            self.up_end_s.saturating_sub(now.up_s)
        } else {
            self.left_s.saturating_sub(REBOOT_COST_S).saturating_sub(now.up_s)
        };
        by_wall.min(by_boot).min(self.left_s)
    }

    /// The same, written down now.
    #[must_use]
    pub fn next(&self, now: &Moment, latest: UtcSecond) -> Self {
        let left_s = self.left_s(now, latest);
        let up_end_s = now.up_s.saturating_add(left_s);
        Self { closes_at: self.closes_at, boot: now.boot.clone(), up_end_s, left_s }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const OPENED: i64 = 1_795_269_600;

    pub(crate) fn second(wall_s: i64) -> UtcSecond {
        UtcSecond::new(Timestamp::from_second(wall_s).unwrap()).unwrap()
    }

    /// Seconds after the opening by the wall clock, the boot, seconds since it.
    pub(crate) fn moment(wall_s: i64, boot: u8, up_s: i64) -> Moment {
        let boot = BootId::try_from(format!("{boot:08x}-0000")).unwrap();
        Moment { wall: Timestamp::from_second(OPENED + wall_s).unwrap(), boot, up_s }
    }

    /// Ten minutes from [`OPENED`], in boot 1 that is 1000 s old.
    fn term() -> Term {
        Term::begin(&moment(0, 1, 1_000), second(OPENED + 600), 600)
    }

    #[test]
    fn a_table_of_clocks_and_boots() {
        // What happened, the clocks, the newest time seen, what is left.
        for (what, now, latest, left) in [
            ("at once", moment(0, 1, 1_000), 0, 600),
            ("half of it", moment(300, 1, 1_300), 0, 300),
            ("the last second", moment(599, 1, 1_599), 0, 1),
            ("over", moment(600, 1, 1_600), 0, 0),
            ("set back by a day", moment(-86_400, 1, 1_599), 0, 1),
            ("set back by a day, over", moment(-86_400, 1, 1_600), 0, 0),
            ("set back, and the newest time is known", moment(0, 1, 1_100), 500, 100),
            ("set on by a day", moment(86_400, 1, 1_001), 0, 600 - 86_400),
            ("asleep for an hour, the wall clock stood", moment(10, 1, 4_600), 0, -3_000),
            ("a reboot", moment(50, 2, 30), 0, 510),
            ("a reboot with the clock set back", moment(-86_400, 2, 30), 0, 510),
            ("off for an hour", moment(3_700, 2, 20), 0, -3_100),
            ("off for an hour, then the clock set back", moment(0, 2, 20), 3_700, -3_100),
            ("a reboot, over by the time since", moment(-86_400, 2, 540), 0, 0),
        ] {
            assert_eq!(term().left_s(&now, second(OPENED + latest)), left, "{what}");
        }
    }

    #[test]
    fn no_order_of_ticks_and_reboots_makes_it_last_longer() {
        let mut term = term();
        let (mut spent, mut before) = (0, term.left_s);
        // The clock stands still by the wall, and the machine is started anew every 90 s, with a tick each 20 s.
        for boot in 1..=9_u8 {
            let start = if boot == 1 { 1_000 } else { 0 };
            for up in [0, 20, 40, 60, 80] {
                term = term.next(&moment(0, boot, start + up), second(OPENED));
                assert!(term.left_s <= before, "boot {boot}, {up} s");
                before = term.left_s;
            }
            spent += 90;
        }
        assert!(term.left_s <= 600 - spent, "{} s are left after {spent} s", term.left_s);
    }
}
