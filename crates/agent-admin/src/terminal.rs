//! The terminal at which a recovery code is typed.
//!
//! Input goes from the kernel into locked memory: the standard library's reader would keep a copy. Ctrl-C is read as a
//! character, since the signal would end the program and leave a terminal that shows nothing. A process that opens it
//! is about to hold a code. So it protects its memory from then on: no core dump, and no other process of its user can
//! read it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use holdfast_recovery::Locked;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

const CTRL_C: u8 = 0x03;

/// The kernel never delivers a longer line at once.
const LINE_BYTES: usize = 4096;

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// With a line in it.
    Typed,
    /// With nothing in it.
    Empty,
    /// The input ended: Ctrl-C, Ctrl-D, or the terminal is gone.
    Ended,
}

/// The terminal. Typed characters are not shown as long as this lives.
pub struct Terminal {
    device: File,
    before: Termios,
}

impl Terminal {
    /// Opens it, and hides the memory of this process.
    ///
    /// # Errors
    /// When there is no terminal.
    pub fn open() -> io::Result<Self> {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        setrlimit(Resource::Core, none)?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        let device = File::options().read(true).write(true).open("/dev/tty")?;
        let before = tcgetattr(&device)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        hidden.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
        // Hidden before anything is asked, so that characters typed as the question appears are not shown either.
        tcsetattr(&device, OptionalActions::Flush, &hidden)?;
        Ok(Self { device, before })
    }

    /// The state that is needed to restore the terminal from elsewhere.
    ///
    /// # Errors
    /// Where the kernel has no room for one more open file.
    pub fn before(&self) -> io::Result<Before> {
        Ok(Before { device: self.device.try_clone()?, before: self.before.clone() })
    }

    /// Says something.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn say(&mut self, text: &str) -> io::Result<()> {
        self.device.write_all(text.as_bytes())
    }

    /// Reads one line, and appends it to the earlier input.
    ///
    /// # Errors
    /// When the terminal cannot be read, or there is no room for more.
    pub fn line(&mut self, typed: &mut Locked) -> io::Result<Line> {
        let mut bytes = Zeroizing::new([0_u8; LINE_BYTES]);
        let length = self.device.read(bytes.as_mut_slice())?;
        self.say("\n")?;
        let line = bytes.get(..length).unwrap_or_default();
        if line.is_empty() || line.contains(&CTRL_C) {
            return Ok(Line::Ended);
        }
        typed.push(line).map_err(io::Error::other)?;
        Ok(if line.trim_ascii().is_empty() { Line::Empty } else { Line::Typed })
    }
}

/// The state of the terminal before it was opened, for code that has to end this process.
pub struct Before {
    device: File,
    before: Termios,
}

impl Before {
    /// Prints a text; a failure is ignored.
    pub fn say(&self, text: &str) {
        let _ = (&self.device).write_all(text.as_bytes());
    }

    /// Gives it back.
    pub fn give_back(&self) {
        let _ = tcsetattr(&self.device, OptionalActions::Now, &self.before);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that went away needs nothing back.
        let _ = tcsetattr(&self.device, OptionalActions::Now, &self.before);
    }
}
