//! Locked memory for secrets.
//!
//! It is never swapped, left out of core dumps, not handed to a child process, and wiped when it is dropped.
//!
//! Each [`Locked`] is a mapping of its own, of a size that is fixed when it is made: as it never grows, it leaves no
//! copy behind. A machine may refuse to lock memory (a limit on it). [`SwapProtection`] reports that, and the caller
//! decides, since a person who types a code on the last machine left must not be sent away for it.

use std::fmt;
use std::io;

use memmap2::{Advice, MmapMut};
use zeroize::Zeroize;

/// Whether the kernel keeps the memory from being swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapProtection {
    /// It is locked.
    Locked,
    /// The kernel refused to lock it: it may be written to swap.
    Swappable,
}

/// More was put in than was requested when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the locked memory is full: this is a bug of this program")]
pub struct CapacityError;

/// Some bytes, of at most a fixed number.
pub struct Locked {
    map: MmapMut,
    capacity: usize,
    length: usize,
    held: SwapProtection,
}

impl Locked {
    /// Room for so many bytes.
    ///
    /// # Errors
    /// When the machine has no memory left, or a kernel without these advices.
    pub fn with_capacity(capacity: usize) -> io::Result<Self> {
        let map = MmapMut::map_anon(capacity.max(1))?;
        map.advise(Advice::DontDump)?;
        map.advise(Advice::DontFork)?;
        let held = if map.lock().is_ok() { SwapProtection::Locked } else { SwapProtection::Swappable };
        Ok(Self { map, capacity, length: 0, held })
    }

    /// Puts bytes behind those that are there.
    ///
    /// # Errors
    /// [`CapacityError`]; nothing is put there then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), CapacityError> {
        let end =
            self.length.checked_add(bytes.len()).filter(|end| *end <= self.capacity).ok_or(CapacityError)?;
        self.map.get_mut(self.length..end).ok_or(CapacityError)?.copy_from_slice(bytes);
        self.length = end;
        Ok(())
    }

    /// The content.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.map.get(..self.length).unwrap_or_default()
    }

    /// The content as text; `None` where it is none.
    #[must_use]
    pub fn as_text(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Whether it can be swapped.
    #[must_use]
    pub const fn held(&self) -> SwapProtection {
        self.held
    }

    /// Wipes the last bytes away, down to so many.
    pub fn truncate(&mut self, length: usize) {
        if let Some(rest) = self.map.get_mut(length..self.length) {
            rest.zeroize();
            self.length = length;
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.map.as_mut().zeroize();
    }
}

impl fmt::Debug for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Locked(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags that the kernel keeps of the mapping that holds an address.
    fn flags(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let ends = range.and_then(|(from, to)| {
                Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
            });
            if let Some((from, to)) = ends {
                inside = (from..to).contains(&address);
            } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| inside) {
                return format!("{flags} ");
            }
        }
        panic!("no mapping holds it");
    }

    #[test]
    fn the_mapping_is_locked_and_excluded_from_dumps_and_forks() {
        let mut secret = Locked::with_capacity(32).unwrap();
        secret.push(b"abacus").unwrap();
        assert_eq!(secret.held(), SwapProtection::Locked);
        let flags = flags(secret.as_bytes().as_ptr().addr());
        for flag in [" lo ", " dd ", " dc "] {
            assert!(flags.contains(flag), "{flag} of {flags}");
        }
    }

    #[test]
    fn capacity_is_a_limit_and_debug_hides_the_content() {
        let mut secret = Locked::with_capacity(8).unwrap();
        secret.push(b"abacus").unwrap();
        assert_eq!(secret.push(b"zoo"), Err(CapacityError));
        assert_eq!(secret.as_text(), "abacus");
        secret.truncate(2);
        assert_eq!((secret.as_text(), secret.map.get(..6).unwrap()), ("ab", b"ab\0\0\0\0".as_slice()));
        assert_eq!(format!("{secret:?}"), "Locked(…)");
    }
}
