//! The judgement of a presented token: one holder, none, or two.
//!
//! In: which of a guest's tokens was shown, from where, and what is recorded of it. Out: one verdict. A token was
//! handed over once, to one guest, which has one address (the document's, or the one that Proxmox gives it). A caller
//! that shows it from elsewhere while the guest uses it from its own address is a second holder. So is a caller that
//! shows an earlier token after the later one was used. A second holder is a copy of the guest, or somebody who read
//! its disk or its backup. Which of the two is the right one cannot be known here, so both are frozen. The same rule
//! holds between hosts and their hub. Deliberately absent: how a token is found, and what follows.

use std::net::IpAddr;

use super::records::Access;

/// Which of a guest's tokens was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresentedToken {
    /// The one of the present generation.
    Current,
    /// One of an earlier generation.
    Former,
}

/// What is written of a guest's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// How the guest may use the local API.
    pub access: Access,
    /// From where the present token was last used, if it was.
    pub used_from: Option<IpAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The guest speaks.
    Serve,
    /// The guest speaks, for the first time from there: that is to be written down.
    ServeAndNote,
    /// It is as if no token had been shown.
    Refuse,
    /// It is the guest, or its copy at the guest's address, and no caller may act for it.
    Frozen,
    /// Two hold it: both are to be frozen. Who showed it learns no more than from [`Verdict::Refuse`].
    Twice,
}

/// Judges a token that was shown from `from`. `own` is the address its guest must call from, if it has one.
#[must_use]
pub fn judge(shown: PresentedToken, from: IpAddr, own: Option<IpAddr>, holding: Holding) -> Verdict {
    let frozen = holding.access == Access::Frozen;
    match (shown, holding.used_from) {
        (PresentedToken::Current, _) if own == Some(from) && frozen => Verdict::Frozen,
        (PresentedToken::Current, Some(last)) if own == Some(from) && last == from => Verdict::Serve,
        (PresentedToken::Current, _) if own == Some(from) => Verdict::ServeAndNote,
        _ if frozen => Verdict::Refuse,
        // The document gave the guest another address, and the guest has not moved yet: one holder, at the wrong place.
        (PresentedToken::Current, Some(last)) if last == from => Verdict::Refuse,
        (PresentedToken::Current | PresentedToken::Former, Some(_)) => Verdict::Twice,
        // The present token was never used so far, so there is one holder at most.
        (PresentedToken::Current | PresentedToken::Former, None) => Verdict::Refuse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_from_each_place() {
        use PresentedToken::{Current, Former};
        use Verdict::{Frozen, Refuse, Serve, ServeAndNote, Twice};
        let at = |last: u8| IpAddr::from([10, 66, 0, last]);
        let (own, other, third) = (at(91), at(92), at(93));
        // Which token, from where, where it was used last; then the verdicts of a guest that is open and one that is frozen.
        let table = [
            (Current, own, None, ServeAndNote, Frozen),
            (Current, own, Some(own), Serve, Frozen),
            // It moved to where the document wants it.
            (Current, own, Some(other), ServeAndNote, Frozen),
            (Current, other, None, Refuse, Refuse),
            (Current, other, Some(own), Twice, Refuse),
            // The document moved, the guest did not.
            (Current, other, Some(other), Refuse, Refuse),
            (Current, other, Some(third), Twice, Refuse),
            (Former, own, None, Refuse, Refuse),
            (Former, own, Some(own), Twice, Refuse),
            (Former, other, Some(own), Twice, Refuse),
            (Former, other, None, Refuse, Refuse),
        ];
        for (shown, from, used_from, open, frozen) in table {
            for (access, wanted) in [(Access::Open, open), (Access::Frozen, frozen)] {
                let verdict = judge(shown, from, Some(own), Holding { access, used_from });
                assert_eq!(verdict, wanted, "{shown:?} from {from}, used from {used_from:?}, {access:?}");
            }
        }
        // The token of a guest without an address of its own is refused.
        let holding = Holding { access: Access::Open, used_from: None };
        assert_eq!(judge(Current, own, None, holding), Refuse);
    }
}
