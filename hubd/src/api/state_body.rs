//! The body of an answer with the state of hosts.
//!
//! In: lines as they are made. Out: bytes, as fast as the client takes them; the next hosts are read when it took the last
//! ones. What fails on the way ends the connection: a document without its last line is known as cut off.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use holdfast_protocol::json::chain;
use hyper::body::{Body, Frame};
use tokio::sync::OwnedSemaphorePermit;

use crate::snapshots::{SnapshotError, StateLines};

type Reading = Pin<Box<dyn Future<Output = (StateLines, Result<Option<String>, SnapshotError>)> + Send>>;

pub(super) struct StateBody {
    first: Option<String>,
    reading: Option<Reading>,
    /// Free again when the body ends, however it ends.
    _slot: OwnedSemaphorePermit,
}

fn read(mut lines: StateLines) -> Reading {
    Box::pin(async move {
        let next = lines.next_lines().await;
        (lines, next)
    })
}

impl StateBody {
    pub(super) fn new(first: Option<String>, lines: StateLines, slot: OwnedSemaphorePermit) -> Self {
        Self { first, reading: Some(read(lines)), _slot: slot }
    }
}

fn frame(text: String) -> Frame<Bytes> {
    Frame::data(Bytes::from(text))
}

impl Body for StateBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(frame(first))));
        }
        let Some(reading) = &mut this.reading else { return Poll::Ready(None) };
        let (lines, next) = ready!(reading.as_mut().poll(context));
        this.reading = None;
        match next {
            Ok(None) => Poll::Ready(None),
            Ok(Some(text)) => {
                this.reading = Some(read(lines));
                Poll::Ready(Some(Ok(frame(text))))
            }
            Err(error) => {
                tracing::error!(action = "read_state", result = "failed", error = %chain(&error));
                Poll::Ready(Some(Err(io::Error::other("the snapshot of state could not be read to its end"))))
            }
        }
    }
}
