//! Hash of this program for the hello.
//!
//! The hash is reported by this program itself. Root in the guest can replace it with another program that reports the
//! same hash.

use std::fs::File;
use std::io::Read as _;

use holdfast_protocol::job::act::Sha256Text;
use sha2::{Digest as _, Sha256};

/// Reads the program that runs, once, whole. None when the kernel does not show it.
pub fn sha256() -> Option<Sha256Text> {
    let mut program = File::open("/proc/self/exe").ok()?;
    let (mut hash, mut piece) = (Sha256::new(), vec![0; 256 * 1024]);
    loop {
        match program.read(&mut piece).ok()? {
            0 => break,
            count => hash.update(piece.get(..count)?),
        }
    }
    Sha256Text::try_from(hex::encode(hash.finalize())).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_program_knows_its_own_bytes() {
        let own = super::sha256().unwrap();
        assert_eq!(own.as_str().len(), 64);
        assert_eq!(Some(own), super::sha256());
    }
}
