//! From recipe to archive and manifest.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::image::Image;
use super::manifest::{Manifest, Package, SCHEMA, hex};
use super::recipe::Recipe;
use super::{BuildOptions, archive, base, elf, overlay, tiny};

/// What was built.
#[derive(Clone, Debug)]
pub struct Built {
    pub archive: PathBuf,
    pub manifest_file: PathBuf,
    pub manifest: Manifest,
}

/// Builds one golden. `target` is where bases are kept.
pub fn build(workspace: &Path, target: &Path, options: &BuildOptions) -> Result<Built> {
    let (recipe, recipe_text) = Recipe::read(workspace)?;
    let epoch_s = epoch(&recipe)?;
    let version = Version::choose(options.version.as_deref(), epoch_s)?;
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot make {}", options.out.display()))?;
    let Made { image, base, suite, packages } = make(workspace, target, &recipe, options)?;
    let name = format!("vzdump-lxc-{}-{}.tar.zst", recipe.container.vmid, version.moment(epoch_s)?);
    let path = options.out.join(&name);
    archive::write(&path, &recipe.pct_conf(), &image, base.as_deref(), epoch_s)?;
    let manifest = Manifest {
        schema: SCHEMA.to_owned(),
        version: version.text(),
        archive: name,
        sha256: digest_of(&path)?,
        size_bytes: std::fs::metadata(&path)?.len(),
        recipe_sha256: recipe_digest(workspace, &recipe, &recipe_text)?,
        guestd_sha256: digest_of(&options.guestd)?,
        suite,
        source_date_epoch: epoch_s,
        packages,
    };
    let manifest_file = options.out.join(format!("golden-{}.json", manifest.version));
    let text = serde_json::to_string_pretty(&manifest)? + "\n";
    std::fs::write(&manifest_file, text)
        .with_context(|| format!("cannot write {}", manifest_file.display()))?;
    Ok(Built { archive: path, manifest_file, manifest })
}

struct Made {
    image: Image,
    base: Option<PathBuf>,
    suite: String,
    packages: Vec<Package>,
}

fn make(workspace: &Path, target: &Path, recipe: &Recipe, options: &BuildOptions) -> Result<Made> {
    if options.tiny {
        let mut image = tiny::image(&options.guestd)?;
        overlay::strip(&mut image);
        overlay::put_controller(&mut image, &options.guestd)?;
        return Ok(Made { image, base: None, suite: "tiny".to_owned(), packages: Vec::new() });
    }
    let suite = base::host_suite()?;
    let extra = if options.full { recipe.full.packages.as_slice() } else { &[] };
    let base = base::debian(recipe, &suite, extra, &target.join("golden"), options.fresh)?;
    let (mut image, packages) = base::read(&base)?;
    elf::fits(&options.guestd, &packages)?;
    overlay::strip(&mut image);
    overlay::put_controller(&mut image, &options.guestd)?;
    overlay::put_units(&mut image, workspace, recipe)?;
    Ok(Made { image, base: Some(base), suite, packages })
}

/// The moment that no time in the archive is later than.
fn epoch(recipe: &Recipe) -> Result<u64> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => {
            text.parse().with_context(|| format!("SOURCE_DATE_EPOCH is `{text}`, not a number of seconds"))
        }
        Err(_) => Ok(recipe.source_date_epoch),
    }
}

/// A golden's version.
struct Version {
    month: String,
    number: u32,
}

impl Version {
    fn choose(wanted: Option<&str>, epoch_s: u64) -> Result<Self> {
        let Some(wanted) = wanted else {
            return Ok(Self { month: utc(epoch_s, "%Y.%m")?, number: 1 });
        };
        let refused = || format!("`{wanted}` is no golden version such as 2026.11.1");
        let (month, number) = wanted.rsplit_once('.').with_context(refused)?;
        let is_month = matches!(month.as_bytes(), [y1, y2, y3, y4, b'.', m1, m2]
            if [y1, y2, y3, y4, m1, m2].into_iter().all(u8::is_ascii_digit));
        let number: u32 =
            number.parse().ok().filter(|number| (1..10_000).contains(number)).with_context(refused)?;
        ensure!(is_month, refused());
        Ok(Self { month: month.to_owned(), number })
    }

    fn text(&self) -> String {
        format!("{}.{}", self.month, self.number)
    }

    /// The time in the archive's name: as many seconds after the epoch as there were goldens before in that month, so
    /// that each version has a name of its own and building one again gives the same name.
    fn moment(&self, epoch_s: u64) -> Result<String> {
        utc(epoch_s + u64::from(self.number) - 1, "%Y_%m_%d-%H_%M_%S")
    }
}

fn utc(seconds: u64, form: &str) -> Result<String> {
    let moment = jiff::Timestamp::from_second(i64::try_from(seconds)?)?;
    Ok(moment.strftime(form).to_string())
}

/// One digest over everything of ours that shapes the image.
fn recipe_digest(workspace: &Path, recipe: &Recipe, text: &str) -> Result<String> {
    let mut digest = Sha256::new();
    digest.update(text.as_bytes());
    for unit in &recipe.units {
        digest.update(unit.file.as_bytes());
        digest.update(std::fs::read(workspace.join("golden/units").join(&unit.file))?);
    }
    Ok(hex(&digest.finalize()))
}

fn digest_of(path: &Path) -> Result<String> {
    let mut file = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut digest = Sha256::new();
    std::io::copy(&mut file, &mut digest).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(hex(&digest.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_strictly_and_name_their_archives() {
        let epoch_s = 1_793_491_200;
        let first = Version::choose(None, epoch_s).expect("chosen");
        assert_eq!(
            (first.text(), first.moment(epoch_s).expect("a moment")),
            ("2026.11.1".into(), "2026_11_01-00_00_00".into())
        );
        let third = Version::choose(Some("2026.11.3"), epoch_s).expect("chosen");
        assert_eq!(third.moment(epoch_s).expect("a moment"), "2026_11_01-00_00_02");
        for wrong in ["2026.11", "2026.11.0", "2026.11.x", "26.11.1", "2026-11-1", "2026.11.10000"] {
            assert!(Version::choose(Some(wrong), epoch_s).is_err(), "{wrong}");
        }
    }
}
