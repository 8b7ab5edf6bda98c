//! An export file, read line by line.
//!
//! In: bytes of whatever origin. Out: the header, files and rows, each checked for its form before it is used, and the
//! trailer, whose digest must be that of all lines before. Deliberately absent: the comparison of rows, which is the import's.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};

use sha2::{Digest as _, Sha256};

use super::format::{AnyHeader, FORMAT, LINE_BYTES_MAX, Line, Trailer};
use super::{FolderFile, Header, ImportError, Row, Table};

/// A window of more memory than this is refused; ours has 2 MiB.
const WINDOW_LOG_MAX: u32 = 27;

/// A file, read up to some line.
pub struct ExportReader {
    lines: BufReader<zstd::Decoder<'static, BufReader<File>>>,
    hash: Sha256,
    number: u64,
    line: Vec<u8>,
    /// Read, and not yet used.
    lookahead: Lookahead,
    header: Header,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lookahead {
    Empty,
    Line,
}

/// What is known of a line.
enum LineRead {
    Whole,
    End,
}

impl ExportReader {
    /// Reads the header.
    ///
    /// # Errors
    /// [`ImportError`].
    pub fn open(file: File) -> Result<Self, ImportError> {
        let mut decoder = zstd::Decoder::new(file).map_err(ImportError::Read)?;
        decoder.window_log_max(WINDOW_LOG_MAX).map_err(ImportError::Read)?;
        let mut lines = BufReader::new(decoder);
        let (mut line, mut hash) = (Vec::new(), Sha256::new());
        match read_line(&mut lines, &mut line) {
            Ok(LineRead::Whole) => {}
            Ok(LineRead::End) => return Err(ImportError::Cut),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(ImportError::Cut),
            Err(error) => return Err(ImportError::Foreign(error.into())),
        }
        let any: AnyHeader =
            serde_json::from_slice(&line).map_err(|error| ImportError::Foreign(error.into()))?;
        if any.format > FORMAT {
            return Err(ImportError::Newer { hub: any.hub });
        }
        let header = serde_json::from_slice(&line).map_err(|error| ImportError::line(1, error))?;
        hash.update(&line);
        Ok(Self { lines, hash, number: 1, line, lookahead: Lookahead::Empty, header })
    }

    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The files of the folder that stand before the rows; none in an export of rows alone.
    ///
    /// # Errors
    /// [`ImportError`].
    pub fn files(&mut self) -> Result<Vec<FolderFile>, ImportError> {
        let mut files = Vec::new();
        loop {
            self.advance()?;
            match self.parsed()? {
                Line::File(file) if files.len() < super::folder::FILES_MAX => {
                    self.used();
                    files.push(file);
                }
                Line::File(_) => return Err(ImportError::line(self.number, "there are too many files")),
                Line::Table(_) | Line::End(_) => return Ok(files),
            }
        }
    }

    /// The line that begins a table.
    pub(super) fn table(&mut self, table: &Table) -> Result<(), ImportError> {
        self.advance()?;
        match self.parsed()? {
            Line::Table(name) if name == table.name => {
                self.used();
                Ok(())
            }
            Line::Table(_) | Line::File(_) | Line::End(_) => {
                Err(ImportError::line(self.number, format!("table {} must begin here", table.name)))
            }
        }
    }

    /// The next row of the table; none where another line follows.
    pub(super) fn row(&mut self, table: &Table) -> Result<Option<Row>, ImportError> {
        self.advance()?;
        if self.line.first() != Some(&b'[') {
            return Ok(None);
        }
        let row: Row =
            serde_json::from_slice(&self.line).map_err(|error| ImportError::line(self.number, error))?;
        let fits = row.len() == table.columns.len()
            && row.iter().zip(&table.columns).all(|(value, column)| value.is_of(column.kind));
        if !fits {
            return Err(ImportError::line(self.number, format!("it is no row of table {}", table.name)));
        }
        self.used();
        Ok(Some(row))
    }

    /// The trailer, behind which nothing may follow.
    pub(super) fn end(&mut self) -> Result<Trailer, ImportError> {
        self.advance()?;
        let Line::End(trailer) = self.parsed()? else {
            return Err(ImportError::line(self.number, "the trailer must be here"));
        };
        if hex::encode(self.hash.clone().finalize()) != trailer.sha256 {
            return Err(ImportError::Changed { what: "the whole file".to_owned() });
        }
        match read_line(&mut self.lines, &mut self.line).map_err(ImportError::Read)? {
            LineRead::End => Ok(trailer),
            LineRead::Whole => Err(ImportError::line(self.number + 1, "nothing may follow the trailer")),
        }
    }

    /// Reads a line where none waits.
    fn advance(&mut self) -> Result<(), ImportError> {
        if self.lookahead == Lookahead::Line {
            return Ok(());
        }
        match read_line(&mut self.lines, &mut self.line) {
            Ok(LineRead::Whole) => {}
            Ok(LineRead::End) => return Err(ImportError::Cut),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(ImportError::Cut),
            Err(error) => return Err(ImportError::Read(error)),
        }
        self.number += 1;
        self.lookahead = Lookahead::Line;
        Ok(())
    }

    fn parsed(&self) -> Result<Line, ImportError> {
        serde_json::from_slice(&self.line).map_err(|error| ImportError::line(self.number, error))
    }

    /// The line counts for the digest, and the next one is read.
    fn used(&mut self) {
        self.hash.update(&self.line);
        self.lookahead = Lookahead::Empty;
    }
}

/// A whole line with its end; one without is the end of a file that was cut.
fn read_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<LineRead> {
    line.clear();
    lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)?;
    match line.last() {
        None => Ok(LineRead::End),
        Some(b'\n') => Ok(LineRead::Whole),
        Some(_) if line.len() as u64 == LINE_BYTES_MAX => {
            Err(io::Error::new(io::ErrorKind::FileTooLarge, "a line is longer than any row"))
        }
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
