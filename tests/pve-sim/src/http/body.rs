//! The body of an answer: whole, or cut on purpose.
//!
//! A cut body yields its first half and then fails, so that the connection ends before the promised length was sent.
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// How often a cut body is polled before it fails; the first half is sent in between.
const LOOKS: u8 = 16;

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
    /// Waits, so that the first half gets onto the wire.
    Lingers(u8),
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
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(piece) = self.piece.take() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if self.end == End::Cut {
            self.end = End::Lingers(LOOKS);
        }
        if let End::Lingers(looks) = self.end {
            if looks > 0 {
                self.end = End::Lingers(looks - 1);
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.end = End::Over;
            return Poll::Ready(Some(Err(io::Error::other("the answer is cut on purpose"))));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_none() && matches!(self.end, End::Whole | End::Over)
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.piece, self.end) {
            (piece, End::Whole) => SizeHint::with_exact(piece.as_ref().map_or(0, |piece| piece.len() as u64)),
            _ => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use hyper::body::Body as _;

    use super::*;

    #[test]
    fn a_cut_body_gives_half_and_then_fails() {
        let mut body = Body::cut(&Bytes::from_static(b"12345678"));
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) else {
            panic!("no first half");
        };
        assert_eq!(frame.into_data().ok().as_deref(), Some(&b"1234"[..]));
        assert!(!body.is_end_stream());
        let mut looks = 0;
        while Pin::new(&mut body).poll_frame(&mut context).is_pending() {
            looks += 1;
        }
        assert_eq!(looks, LOOKS);
        assert!(body.is_end_stream());
    }
}
