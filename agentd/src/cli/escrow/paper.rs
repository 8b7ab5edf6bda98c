//! A sheet to print: a file in memory, there while it is printed, then wiped and taken away.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use holdfast_recovery::locked::Locked;
use holdfast_recovery::sheet::Sheet;
use rustix::fs::fstatfs;

use super::EscrowCommandError;
use crate::cli::terminal::{Line, Terminal};
use crate::cli::typing::TypingFailed;

/// By the kernel's `magic.h`: tmpfs and ramfs.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// A place for a sheet: an empty file in memory. Taken away when this is dropped.
pub struct Paper {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Paper {
    /// Makes the file, for its owner alone.
    ///
    /// # Errors
    /// Where it is there already, or would lie on a disk.
    pub fn place(path: &Path) -> Result<Self, EscrowCommandError> {
        let failed = |source| EscrowCommandError::Sheet { path: path.to_owned(), source };
        let file = File::options().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let paper = Self { path: path.to_owned(), file, length: 0 };
        let found = fstatfs(&paper.file).map_err(|error| failed(error.into()))?.f_type;
        if IN_MEMORY.contains(&found) { Ok(paper) } else { Err(EscrowCommandError::OnDisk(path.to_owned())) }
    }

    /// Fills it, and waits until it was printed.
    ///
    /// # Errors
    /// [`EscrowCommandError`]; the file is taken away then.
    pub fn print(mut self, sheet: &Sheet<'_>, terminal: &mut Terminal) -> Result<Self, EscrowCommandError> {
        let path = self.path.clone();
        let failed = |source| EscrowCommandError::Sheet { path: path.clone(), source };
        if self.path.extension().is_some_and(|end| end == "txt") {
            self.fill(sheet.to_text()?.as_bytes()).map_err(failed)?;
        } else {
            self.fill(&sheet.to_pdf()?).map_err(failed)?;
        }
        let says = format!(
            "The sheet is {}, for you alone, and it is taken away when this ends. Print it now.\n\
             Enter when you hold the paper, Ctrl-C to throw it away: ",
            self.path.display()
        );
        terminal.say(&says).map_err(TypingFailed::Terminal)?;
        let mut nothing = Locked::with_capacity(8192).map_err(TypingFailed::Terminal)?;
        match terminal.line(&mut nothing).map_err(TypingFailed::Terminal)? {
            Line::Ended => Err(EscrowCommandError::NotBack),
            Line::Empty | Line::Typed => Ok(self),
        }
    }

    fn fill(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.length = bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn wipe(&mut self) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        let zeros = [0_u8; 4096];
        let mut left = self.length;
        while left > 0 {
            let piece = left.min(zeros.len() as u64);
            self.file
                .write_all(zeros.get(..usize::try_from(piece).unwrap_or(zeros.len())).unwrap_or(&zeros))?;
            left -= piece;
        }
        std::fs::remove_file(&self.path)
    }
}

impl Drop for Paper {
    fn drop(&mut self) {
        if let Err(error) = self.wipe() {
            eprintln!(
                "agentd: the sheet {} could not be taken away ({error}): remove it",
                self.path.display()
            );
        }
    }
}
