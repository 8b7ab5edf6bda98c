//! The change of the hub's CA, as files.
//!
//! In: the hub's folder and a request of root on the hub's machine. Out: the files of the next state, written so that a
//! crash at any moment leaves the state before or after. A running hub reads them by itself. Deliberately absent: which
//! hosts still depend on a CA; the command asks the store before it finishes.
//!
//! ```text
//! begin ──▶ forward ──▶ finish: the next CA is the present one, the old one is kept as the former
//!              │
//!            abort ──▶ back ──▶ finish: the next CA is gone
//! ```

use std::fs::File;
use std::path::{Path, PathBuf};

use held_files::atomic_file::{self, FileError, Readers};
use holdfast_protocol::pin::Pin;
use jiff::Timestamp;
use rcgen::KeyPair;
use zeroize::Zeroizing;

use super::cas::{
    CA, CA_KEY, Ca, CaSet, Course, FORMER, FORMER_CROSS, NEXT, NEXT_BACK, NEXT_CROSS, NEXT_FINISH, NEXT_KEY,
};
use super::{AuthorityError, ca_params, read};

/// Why the CA is not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is none.
    #[error("{folder} is not a hub's folder: give it with --dir; nothing was changed")]
    NoHub { folder: PathBuf },
    #[error("{path} cannot be locked: the hub's user must be able to; nothing was changed")]
    Lock {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Another command.
    #[error("another command changes the CA at this moment: wait for it; nothing was changed")]
    Busy,
    #[error("a change of the CA is under way already: see `hubd ca rotate status`; nothing was changed")]
    UnderWay,
    #[error("no change of the CA is under way: begin one with `hubd ca rotate begin`; nothing was changed")]
    None,
    #[error("the change of the CA is taken back already: see `hubd ca rotate status`; nothing was changed")]
    TakenBack,
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error(transparent)]
    Write(#[from] FileError),
    /// The library refused.
    #[error("the new CA cannot be made; nothing was changed")]
    Make(#[source] rcgen::Error),
}

/// The hub's folder while one command changes its CA.
pub struct CaFolder {
    folder: PathBuf,
    _lock: File,
}

impl CaFolder {
    /// Opens it. What an earlier command left half-finished is finished.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn open(folder: &Path) -> Result<Self, ChangeError> {
        if !folder.join(CA).exists() {
            return Err(ChangeError::NoHub { folder: folder.to_owned() });
        }
        let path = folder.join("ca.lock");
        let opened = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = opened.map_err(|source| ChangeError::Lock { path, source })?;
        lock.try_lock().map_err(|_| ChangeError::Busy)?;
        let open = Self { folder: folder.to_owned(), _lock: lock };
        resume(folder)?;
        Ok(open)
    }

    /// The CAs as they are.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn cas(&self) -> Result<CaSet, ChangeError> {
        Ok(CaSet::open(&self.folder)?)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes the next CA. The running hub gives hosts certificates of it from then on.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn begin(&self, now: Timestamp) -> Result<Pin, ChangeError> {
        let cas = self.cas()?;
        if cas.change().is_some() {
            return Err(ChangeError::UnderWay);
        }
        let key = KeyPair::generate().map_err(ChangeError::Make)?;
        let pem = Zeroizing::new(key.serialize_pem());
        let params = ca_params(now)?;
        let cross = params.signed_by(&key, &cas.serving().issuer).map_err(ChangeError::Make)?;
        let certificate = params.self_signed(&key).map_err(ChangeError::Make)?;
        atomic_file::write(&self.path(NEXT_KEY), pem.as_bytes(), Readers::Owner)?;
        atomic_file::write(&self.path(NEXT_CROSS), cross.pem().as_bytes(), Readers::All)?;
        // Last: it is what says that there is a change.
        atomic_file::write(&self.path(NEXT), certificate.pem().as_bytes(), Readers::All)?;
        Ok(Ca::open(&self.path(NEXT_KEY), &self.path(NEXT))?.pin())
    }

    /// Takes the change back: hosts get certificates of the present CA again, and those of the next one are accepted
    /// until the change is finished.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn abort(&self) -> Result<(), ChangeError> {
        match self.cas()?.change() {
            Some((_, Course::Forward)) => {}
            Some((_, Course::Back)) => return Err(ChangeError::TakenBack),
            None => return Err(ChangeError::None),
        }
        Ok(atomic_file::write(&self.path(NEXT_BACK), b"the change of the CA is taken back\n", Readers::All)?)
    }

    /// Ends the change: certificates of the CA that it left are accepted no more.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn finish(&self) -> Result<(), ChangeError> {
        if self.cas()?.change().is_none() {
            return Err(ChangeError::None);
        }
        atomic_file::write(
            &self.path(NEXT_FINISH),
            b"the change of the CA is being finished\n",
            Readers::All,
        )?;
        Ok(resume(&self.folder)?)
    }
}

/// Goes on with a change that is being finished. Each step can be done again.
pub(super) fn resume(folder: &Path) -> Result<(), AuthorityError> {
    let path = |name: &str| folder.join(name);
    if !path(NEXT_FINISH).exists() {
        return Ok(());
    }
    if path(NEXT).exists() && !path(NEXT_BACK).exists() {
        let (present, next) = (read(&path(CA))?, read(&path(NEXT))?);
        if present != next {
            let cross = read(&path(NEXT_CROSS))?;
            atomic_file::write(&path(FORMER_CROSS), cross.as_bytes(), Readers::All)?;
            atomic_file::write(&path(FORMER), present.as_bytes(), Readers::All)?;
            let key = Zeroizing::new(read(&path(NEXT_KEY))?);
            atomic_file::write(&path(CA_KEY), key.as_bytes(), Readers::Owner)?;
            atomic_file::write(&path(CA), next.as_bytes(), Readers::All)?;
        }
    }
    // The mark that it goes back is last but one: without it the next start would go forward.
    for name in [NEXT_KEY, NEXT_CROSS, NEXT, NEXT_BACK, NEXT_FINISH] {
        atomic_file::remove(&path(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::{Authority, Fresh};

    fn now() -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap()
    }

    fn hub() -> (tempfile::TempDir, Pin) {
        let folder = tempfile::tempdir().unwrap();
        let pin = Authority::open_or_make(folder.path(), Fresh::Yes, now()).unwrap().cas().serving().pin();
        (folder, pin)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_change_goes_forward_and_leaves_the_way_from_the_old_ca() {
        let (folder, old) = hub();
        let open = CaFolder::open(folder.path()).unwrap();
        assert!(matches!(open.finish(), Err(ChangeError::None)));
        let new = open.begin(now()).unwrap();
        assert!(matches!(open.begin(now()), Err(ChangeError::UnderWay)));
        assert!(matches!(CaFolder::open(folder.path()), Err(ChangeError::Busy)));
        let cas = open.cas().unwrap();
        assert_eq!((cas.serving().pin(), cas.issuing().pin(), cas.announced()), (old, new, Some(new)));
        assert_eq!((cas.accepted().len(), cas.shown().len()), (2, 1));
        open.finish().unwrap();
        let cas = open.cas().unwrap();
        assert_eq!((cas.serving().pin(), cas.issuing().pin(), cas.announced()), (new, new, None));
        assert_eq!((cas.accepted().len(), cas.shown().len()), (1, 3));
        let [_, cross, former] = <[_; 3]>::try_from(cas.shown()).unwrap();
        assert_eq!(net::tls::succeeds(&former, &cas.serving().der, &cross), Ok(()));
    }

    #[test]
    fn a_change_that_is_taken_back_leaves_nothing() {
        let (folder, old) = hub();
        let open = CaFolder::open(folder.path()).unwrap();
        let before = names(folder.path());
        let new = open.begin(now()).unwrap();
        open.abort().unwrap();
        assert!(matches!(open.abort(), Err(ChangeError::TakenBack)));
        let cas = open.cas().unwrap();
        assert_eq!((cas.issuing().pin(), cas.announced(), cas.accepted().len()), (old, None, 2));
        assert_eq!(cas.change().map(|(ca, course)| (ca.pin(), course)), Some((new, Course::Back)));
        open.finish().unwrap();
        assert_eq!(names(folder.path()), before);
        assert_eq!(open.cas().unwrap().serving().pin(), old);
    }

    /// The states that a crash can leave are made from those before and after: each file of either.
    #[test]
    fn a_finish_that_was_cut_off_is_finished_at_the_next_start() {
        let (folder, old) = hub();
        let open = CaFolder::open(folder.path()).unwrap();
        let new = open.begin(now()).unwrap();
        drop(open);
        let at = |name: &str| folder.path().join(name);
        let bytes = |name: &str| std::fs::read(at(name)).unwrap();
        let (key, next, cross, ca) = (bytes(NEXT_KEY), bytes(NEXT), bytes(NEXT_CROSS), bytes(CA));
        let steps: [(&str, Option<&[u8]>); 9] = [
            (NEXT_FINISH, Some(b"")),
            (FORMER_CROSS, Some(&cross)),
            (FORMER, Some(&ca)),
            (CA_KEY, Some(&key)),
            (CA, Some(&next)),
            (NEXT_KEY, None),
            (NEXT_CROSS, None),
            (NEXT, None),
            (NEXT_FINISH, None),
        ];
        for cut in 1..=steps.len() {
            let copy = tempfile::tempdir().unwrap();
            for name in names(folder.path()) {
                std::fs::copy(at(&name), copy.path().join(&name)).unwrap();
            }
            for (name, text) in &steps[..cut] {
                match text {
                    Some(text) => std::fs::write(copy.path().join(name), text).unwrap(),
                    None => std::fs::remove_file(copy.path().join(name)).unwrap(),
                }
            }
            let opened = Authority::open_or_make(copy.path(), Fresh::No, now()).unwrap();
            assert_eq!(opened.cas().serving().pin(), new, "cut after {cut} steps");
            assert_eq!(opened.cas().shown().len(), 3, "cut after {cut} steps");
            assert!(opened.cas().change().is_none());
        }
        assert_ne!(old, new);
    }
}
