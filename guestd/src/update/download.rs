//! Download of the new program: bounded, hashed, next to ours.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use holdfast_protocol::local::desired::WantedController;
use holdfast_protocol::secret::Secret;
use sha2::{Digest as _, Sha256};

use super::UpdateError;
use crate::agent::Agent;
use crate::failpoint::{Point, reached};
use crate::file;

/// Fetches it. When this returns well, the file is on the disk and is what was named.
pub async fn fetch(
    agent: &Agent,
    token: &Secret,
    wanted: &WantedController,
    to: &Path,
) -> Result<(), UpdateError> {
    // Left over from a kill. The file is made anew, so that no earlier process has it open.
    file::remove_durably(to)?;
    let open = OpenOptions::new().write(true).create_new(true).mode(0o700).open(to);
    let made = open.map_err(file::failed("make", to))?;
    // A program like ours, whatever the mask of the unit.
    made.set_permissions(Permissions::from_mode(0o755)).map_err(file::failed("set the mode of", to))?;
    let mut landing = Download { file: made, hash: Sha256::new(), left: wanted.bytes, to };
    reached(Point::FetchBegun);
    let path = format!("/v1/artifacts/{}", wanted.sha256.as_str());
    agent.fetch(token, &path, |piece| landing.take(piece)).await??;
    landing.close(wanted.sha256.as_str())?;
    reached(Point::Fetched);
    Ok(())
}

struct Download<'a> {
    file: File,
    hash: Sha256,
    left: u64,
    to: &'a Path,
}

impl Download<'_> {
    fn take(&mut self, piece: &[u8]) -> Result<(), UpdateError> {
        let long = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.left = self
            .left
            .checked_sub(long)
            .ok_or(UpdateError::OtherBytes { what: "more bytes than announced" })?;
        self.hash.update(piece);
        Ok(self.file.write_all(piece).map_err(file::failed("write", self.to))?)
    }

    fn close(self, sha256: &str) -> Result<(), UpdateError> {
        if self.left > 0 {
            return Err(UpdateError::OtherBytes { what: "fewer bytes than announced" });
        }
        if hex::encode(self.hash.finalize()) != sha256 {
            return Err(UpdateError::OtherBytes { what: "another hash than announced" });
        }
        Ok(self.file.sync_all().map_err(file::failed("sync", self.to))?)
    }
}
