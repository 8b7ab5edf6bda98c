//! A part of a file as the body of an answer.
//!
//! In: an open file, the part, and the host's slot. Out: its bytes, as fast as the host takes them, one chunk in memory.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::fs::File;
use tokio::io::{AsyncRead as _, AsyncSeekExt as _, ReadBuf};

use super::downloads::DownloadSlot;
use crate::domain::byte_range::ByteRange;

/// How much is read at once.
const CHUNK_BYTES: usize = 64 * 1024;

pub(super) struct FileBody {
    file: File,
    /// Bytes that are still to be sent.
    rest: u64,
    buffer: Vec<u8>,
    /// Free again when the body ends, however it ends.
    _slot: DownloadSlot,
}

impl FileBody {
    pub(super) async fn new(file: std::fs::File, part: ByteRange, slot: DownloadSlot) -> io::Result<Self> {
        let mut file = File::from_std(file);
        file.seek(io::SeekFrom::Start(part.first)).await?;
        Ok(Self { file, rest: part.length(), buffer: vec![0; CHUNK_BYTES], _slot: slot })
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        if this.rest == 0 {
            return Poll::Ready(None);
        }
        let most = usize::try_from(this.rest).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        let mut chunk = ReadBuf::new(this.buffer.get_mut(..most).unwrap_or_default());
        ready!(Pin::new(&mut this.file).poll_read(context, &mut chunk))?;
        if chunk.filled().is_empty() {
            // The length was announced: an answer that ends early must not look whole.
            return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
        }
        this.rest -= chunk.filled().len() as u64;
        Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(chunk.filled())))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest)
    }
}
