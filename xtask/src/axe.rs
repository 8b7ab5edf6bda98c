//! axe-core, which judges whether a page is accessible.
//!
//! In: one version from npm, held to a digest. Out: its script, kept for the machine. Tests run it inside the browser; it
//! is linked into nothing and shipped with nothing (its licence is MPL-2.0).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::workspace::{cache, must, program};

const VERSION: &str = "4.14.1";

/// SHA-256 of the package.
const DIGEST: &str = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745";

/// The kept script, or a new one.
pub fn ready() -> Result<PathBuf> {
    let kept = cache()?.join("tools").join(format!("axe-core-{VERSION}"));
    let script = kept.join("axe.min.js");
    if script.is_file() {
        return Ok(script);
    }
    println!("fetching axe-core {VERSION} for this machine …");
    let folder = tempfile::tempdir().context("cannot make a folder for axe-core")?;
    fetch(folder.path()).with_context(|| format!("axe-core {VERSION} was not fetched"))?;
    std::fs::create_dir_all(&kept).with_context(|| format!("cannot make {}", kept.display()))?;
    // By a name of its own first: half a script would be taken for one by the next run.
    let unfinished = kept.join(format!("unfinished.{}", std::process::id()));
    std::fs::copy(folder.path().join("package/axe.min.js"), &unfinished).context("it has no axe.min.js")?;
    std::fs::rename(&unfinished, &script).with_context(|| format!("cannot keep {}", script.display()))?;
    Ok(script)
}

/// Fetches the package into a folder and unpacks it there, once its digest is right.
fn fetch(folder: &Path) -> Result<()> {
    let mut pack = program("npm");
    pack.current_dir(folder).args(["pack", "--silent", "--ignore-scripts", &format!("axe-core@{VERSION}")]);
    must(&mut pack)?;
    let archive = folder.join(format!("axe-core-{VERSION}.tgz"));
    let bytes = std::fs::read(&archive).context("npm wrote no archive")?;
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(
        digest == DIGEST,
        "the archive has the digest {digest}, and {DIGEST} is expected: nothing was unpacked"
    );
    must(program("tar").current_dir(folder).arg("-xzf").arg(&archive).arg("package/axe.min.js"))
}
