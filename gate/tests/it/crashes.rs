//! Tests of a program that is killed at each point.

use super::host::{Host, Recipe};
use super::is_root;

/// The points that a start with an offer passes, in order.
const POINTS: [&str; 7] = [
    "accepted",
    "filling_stored",
    "build_copied",
    "trial_stored",
    "start_counted",
    "link_made",
    "watch_started",
];

#[test]
fn a_start_that_is_cut_off_anywhere_leaves_a_program_that_may_run() {
    if !is_root() {
        return;
    }
    for first in POINTS {
        for second in POINTS {
            let host = Host::new();
            let release = host.release("seven", &Recipe::default());
            host.offers(&release);
            let mut ends = 0;
            for point in [first, second] {
                host.end_at(point);
                if host.gate(&["start"]).status.success() {
                    // It does not come by there any more.
                    drop(std::fs::remove_file(host.path("run/end-at")));
                } else {
                    ends += 1;
                }
            }
            assert!(ends > 0, "{first} was not reached");
            let runs = host.starts();
            let status = host.status();
            // The offer is still there unless it was looked at; then the build is on trial or failed.
            assert!(["a", "package"].contains(&runs.as_str()), "{first}, {second}: {status}");
            if runs == "a" {
                let program = std::fs::read(host.path("slots/a/agentd")).unwrap();
                assert_eq!(program, b"program seven", "{first}, {second}");
                // Each start was counted before it happened, the ones that were cut off too.
                assert!(status["trial"]["starts_left"].as_u64().unwrap() < 3, "{first}, {second}");
            }
            // And so does every start after it, until the starts are used.
            for _ in 0..3 {
                host.starts();
            }
            assert_eq!(host.starts(), "package", "{first}, {second}: {}", host.status());
        }
    }
}
