//! Compression of kept snapshots, line by line.

use std::io::{self, BufRead as _, BufReader, Cursor, Read as _, Write as _};

use holdfast_protocol::state::document::LINE_BYTES_MAX;
use zstd::stream::{read::Decoder, write::Encoder};

/// A fast level: a day's document of a thousand hosts takes about a second.
const LEVEL: i32 = 3;

/// Compresses lines.
pub struct Packer {
    encoder: Encoder<'static, Vec<u8>>,
    bytes: u64,
}

impl Packer {
    /// # Errors
    /// When there is no memory for it.
    pub fn new() -> io::Result<Self> {
        Ok(Self { encoder: Encoder::new(Vec::new(), LEVEL)?, bytes: 0 })
    }

    /// # Errors
    /// As [`Packer::new`].
    pub fn push(&mut self, text: &str) -> io::Result<()> {
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        self.encoder.write_all(text.as_bytes())
    }

    /// How many bytes there are so far, compressed; the last ones may still be counted later.
    #[must_use]
    pub fn packed_bytes(&self) -> u64 {
        self.encoder.get_ref().len() as u64
    }

    /// The compressed bytes, and how many there were before.
    ///
    /// # Errors
    /// As [`Packer::new`].
    pub fn end(self) -> io::Result<(Vec<u8>, u64)> {
        Ok((self.encoder.finish()?, self.bytes))
    }
}

/// Gives compressed lines out again.
pub struct Unpacker(BufReader<Decoder<'static, BufReader<Cursor<Vec<u8>>>>>);

impl Unpacker {
    /// # Errors
    /// When the bytes are not compressed.
    pub fn new(packed: Vec<u8>) -> io::Result<Self> {
        Ok(Self(BufReader::new(Decoder::new(Cursor::new(packed))?)))
    }

    /// The next line without its end; none after the last one.
    ///
    /// # Errors
    /// When the bytes are not what was compressed, or a line is longer than any.
    pub fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let most = LINE_BYTES_MAX as u64 + 1;
        self.0.by_ref().take(most).read_until(b'\n', &mut line)?;
        if line.pop_if(|last| *last == b'\n').is_some() {
            return Ok(Some(line));
        }
        if line.is_empty() { Ok(None) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_and_a_cut_is_found() {
        let mut packer = Packer::new().unwrap();
        packer.push("one\ntwo\n").unwrap();
        packer.push("three\n").unwrap();
        let (packed, bytes) = packer.end().unwrap();
        assert_eq!(bytes, 14);
        let mut unpacker = Unpacker::new(packed.clone()).unwrap();
        let lines: Vec<_> = std::iter::from_fn(|| unpacker.line().unwrap()).collect();
        assert_eq!(lines, [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]);
        let mut cut = Unpacker::new(packed[..packed.len() - 3].to_vec()).unwrap();
        assert!((0..4).any(|_| cut.line().is_err()));
        let mut packer = Packer::new().unwrap();
        packer.push("no end").unwrap();
        assert!(Unpacker::new(packer.end().unwrap().0).unwrap().line().is_err());
    }
}
