//! Whether an offered desired document is taken, and whether a host is told of it now.
//!
//! In: what is current, what the operator saw (`If-Match`), what is offered; or what a host holds and refused. Out: a
//! verdict. The law of generations itself is [`holdfast_protocol::generation`], the same on both sides. Deliberately
//! absent: the documents.

use std::str::FromStr;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::generation::{self, Generation, GenerationError, JUMP_MAX, Numbered, Offer};

/// What the operator saw before they wrote: `If-Match: "7"`, and `"0"` where there was nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IfMatch(pub Generation);

/// An `If-Match` that names no generation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "If-Match names no generation: send the ETag of the document you changed, such as \"7\", or \"0\" for the first"
)]
pub struct IfMatchError;

impl FromStr for IfMatch {
    type Err = IfMatchError;
    fn from_str(text: &str) -> Result<Self, IfMatchError> {
        let number = text.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let number = number.and_then(|digits| digits.parse().ok()).ok_or(IfMatchError)?;
        Ok(Self(Generation::new(number)))
    }
}

/// Why a document is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// Somebody else wrote in between.
    #[error(
        "the current document is generation {current}, not {seen}: read it, redo the change on it, and put that"
    )]
    Moved {
        /// What is current.
        current: Generation,
        /// What the operator saw.
        seen: Generation,
    },
    /// Against the law of generations.
    #[error(transparent)]
    Law(#[from] GenerationError),
    /// The host holds a newer one than the hub: the hub's history was lost or set back.
    #[error(
        "the host holds generation {held} already: offer {held} + 1 or more, or it would refuse the document"
    )]
    Behind {
        /// What the host holds.
        held: Generation,
    },
}

impl PutError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Moved { .. } => ErrorCode::PreconditionFailed,
            Self::Law(law) => law.code(),
            Self::Behind { .. } => ErrorCode::StaleGeneration,
        }
    }
}

/// Judges an offered document.
///
/// # Errors
/// [`PutError`]; the current document stays.
pub fn judge_put(
    current: Option<Numbered>,
    held: Generation,
    seen: IfMatch,
    offered: Numbered,
) -> Result<Offer, PutError> {
    let number = current.map_or(Generation::NONE, |current| current.generation);
    if seen.0 != number {
        return Err(PutError::Moved { current: number, seen: seen.0 });
    }
    // A host may be ahead of a hub that was restored from an older copy; its own word then sets the measure.
    if held > number {
        if offered.generation <= held {
            return Err(PutError::Behind { held });
        }
        if offered.generation.number() - held.number() > JUMP_MAX {
            return Err(GenerationError::Jump { offered: offered.generation, held }.into());
        }
        return Ok(Offer::Newer);
    }
    Ok(generation::judge(current, offered)?)
}

/// Whether a host is told of a document at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Nothing is new to it.
    Nothing,
    /// It has what is newest and refused it: it is told again when it asks the next time, not at once, or the two would
    /// spin.
    Again,
    /// At once.
    Now,
}

/// Judges what a host is told.
#[must_use]
pub fn judge_telling(wanted: Generation, held: Generation, refused: Option<Generation>) -> Telling {
    if wanted <= held {
        Telling::Nothing
    } else if refused == Some(wanted) {
        Telling::Again
    } else {
        Telling::Now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_protocol::generation::ContentHash;

    fn numbered(generation: u64, content: &str) -> Numbered {
        Numbered { generation: Generation::new(generation), content: ContentHash::of(content.as_bytes()) }
    }

    #[test]
    fn each_offer_against_what_is_current() {
        let seen = |n| IfMatch(Generation::new(n));
        let put = |current, held, seen, offered| {
            judge_put(current, Generation::new(held), seen, offered).map_err(|error| error.code())
        };
        let five = Some(numbered(5, "a"));
        assert_eq!(put(None, 0, seen(0), numbered(1, "a")), Ok(Offer::Newer));
        assert_eq!(put(None, 0, seen(1), numbered(1, "a")), Err(ErrorCode::PreconditionFailed));
        assert_eq!(put(five, 5, seen(4), numbered(6, "a")), Err(ErrorCode::PreconditionFailed));
        assert_eq!(put(five, 5, seen(5), numbered(6, "a")), Ok(Offer::Newer));
        assert_eq!(put(five, 5, seen(5), numbered(5, "a")), Ok(Offer::Held));
        assert_eq!(put(five, 5, seen(5), numbered(5, "b")), Err(ErrorCode::GenerationConflict));
        assert_eq!(put(five, 5, seen(5), numbered(4, "b")), Err(ErrorCode::StaleGeneration));
        assert_eq!(put(five, 5, seen(5), numbered(5000, "b")), Err(ErrorCode::GenerationJump));
        assert_eq!(put(five, 9, seen(5), numbered(6, "b")), Err(ErrorCode::StaleGeneration));
        assert_eq!(put(five, 9, seen(5), numbered(10, "b")), Ok(Offer::Newer));
        assert_eq!(put(five, 9, seen(5), numbered(u64::MAX, "b")), Err(ErrorCode::GenerationJump));
    }

    #[test]
    fn a_refused_document_is_not_pressed_on_the_host() {
        let g = Generation::new;
        assert_eq!(judge_telling(g(3), g(3), None), Telling::Nothing);
        assert_eq!(judge_telling(g(3), g(4), None), Telling::Nothing);
        assert_eq!(judge_telling(g(4), g(3), None), Telling::Now);
        assert_eq!(judge_telling(g(4), g(3), Some(g(4))), Telling::Again);
        assert_eq!(judge_telling(g(5), g(3), Some(g(4))), Telling::Now);
    }

    #[test]
    fn if_match_is_a_quoted_generation() {
        assert_eq!("\"7\"".parse(), Ok(IfMatch(Generation::new(7))));
        for bad in ["", "*", "7", "\"\"", "\"-1\"", "W/\"7\"", "\"7\", \"8\""] {
            assert_eq!(bad.parse::<IfMatch>(), Err(IfMatchError), "{bad}");
        }
    }
}
