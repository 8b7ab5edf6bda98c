//! The body of an answer: whole, or cut on purpose.
//!
//! A cut body gives its first half and then fails, so that the connection ends before all that was promised has come.
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// A body in at most one piece.
#[derive(Debug)]
pub struct Body {
    piece: Option<Bytes>,
    end: End,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    Cut,
    Over,
}

impl Body {
    /// All of it.
    #[must_use]
    pub fn whole(bytes: Bytes) -> Self {
        Self { piece: (!bytes.is_empty()).then_some(bytes), end: End::Whole }
    }

    /// The first half of it.
    #[must_use]
    pub fn cut(bytes: &Bytes) -> Self {
        Self { piece: Some(bytes.slice(..bytes.len() / 2)), end: End::Cut }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(piece) = self.piece.take() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if self.end == End::Cut {
            self.end = End::Over;
            return Poll::Ready(Some(Err(io::Error::other("the answer is cut on purpose"))));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_none() && self.end != End::Cut
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.piece, self.end) {
            (piece, End::Whole) => SizeHint::with_exact(piece.as_ref().map_or(0, |piece| piece.len() as u64)),
            _ => SizeHint::default(),
        }
    }
}
