//! How long cores worked for the processes that were waited for.
//!
//! In: `/proc/self/stat`. Out: user and system time of all children that have ended, and of what they waited for. A
//! process that its parent did not wait for is not counted.

use std::time::Duration;

pub fn of_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = waited_for(&stat).unwrap_or_default();
    Duration::from_millis(ticks.saturating_mul(1_000) / rustix::param::clock_ticks_per_second().max(1))
}

/// Fields 16 and 17 of `proc_pid_stat(5)`; the name in field 2 may hold anything, so they are counted from its end.
fn waited_for(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit(')').next()?.split_ascii_whitespace().skip(13);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_children_is_read_whatever_the_program_is_called() {
        let stat = "77 (a) b (c) S 1 77 77 0 -1 4194560 100 200 0 0 11 12 130 14 20 0 1 0 5 6 7";
        assert_eq!(waited_for(stat), Some(144));
        assert_eq!(waited_for("77 (x) S 1"), None);
    }
}
