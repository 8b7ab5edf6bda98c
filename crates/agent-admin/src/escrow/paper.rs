//! The printable recovery sheet, as a file in memory.
//!
//! It exists while it is printed, and is wiped and removed afterwards.
//!
//! The process that holds the file also holds a lock on it. So a sheet that a killed process left is distinguished from
//! one that another process is printing.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_recovery::locked::Locked;
use holdfast_recovery::sheet::Sheet;
use holdfast_recovery::sheet::text;
use rustix::fs::{FileType, FlockOperation, OFlags, flock, fstat, fstatfs};

use super::EscrowCommandError;
use crate::code_prompt::TypingFailed;
use crate::terminal::{Line, Terminal};

/// By the kernel's `magic.h`: tmpfs and ramfs.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Where sheets are usually made, and searched for.
const SHARED_MEMORY: &str = "/dev/shm";

/// The most files that are checked for sheets of a killed process.
const LOOKED_AT_MAX: usize = 4096;

/// A sheet is recognised within so many bytes from its beginning, or, as a PDF, from its end.
const KNOWN_BY: u64 = 4096;

/// A place for a sheet: an empty file in memory. Removed when this is dropped.
pub struct Paper {
    path: PathBuf,
    sheet: SharedSheet,
}

/// The file, shared by the two that may remove it first: its command, or a signal.
#[derive(Clone)]
pub struct SharedSheet(Arc<Mutex<Option<SheetFile>>>);

struct SheetFile {
    path: PathBuf,
    file: File,
}

impl Paper {
    /// Makes the file, for its owner alone. A file that a killed process left there is removed first.
    ///
    /// # Errors
    /// Where something else is there, or the file would be stored on a disk.
    pub fn place(path: &Path) -> Result<Self, EscrowCommandError> {
        let failed = |source| EscrowCommandError::Sheet { path: path.to_owned(), source };
        clear(path)?;
        let file =
            File::options().read(true).write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let sheet = SharedSheet::of(SheetFile { path: path.to_owned(), file });
        let paper = Self { path: path.to_owned(), sheet };
        let held = paper.sheet.lock();
        let file =
            held.as_ref().map(|sheet| &sheet.file).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| failed(error.into()))?;
        let found = fstatfs(file).map_err(|error| failed(error.into()))?.f_type;
        drop(held);
        if IN_MEMORY.contains(&found) { Ok(paper) } else { Err(EscrowCommandError::OnDisk(path.to_owned())) }
    }

    /// The file, shared so that a signal can remove it too.
    pub fn sheet(&self) -> SharedSheet {
        self.sheet.clone()
    }

    /// Fills it, and waits until it was printed.
    ///
    /// # Errors
    /// [`EscrowCommandError`]; the file is removed then.
    pub fn print(self, sheet: &Sheet<'_>, terminal: &mut Terminal) -> Result<Self, EscrowCommandError> {
        let failed = |source| EscrowCommandError::Sheet { path: self.path.clone(), source };
        if self.path.extension().is_some_and(|end| end == "txt") {
            self.sheet.fill(sheet.to_text()?.as_bytes()).map_err(failed)?;
        } else {
            self.sheet.fill(&sheet.to_pdf()?).map_err(failed)?;
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
}

impl Drop for Paper {
    fn drop(&mut self) {
        self.sheet.take_away();
    }
}

impl SharedSheet {
    fn of(file: SheetFile) -> Self {
        Self(Arc::new(Mutex::new(Some(file))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<SheetFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill(&self, bytes: &[u8]) -> io::Result<()> {
        match self.lock().as_mut() {
            Some(sheet) => sheet.file.write_all(bytes),
            // A signal was faster.
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Wipes it and removes it, once.
    pub fn take_away(&self) {
        let Some(mut sheet) = self.lock().take() else { return };
        if let Err(error) = sheet.wipe() {
            eprintln!(
                "agentd: the sheet {} could not be taken away ({error}): remove it",
                sheet.path.display()
            );
        }
    }
}

impl SheetFile {
    fn wipe(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        let zeros = [0_u8; 4096];
        let mut left = self.file.metadata()?.len();
        while left > 0 {
            let piece = usize::try_from(left).unwrap_or(zeros.len()).min(zeros.len());
            self.file.write_all(zeros.get(..piece).unwrap_or(&zeros))?;
            left -= piece as u64;
        }
        std::fs::remove_file(&self.path)
    }
}

/// The state of the place for a sheet.
enum SheetFileState {
    Free,
    /// A sheet that no process holds any more.
    Left(SheetFile),
    /// An empty file: a sheet, if a sheet was expected there.
    Empty(SheetFile),
    /// A sheet that another process prints.
    Held,
    Other,
}

/// Makes room: sheets that a killed process left at this place and in its folder are wiped and removed.
fn clear(path: &Path) -> Result<(), EscrowCommandError> {
    let failed = |source| EscrowCommandError::Sheet { path: path.to_owned(), source };
    match look(path).map_err(failed)? {
        SheetFileState::Free => {}
        SheetFileState::Left(mut sheet) | SheetFileState::Empty(mut sheet) => sheet.wipe().map_err(failed)?,
        SheetFileState::Held => return Err(EscrowCommandError::Busy(path.to_owned())),
        SheetFileState::Other => return Err(EscrowCommandError::Taken(path.to_owned())),
    }
    path.parent().map_or(Ok(()), clear_folder)
}

/// Removes sheets that a killed process left in shared memory.
///
/// # Errors
/// Where a sheet is there and cannot be removed.
pub fn clear_left() -> Result<(), EscrowCommandError> {
    clear_folder(Path::new(SHARED_MEMORY))
}

fn clear_folder(folder: &Path) -> Result<(), EscrowCommandError> {
    // A file that cannot be checked does not belong to this command.
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.take(LOOKED_AT_MAX).flatten() {
        if let Ok(SheetFileState::Left(mut sheet)) = look(&entry.path()) {
            sheet.wipe().map_err(|source| EscrowCommandError::Sheet { path: entry.path(), source })?;
        }
    }
    Ok(())
}

/// Checks one place. A sheet is a file of our own user in memory, unreadable for others, with one name, and its content
/// marks it as a sheet.
fn look(path: &Path) -> io::Result<SheetFileState> {
    // No link is followed and the open does not block: other users may write to such folders.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let opened = File::options().read(true).write(true).custom_flags(flags.cast_signed()).open(path);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SheetFileState::Free),
        Err(_) => return Ok(SheetFileState::Other),
    };
    let seen = fstat(&file)?;
    let own = FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile
        && seen.st_uid == rustix::process::geteuid().as_raw()
        && seen.st_mode & 0o077 == 0
        && seen.st_nlink == 1;
    if !own || !IN_MEMORY.contains(&fstatfs(&file)?.f_type) {
        return Ok(SheetFileState::Other);
    }
    let stands: fn(SheetFile) -> SheetFileState = match (seen.st_size, is_sheet(&mut file)?) {
        (0, _) => SheetFileState::Empty,
        (_, true) => SheetFileState::Left,
        (_, false) => return Ok(SheetFileState::Other),
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(stands(SheetFile { path: path.to_owned(), file })),
        Err(_) => Ok(SheetFileState::Held),
    }
}

/// Whether the content of a file marks it as our sheet.
fn is_sheet(file: &mut File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut piece = |from: u64| -> io::Result<Vec<u8>> {
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        io::Read::by_ref(file).take(KNOWN_BY).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let begin = piece(0)?;
    let has = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).any(|part| part == what);
    if begin.starts_with(format!("{} {}\n", text::TITLE, text::SUBTITLE).as_bytes()) {
        return Ok(true);
    }
    if !begin.starts_with(b"%PDF-") {
        return Ok(false);
    }
    let end = piece(length.saturating_sub(KNOWN_BY))?;
    let producer = b"/Producer (Holdfast)";
    Ok(has(&begin, producer) || has(&end, producer))
}
