//! The frame of `.tar.lzo`, with stored blocks.
//!
//! A stored block is one that did not become smaller; every `lzop` can read such a file. So archives of this form can be
//! made and read back without the compressor itself. A block that really is compressed is refused by name.

use std::io::{self, Read, Write};

const MAGIC: [u8; 9] = [0x89, b'L', b'Z', b'O', 0, 0x0d, 0x0a, 0x1a, 0x0a];
/// Program version 1.03, library 2.08, readable from 0.94 on, LZO1X-1 at level 3; no name, no time.
const HEADER: [u8; 25] =
    [0x10, 0x30, 0x20, 0x80, 0x09, 0x40, 1, 3, 0, 0, 0, 1, 0, 0, 0x81, 0xa4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// The only flag: a checksum over the plain bytes of each block.
const FLAGS: u32 = 1;
/// What `lzop` itself uses.
const BLOCK_BYTES: usize = 256 * 1024;

/// Writes the frame.
pub(super) struct LzopWriter<W: Write> {
    inner: W,
    block: Vec<u8>,
}

impl<W: Write> LzopWriter<W> {
    pub(super) fn new(mut inner: W) -> io::Result<Self> {
        inner.write_all(&MAGIC)?;
        inner.write_all(&HEADER)?;
        inner.write_all(&adler32(&HEADER).to_be_bytes())?;
        Ok(Self { inner, block: Vec::with_capacity(BLOCK_BYTES) })
    }

    /// Writes the rest and the end mark.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.write_block()?;
        self.inner.write_all(&[0; 4])?;
        Ok(self.inner)
    }

    fn write_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(self.block.len()).map_err(io::Error::other)?.to_be_bytes();
        self.inner.write_all(&length)?;
        self.inner.write_all(&length)?;
        self.inner.write_all(&adler32(&self.block).to_be_bytes())?;
        self.inner.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }
}

impl<W: Write> Write for LzopWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = BLOCK_BYTES - self.block.len();
        let taken = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.block.extend_from_slice(taken);
        if self.block.len() == BLOCK_BYTES {
            self.write_block()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Reads the frame.
pub(super) struct LzopReader<R: Read> {
    inner: R,
    block: io::Cursor<Vec<u8>>,
    ended: bool,
}

impl<R: Read> LzopReader<R> {
    pub(super) fn new(mut inner: R) -> io::Result<Self> {
        let mut magic = [0; MAGIC.len()];
        inner.read_exact(&mut magic)?;
        let mut header = [0; HEADER.len()];
        inner.read_exact(&mut header)?;
        let checksum = number(&mut inner)?;
        if magic != MAGIC || header != HEADER || checksum != adler32(&header) {
            return Err(damaged("its head is not one that this simulator writes"));
        }
        debug_assert_eq!(header.get(8..12), Some(FLAGS.to_be_bytes().as_slice()));
        Ok(Self { inner, block: io::Cursor::new(Vec::new()), ended: false })
    }

    fn next_block(&mut self) -> io::Result<()> {
        let plain = number(&mut self.inner)?;
        if plain == 0 {
            self.ended = true;
            return Ok(());
        }
        let (stored, checksum) = (number(&mut self.inner)?, number(&mut self.inner)?);
        if stored != plain {
            return Err(damaged("a block is compressed, which this simulator does not read"));
        }
        let length = usize::try_from(plain).map_err(io::Error::other)?;
        if length > BLOCK_BYTES {
            return Err(damaged("a block is too large"));
        }
        let mut block = vec![0; length];
        self.inner.read_exact(&mut block)?;
        if adler32(&block) != checksum {
            return Err(damaged("the checksum of a block is wrong"));
        }
        self.block = io::Cursor::new(block);
        Ok(())
    }
}

impl<R: Read> Read for LzopReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.block.read(buffer)?;
            if count > 0 || self.ended || buffer.is_empty() {
                return Ok(count);
            }
            self.next_block()?;
        }
    }
}

fn number(inner: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    inner.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("lzop: {why}"))
}

/// RFC 1950, part 8.2.
fn adler32(bytes: &[u8]) -> u32 {
    const BASE: u32 = 65_521;
    /// The sums stay below 2^32 for that many bytes.
    const RUN: usize = 5552;
    let (mut a, mut b) = (1_u32, 0_u32);
    for run in bytes.chunks(RUN) {
        for byte in run {
            a += u32::from(*byte);
            b += a;
        }
        a %= BASE;
        b %= BASE;
    }
    (b << 16) | a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
    }

    #[test]
    fn what_is_written_is_read_and_damage_is_noticed() {
        let plain: Vec<u8> = (0..600_000_u32).map(|n| u8::try_from(n % 251).expect("small")).collect();
        let mut writer = LzopWriter::new(Vec::new()).expect("begun");
        writer.write_all(&plain).expect("written");
        let framed = writer.finish().expect("finished");
        let mut read = Vec::new();
        LzopReader::new(framed.as_slice()).expect("begun").read_to_end(&mut read).expect("read");
        assert_eq!(read, plain);
        let mut broken = framed.clone();
        broken[100_000] ^= 1;
        let error = LzopReader::new(broken.as_slice()).expect("begun").read_to_end(&mut Vec::new());
        assert_eq!(error.expect_err("damaged").kind(), io::ErrorKind::InvalidData);
        let cut = &framed[..framed.len() / 2];
        let error = LzopReader::new(cut).expect("begun").read_to_end(&mut Vec::new());
        assert_eq!(error.expect_err("cut").kind(), io::ErrorKind::UnexpectedEof);
    }
}
