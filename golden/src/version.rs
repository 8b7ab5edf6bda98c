//! Image versions, `YYYY.MM.N`, and archive timestamps.
//!
//! In: a request, or the month and the versions that lie there already. Out: a version that no other golden in that folder
//! has, and one second of its month that is its own, so that each has a file name of its own.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use holdfast_protocol::id::GoldenVersion;

/// Which version a build gets.
#[derive(Clone, Debug)]
pub enum VersionChoice {
    Exact(GoldenVersion),
    /// The first free version of the month in that folder; the moment is in seconds since 1970.
    NextOfMonth(u64),
}

/// A month and the number in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    month: String,
    number: u32,
}

impl Version {
    /// Settles on one.
    pub fn choose(wanted: &VersionChoice, folder: &Path) -> Result<Self> {
        match wanted {
            VersionChoice::Exact(version) => Self::of(version),
            VersionChoice::NextOfMonth(at_s) => {
                let month = utc(*at_s, "%Y.%m")?;
                let number = (1..10_000).find(|number| !manifest_path(folder, &month, *number).exists());
                let number = number.with_context(|| format!("{month} has ten thousand goldens already"))?;
                Ok(Self { month, number })
            }
        }
    }

    fn of(version: &GoldenVersion) -> Result<Self> {
        let refused = || format!("`{version}` is no golden version such as 2026.11.1");
        let (month, number) = version.as_str().rsplit_once('.').with_context(refused)?;
        let number: u32 = number.parse().with_context(refused)?;
        ensure!((1..10_000).contains(&number), refused());
        Ok(Self { month: month.to_owned(), number })
    }

    /// As it is written.
    pub fn id(&self) -> Result<GoldenVersion> {
        let text = format!("{}.{}", self.month, self.number);
        text.parse().with_context(|| format!("`{text}` is no golden version"))
    }

    /// The time in the archive's name: as many seconds into the month as there were goldens before it. Proxmox reads it
    /// as the time of a backup; building a version again gives the same name.
    pub fn moment(&self) -> Result<String> {
        let first = format!("{}.01 00:00:00", self.month);
        let month = jiff::civil::DateTime::strptime("%Y.%m.%d %H:%M:%S", first)
            .with_context(|| format!("{} is no month", self.month))?;
        let moment = month.checked_add(jiff::Span::new().seconds(i64::from(self.number) - 1))?;
        Ok(moment.strftime("%Y_%m_%d-%H_%M_%S").to_string())
    }
}

fn manifest_path(folder: &Path, month: &str, number: u32) -> std::path::PathBuf {
    folder.join(format!("golden-{month}.{number}.json"))
}

fn utc(seconds: u64, form: &str) -> Result<String> {
    let moment = jiff::Timestamp::from_second(i64::try_from(seconds)?)?;
    Ok(moment.strftime(form).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_name_their_archives() {
        let folder = tempfile::tempdir().unwrap();
        let first = Version::choose(&VersionChoice::NextOfMonth(1_793_491_200), folder.path()).unwrap();
        assert_eq!(first.id().unwrap().as_str(), "2026.11.1");
        assert_eq!(first.moment().unwrap(), "2026_11_01-00_00_00");
        let third =
            Version::choose(&VersionChoice::Exact("2026.11.3".parse().unwrap()), folder.path()).unwrap();
        assert_eq!(third.moment().unwrap(), "2026_11_01-00_00_02");
        let late = Version::of(&"2027.02.4000".parse().unwrap()).unwrap();
        assert_eq!(late.moment().unwrap(), "2027_02_01-01_06_39");
        assert!(Version::of(&"2026.11.0".parse().unwrap()).is_err());
        assert!(Version::of(&"2026.13.1".parse().unwrap()).and_then(|version| version.moment()).is_err());
    }

    #[test]
    fn the_next_version_of_a_month_is_unused() {
        let folder = tempfile::tempdir().unwrap();
        for taken in ["golden-2026.11.1.json", "golden-2026.11.2.json", "golden-2026.10.3.json"] {
            std::fs::write(folder.path().join(taken), "").unwrap();
        }
        let next = Version::choose(&VersionChoice::NextOfMonth(1_793_491_300), folder.path()).unwrap();
        assert_eq!(next.id().unwrap().as_str(), "2026.11.3");
    }
}
