//! Build of an image: archive, manifest and bill of materials.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use holdfast_protocol::golden::{
    GoldenBuild, GoldenContents, GoldenManifest, GoldenManifestSchema, GoldenPackage, MANIFEST_BYTES_MAX,
};
use holdfast_protocol::id::GoldenVersion;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::archive::Packing;
use super::base::{self, Base, BaseCache};
use super::image::{Content, Image, Kind};
use super::packed_program::ReadyProgram;
use super::publish::{self, OnConflict};
use super::recipe::Recipe;
use super::version::{Version, VersionChoice};
use super::{archive, elf, overlay, sbom, scan, tiny};

/// What to build.
pub struct Build<'a> {
    /// The folder with `recipe.toml` and `units/`.
    pub recipe: &'a Path,
    /// The controller to put in; packed with zstd when its name ends with `.zst`.
    pub guestd: &'a Path,
    /// Where the files go.
    pub out: &'a Path,
    /// Where Debian is unpacked, and kept.
    pub work: &'a Path,
    /// How much of the recipe.
    pub contents: GoldenContents,
    /// Which version it gets.
    pub version: VersionChoice,
    /// How existing files with its names are treated.
    pub existing: OnConflict,
    /// Whether a base that was kept will do.
    pub base_cache: BaseCache,
    /// As of when Debian's archives are used; none for whatever they have now.
    pub as_of: Option<Timestamp>,
    /// How hard the archive is packed.
    pub packing: Packing,
    /// When it is, in seconds since 1970: for the manifest alone.
    pub now_s: u64,
}

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// mmdebstrap fetches and unpacks Debian.
    Debian,
    /// The image is put together.
    Image,
    /// It is packed.
    Pack,
    /// The archive is searched for secrets.
    Scan,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildOutcome {
    /// A new golden.
    Built,
    /// The same bytes lie there already, under the version that is named.
    AlreadyBuilt,
}

/// What was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// Whether it is new.
    pub how: BuildOutcome,
    pub archive: PathBuf,
    pub manifest_file: PathBuf,
    /// What it says.
    pub manifest: GoldenManifest,
}

/// Builds one golden.
///
/// # Errors
/// Why nothing was built; no file has a name then that had none before.
pub fn build(order: &Build<'_>, mut at: impl FnMut(Stage)) -> Result<Built> {
    let started = Instant::now();
    let (recipe, recipe_text) = Recipe::read(order.recipe)?;
    std::fs::create_dir_all(order.out).with_context(|| format!("cannot make {}", order.out.display()))?;
    let version = Version::choose(&order.version, order.out)?;
    let epoch_s = recipe.epoch()?;
    let guestd = ReadyProgram::of(order.guestd, order.out)?;
    let made = make(order, (&recipe, guestd.path()), &mut at)?;
    at(Stage::Pack);
    let unfinished = publish::unfinished(order.out)?;
    archive::write(
        (unfinished.as_file(), order.packing),
        &recipe.pct_conf(),
        &made.image,
        (made.base.as_ref().map(|base| base.path.as_path()), epoch_s),
    )?;
    at(Stage::Scan);
    if let Some(found) = scan::scan(unfinished.path())?.first() {
        bail!("{} in the image is {}: the build or the recipe is wrong", found.path, found.what);
    }
    let sha256 = digest_of(unfinished.path())?;
    if order.existing == OnConflict::Keep
        && let Some(same) = find_existing(order.out, &sha256)?
    {
        return Ok(same);
    }
    let archive = format!("vzdump-lxc-{}-{}.tar.zst", recipe.container.vmid, version.moment()?);
    let id = version.id()?;
    let manifest = GoldenManifest {
        schema: GoldenManifestSchema::V1,
        contents: order.contents,
        sha256,
        size_bytes: unfinished.as_file().metadata()?.len(),
        recipe_sha256: recipe.digest(order.recipe, &recipe_text)?,
        guestd_sha256: digest_of(guestd.path())?,
        sbom: made.suite.is_some().then(|| format!("golden-{id}.spdx.json")),
        suite: made.suite,
        source_date_epoch: epoch_s,
        builder: format!("{} {}", env!("CARGO_PKG_VERSION"), order.packing.as_str()),
        archives_as_of: order.as_of.filter(|_| order.contents != GoldenContents::Tiny),
        received: None,
        build: GoldenBuild {
            made_at_s: order.now_s,
            seconds: started.elapsed().as_secs(),
            entries: made.image.entries.len() as u64,
            content_bytes: content_bytes(&made.image)?,
        },
        packages: made.packages,
        version: id,
        archive,
    };
    // The manifest is written last: where it exists, everything that it names exists.
    let path = publish::publish(unfinished, &manifest.archive, order.existing)?;
    if let Some(name) = &manifest.sbom {
        publish::text(order.out, name, &sbom::text(&manifest)?, order.existing)?;
    }
    let text = serde_json::to_string_pretty(&manifest)? + "\n";
    let manifest_file = publish::text(order.out, &manifest_name(&manifest.version), &text, order.existing)?;
    Ok(Built { how: BuildOutcome::Built, archive: path, manifest_file, manifest })
}

/// Makes and keeps the Debian beneath an image, where it was not kept already.
///
/// # Errors
/// When another build works in the folder, or mmdebstrap made no Debian.
pub fn fetch(recipe: &Path, contents: GoldenContents, work: &Path) -> Result<()> {
    let (recipe, _) = Recipe::read(recipe)?;
    base::debian(&recipe, (contents, None), work, BaseCache::Reuse).map(drop)
}

pub fn manifest_name(version: &GoldenVersion) -> String {
    format!("golden-{version}.json")
}

struct ImageParts {
    image: Image,
    base: Option<Base>,
    suite: Option<String>,
    packages: Vec<GoldenPackage>,
}

fn make(
    order: &Build<'_>,
    (recipe, guestd): (&Recipe, &Path),
    at: &mut impl FnMut(Stage),
) -> Result<ImageParts> {
    if order.contents == GoldenContents::Tiny {
        at(Stage::Image);
        let mut image = tiny::image(guestd)?;
        overlay::strip(&mut image);
        overlay::put_controller(&mut image, guestd)?;
        return Ok(ImageParts { image, base: None, suite: None, packages: Vec::new() });
    }
    at(Stage::Debian);
    let base = base::debian(recipe, (order.contents, order.as_of), order.work, order.base_cache)?;
    at(Stage::Image);
    let (mut image, packages) = base::read(&base.path)?;
    elf::require_glibc(guestd, &packages)?;
    overlay::strip(&mut image);
    overlay::put_controller(&mut image, guestd)?;
    overlay::put_units(&mut image, order.recipe, recipe)?;
    overlay::put_sources(&mut image, recipe);
    overlay::put_files(&mut image, order.recipe, recipe)?;
    Ok(ImageParts { image, base: Some(base), suite: Some(recipe.debian.suite.clone()), packages })
}

/// The golden in that folder that has these bytes, if there is one.
fn find_existing(folder: &Path, sha256: &str) -> Result<Option<Built>> {
    let failed = || format!("cannot look through {}", folder.display());
    for entry in std::fs::read_dir(folder).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("golden-") || !name.ends_with(".json") || name.ends_with(".spdx.json") {
            continue;
        }
        let mut text = String::new();
        let file = std::fs::File::open(&path).with_context(failed)?;
        file.take(MANIFEST_BYTES_MAX as u64).read_to_string(&mut text).with_context(failed)?;
        // A manifest of another form is not ours to judge here.
        let Ok(manifest) = serde_json::from_str::<GoldenManifest>(&text) else { continue };
        let archive = folder.join(&manifest.archive);
        if manifest.sha256 == sha256 && archive.is_file() && digest_of(&archive)? == sha256 {
            return Ok(Some(Built {
                how: BuildOutcome::AlreadyBuilt,
                archive,
                manifest_file: path,
                manifest,
            }));
        }
    }
    Ok(None)
}

fn content_bytes(image: &Image) -> Result<u64> {
    let sizes = image.entries.values().map(|entry| match &entry.kind {
        Kind::File(Content::Bytes(bytes)) => Ok(bytes.len() as u64),
        Kind::File(Content::Host(path)) => Ok(std::fs::metadata(path)?.len()),
        Kind::File(Content::Base { size_bytes, .. }) => Ok(*size_bytes),
        Kind::Directory | Kind::Symlink(_) | Kind::HardLink(_) | Kind::Pipe => Ok(0),
    });
    sizes.sum()
}

/// The SHA-256 of a file, in hex.
pub fn digest_of(path: &Path) -> Result<String> {
    let mut file = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut digest = Sha256::new();
    std::io::copy(&mut file, &mut digest).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(hex::encode(digest.finalize()))
}
