//! How long a guest's programs stood still for a window, at most.
//!
//! Counted against a budget, so a time that was not reported counts as long as it can have been: from the grant to the
//! release, or to the window's bound. A window whose guest agent said nothing counts for as long as it was waited for.

use std::time::Duration;

use holdfast_protocol::local::window::WindowPhase;

use super::{Window, quiesced_wait};

impl Window {
    /// The longest that programs can have stood still for it as its guest agent reports.
    #[must_use]
    pub fn stood_still(&self) -> Duration {
        let bound = self.bound.duration();
        let again = self.released_ms.into_iter().chain(self.restarted_ms).min().map(Duration::from_millis);
        match (&self.quiesced_stacks, again) {
            (_, Some(again)) => again.min(bound),
            (Some(_), None) => bound,
            // It gave the window up, or nothing came of it, before it said that anything stands still.
            (None, None) if matches!(self.phase, WindowPhase::Cancelled) => Duration::ZERO,
            (None, None) => quiesced_wait(self.bound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::boot::{BootId, BootMoment};
    use crate::model::policy::QuiesceBound;
    use crate::operation::window::{QuiescedStacks, Restarted, WindowEvent};

    fn moment(ms: u64) -> BootMoment {
        BootMoment { boot: BootId::parse("6f1b1a7e-8d2c-4b5f-9c3a-2f6d1c0b7a01").unwrap(), ms }
    }

    #[test]
    fn what_no_one_said_counts_as_much_as_it_can_have_been() {
        let granted = Window::granted(QuiesceBound::usual(), moment(0));
        assert_eq!(granted.stood_still(), Duration::from_secs(450), "it may yet say that all stands still");
        let given_up = granted.apply(&WindowEvent::Cancelled, &moment(1_000)).unwrap();
        assert_eq!(given_up.stood_still(), Duration::ZERO);
        let still = granted.apply(&WindowEvent::Quiesced(QuiescedStacks::default()), &moment(5_000)).unwrap();
        assert_eq!(still.stood_still(), Duration::from_secs(900), "until it says that all runs again");
        let began_sooner = Restarted { down: Vec::new(), begun_ago: Some(Duration::from_secs(10)) };
        for (said, stood_s) in [(Restarted::default(), 40), (began_sooner, 30)] {
            let released = still.apply(&WindowEvent::Released(said), &moment(40_000)).unwrap();
            assert_eq!(released.stood_still(), Duration::from_secs(stood_s));
        }
        let late = still.apply(&WindowEvent::Released(Restarted::default()), &moment(5_000_000)).unwrap();
        assert_eq!(late.stood_still(), Duration::from_secs(900), "its controller starts all by the bound");
    }
}
