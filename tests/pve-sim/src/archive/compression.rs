//! Compressions of an archive, by file name.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};

use super::lzop::{LzopReader, LzopWriter};

/// zstd's own default, which Proxmox's `zstd --rsyncable` uses too.
const ZSTD_LEVEL: i32 = 3;

/// How an archive is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `.tar`
    Plain,
    /// `.tar.gz`
    Gzip,
    /// `.tar.zst`
    Zstd,
    /// `.tar.lzo`
    Lzo,
}

impl Compression {
    /// The form that a file's name promises, or nothing for a name that is no archive we can read.
    pub fn of_file_name(name: &str) -> Option<Self> {
        if name.ends_with(".tar") {
            Some(Self::Plain)
        } else if name.ends_with(".tar.gz") || name.ends_with(".tgz") {
            Some(Self::Gzip)
        } else if name.ends_with(".tar.zst") {
            Some(Self::Zstd)
        } else if name.ends_with(".tar.lzo") {
            Some(Self::Lzo)
        } else {
            None
        }
    }

    /// How the name of such an archive ends.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Plain => ".tar",
            Self::Gzip => ".tar.gz",
            Self::Zstd => ".tar.zst",
            Self::Lzo => ".tar.lzo",
        }
    }

    /// Wraps an archive's file so that plain tar comes out.
    pub(super) fn reader(self, file: File) -> io::Result<Box<dyn Read>> {
        let file = BufReader::new(file);
        Ok(match self {
            Self::Plain => Box::new(file),
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            Self::Zstd => Box::new(zstd::Decoder::with_buffer(file)?),
            Self::Lzo => Box::new(LzopReader::new(file)?),
        })
    }

    /// Wraps an archive's file so that plain tar can be written to it.
    pub(super) fn writer(self, file: File) -> io::Result<Compressor> {
        let file = BufWriter::new(file);
        Ok(match self {
            Self::Plain => Compressor::Plain(file),
            Self::Gzip => {
                Compressor::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default()))
            }
            Self::Zstd => {
                let mut encoder = zstd::Encoder::new(file, ZSTD_LEVEL)?;
                // The command does so by itself: a byte that changes on the disk is noticed when the archive is read.
                encoder.include_checksum(true)?;
                Compressor::Zstd(encoder)
            }
            Self::Lzo => Compressor::Lzo(LzopWriter::new(file)?),
        })
    }
}

/// A file being written in one of the forms; only `finish` makes it whole.
pub(super) enum Compressor {
    Plain(BufWriter<File>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
    Lzo(LzopWriter<BufWriter<File>>),
}

impl Compressor {
    /// Writes the trailer and everything buffered, and hands the file back for syncing.
    pub(super) fn finish(self) -> io::Result<File> {
        let buffered = match self {
            Self::Plain(buffered) => buffered,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
            Self::Lzo(encoder) => encoder.finish()?,
        };
        buffered.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

impl Write for Compressor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(inner) => inner.write(bytes),
            Self::Gzip(inner) => inner.write(bytes),
            Self::Zstd(inner) => inner.write(bytes),
            Self::Lzo(inner) => inner.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(inner) => inner.flush(),
            Self::Gzip(inner) => inner.flush(),
            Self::Zstd(inner) => inner.flush(),
            Self::Lzo(inner) => inner.flush(),
        }
    }
}
