//! The task that fetches golden images: approved ones, and offered ones.
//!
//! In: the approved images that the last plan missed, the image that a rollout offers, and the hub's releases. Out: an image in the dump folder, put there by root's
//! program, or the reason why not, for the report. The release keys of the host say whether root
//! takes the bytes, and an operator's signature whether guests are made of them. Deliberately absent: a choice; what was
//! neither approved nor offered is not fetched.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::golden::{GoldenManifest, MANIFEST_BYTES_MAX};
use holdfast_protocol::id::GoldenVersion;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::json::{self, JsonError, chain};
use holdfast_protocol::release::stored::{ImageOffer, OfferedImage};
use holdfast_protocol::release::{
    ReleaseError, ReleaseFile, ReleaseFileKind, ReleaseManifest, SignedRelease, VersionNumber,
};
use tokio::sync::watch;

use super::hub_sync::Dial;
use super::stop::Stop;
use crate::model::policy::Sha256Hex;
use crate::model::view::HostSnapshot;
use crate::port::clock::Clock;
use crate::port::golden_folder::{GoldenFolder, GoldenFolderError};
use crate::port::helper::{Helper, HelperError, PublishedGolden};
use crate::port::hub::{Hub, HubError};
use crate::port::identity::{IdentityError, IdentityFolder};

/// The first look waits until the start's own work is done.
const FIRST: Duration = Duration::from_secs(90);
/// How often it is looked whether an image is missing.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The pause after a failure: an operator uploads, or makes room.
const AFTER_FAILURE: Duration = Duration::from_secs(600);

/// How often the hub is asked for an offer. A rollout is paced in minutes.
const ASK_EVERY: Duration = Duration::from_secs(600);

pub struct GoldenFetchTask {
    pub view: watch::Receiver<Arc<HostSnapshot>>,
    /// The identity of this agent.
    pub identity: IdentityFolder,
    /// How the hub is called.
    pub dial: Dial,
    pub folder: GoldenFolder,
    /// Root's programs.
    pub helper: Helper,
    /// What keeps an image away, for the report.
    pub trouble: watch::Sender<Option<ErrorBody>>,
    /// The offered image that this task put into the dump folder last: the host may not report it yet.
    pub placed: Option<Sha256Text>,
    pub clock: Arc<dyn Clock>,
}

/// What the hub offers.
#[derive(Debug, PartialEq, Eq)]
enum Offered {
    /// An image that is not here.
    Image(OfferedImage),
    Nothing,
    /// The hub did not say.
    Unknown,
}

/// Why an image was not fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("this host is not enrolled")]
    NotEnrolled,
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(
        "no release at the hub has it: `holdfast release manifest`, `sign` and `upload` put it there, with its manifest"
    )]
    NotAtHub,
    #[error(transparent)]
    Release(#[from] ReleaseError),
    #[error("release {0} does not name it with its manifest, both once")]
    NoImage(VersionNumber),
    #[error("its manifest in release {release} is refused")]
    Manifest {
        release: VersionNumber,
        #[source]
        source: JsonError,
    },
    #[error(
        "release {release} has these bytes as image {found}: approve them under that version, and name it in the document"
    )]
    OtherVersion { release: VersionNumber, found: GoldenVersion },
    #[error("its manifest in release {release} has {bytes} bytes; at most {MANIFEST_BYTES_MAX} are fetched")]
    ManifestSize { release: VersionNumber, bytes: u64 },
    #[error("the hub sent {got} bytes after byte {from}")]
    Part { from: u64, got: usize },
    #[error(transparent)]
    Folder(#[from] GoldenFolderError),
    #[error("root's program did not put it into the dump folder")]
    Publish(#[from] HelperError),
}

impl GoldenFetchTask {
    /// Looks until the agent stops.
    pub async fn run(mut self, mut stop: Stop) {
        let (mut pause, mut view) = (FIRST, self.view.clone());
        loop {
            tokio::select! {
                biased;
                () = stop.requested() => return,
                () = self.clock.sleep(pause) => {}
            }
            pause = tokio::select! {
                biased;
                () = stop.requested() => return,
                pause = self.round() => pause,
            };
            // Nothing wakes it before the next question, until an image is missing.
            let trouble = self.trouble.clone();
            tokio::select! {
                biased;
                () = stop.requested() => return,
                seen = view.wait_for(|view| !view.missing_goldens.is_empty() || trouble.borrow().is_some()) => {
                    if seen.is_err() {
                        return;
                    }
                }
                () = self.clock.sleep(ASK_EVERY) => {}
            }
        }
    }

    /// Fetches what is missing, one after the other. One that cannot be fetched keeps no other one away.
    async fn round(&mut self) -> Duration {
        let missing = self.view.borrow().missing_goldens.clone();
        let offered = self.offered(&missing).await;
        let mut troubles = Vec::new();
        // What was fetched in part, and is wanted no more.
        if missing.is_empty()
            && offered == Offered::Nothing
            && let Err(error) = self.folder.clear()
        {
            tracing::warn!(error = chain(&error), "the folder of fetched images was not emptied");
        }
        for (version, sha256) in &missing {
            match self.one(Some(version), sha256.as_str()).await {
                Ok(PublishedGolden { archive, .. }) => {
                    tracing::info!(%version, archive, "an approved golden image was fetched");
                }
                Err(error) => {
                    let error = chain(&error);
                    tracing::warn!(%version, error, "an approved golden image was not fetched");
                    troubles.push(format!("golden {version} is approved and was not fetched: {error}"));
                }
            }
        }
        if let Offered::Image(OfferedImage { release, sha256 }) = offered {
            match self.one(None, sha256.as_str()).await {
                Ok(PublishedGolden { version, archive, .. }) => {
                    tracing::info!(%version, archive, %release, "an offered golden image was fetched");
                    self.placed = Some(sha256);
                }
                Err(error) => {
                    let error = chain(&error);
                    tracing::warn!(%release, error, "an offered golden image was not fetched");
                    troubles.push(format!(
                        "the golden image of release {release} is offered and was not fetched: {error}"
                    ));
                }
            }
        }
        let trouble =
            (!troubles.is_empty()).then(|| ErrorBody::new(ErrorCode::Unavailable, troubles.join("; ")));
        let pause = if trouble.is_some() { AFTER_FAILURE } else { LOOK_EVERY };
        self.trouble.send_if_modified(|before| {
            let news = *before != trouble;
            *before = trouble;
            news
        });
        pause
    }

    /// The image that a rollout offers, where it is not here, and not among those that are fetched anyway.
    async fn offered(&self, missing: &BTreeMap<GoldenVersion, Sha256Hex>) -> Offered {
        let offer = match self.image_offer().await {
            Ok(offer) => offer,
            Err(error) => {
                tracing::debug!(error = chain(&error), "the hub was not asked for an image");
                return Offered::Unknown;
            }
        };
        let is_here = |sha256: &str| {
            let view = self.view.borrow();
            view.host
                .iter()
                .flat_map(|host| &host.goldens)
                .any(|image| image.sha256.as_deref() == Some(sha256))
        };
        match offer.image {
            Some(OfferedImage { sha256, .. })
                if self.placed.as_ref() == Some(&sha256)
                    || missing.values().any(|missing| missing.as_str() == sha256.as_str())
                    || is_here(sha256.as_str()) =>
            {
                Offered::Nothing
            }
            Some(image) => Offered::Image(image),
            None => Offered::Nothing,
        }
    }

    async fn image_offer(&self) -> Result<ImageOffer, FetchError> {
        let identity = self.identity.read()?.ok_or(FetchError::NotEnrolled)?;
        Ok((self.dial)(&identity)?.image_offer().await?)
    }

    async fn one(
        &self,
        version: Option<&GoldenVersion>,
        sha256: &str,
    ) -> Result<PublishedGolden, FetchError> {
        let digest = Sha256Text::try_from(sha256.to_owned()).map_err(|_| FetchError::NotAtHub)?;
        if self.folder.waits()? {
            // Fetched before this agent started. Were it of another image, root would find its digest wrong.
            self.folder.withdraw(&digest)?;
        }
        let identity = self.identity.read()?.ok_or(FetchError::NotEnrolled)?;
        let hub = (self.dial)(&identity)?;
        let text = match hub.release_naming(&digest).await {
            Ok(found) => found.signed,
            Err(HubError::Refused { problem, .. }) if problem.code == ErrorCode::NotFound => {
                return Err(FetchError::NotAtHub);
            }
            Err(error) => return Err(error.into()),
        };
        let release = ReleaseManifest::parse(&SignedRelease::parse(text.as_bytes())?.manifest)?;
        let (archive, manifest) = files(&release, &digest)?;
        let manifest = self.manifest(&hub, (&release, manifest), version).await?;
        self.archive(&hub, archive).await?;
        self.folder.offer(&archive.sha256, &manifest, &text)?;
        self.publish(&archive.sha256).await
    }

    /// The manifest of the image, small enough for memory. Root checks its digest.
    async fn manifest(
        &self,
        hub: &Hub,
        (release, file): (&ReleaseManifest, &ReleaseFile),
        version: Option<&GoldenVersion>,
    ) -> Result<Vec<u8>, FetchError> {
        let (release, size) = (release.version, file.size_bytes);
        if size > MANIFEST_BYTES_MAX as u64 {
            return Err(FetchError::ManifestSize { release, bytes: size });
        }
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < size {
            bytes.extend(part(hub, file, bytes.len() as u64).await?);
        }
        let manifest: GoldenManifest = json::parse("the manifest", &bytes, MANIFEST_BYTES_MAX)
            .map_err(|source| FetchError::Manifest { release, source })?;
        // An offer names bytes alone; an approval names a version, too.
        match version {
            Some(version) if manifest.version != *version => {
                Err(FetchError::OtherVersion { release, found: manifest.version })
            }
            Some(_) | None => Ok(bytes),
        }
    }

    async fn archive(&self, hub: &Hub, file: &ReleaseFile) -> Result<(), FetchError> {
        let mut here = self.folder.begin(&file.sha256, file.size_bytes)?;
        while here < file.size_bytes {
            let bytes = part(hub, file, here).await?;
            self.folder.append(&file.sha256, &bytes)?;
            here += bytes.len() as u64;
        }
        Ok(())
    }

    /// Has root look at it. Bytes that were wrong are fetched anew; all else that root refuses can be mended without that.
    async fn publish(&self, sha256: &Sha256Text) -> Result<PublishedGolden, FetchError> {
        let published = self.helper.golden_publish().await;
        match &published {
            Ok(_) => self.folder.clear()?,
            Err(HelperError::Refused { code, .. }) if code == "DIGEST" || code == "TRUNCATED" => {
                self.folder.clear()?;
            }
            Err(_) => self.folder.withdraw(sha256)?,
        }
        Ok(published?)
    }
}

/// The next bytes of a file.
async fn part(hub: &Hub, file: &ReleaseFile, from: u64) -> Result<Vec<u8>, FetchError> {
    let bytes = hub.artifact_part(&file.sha256, from, file.size_bytes).await?;
    let got = bytes.len();
    if got == 0 || got as u64 > file.size_bytes - from {
        return Err(FetchError::Part { from, got });
    }
    Ok(bytes)
}

/// The archive of that digest and its manifest, where the release names one of each, as root requires.
fn files<'a>(
    release: &'a ReleaseManifest,
    digest: &Sha256Text,
) -> Result<(&'a ReleaseFile, &'a ReleaseFile), FetchError> {
    let archive = release.only(ReleaseFileKind::Golden).filter(|file| file.sha256 == *digest);
    let manifest = release.only(ReleaseFileKind::GoldenManifest);
    archive.zip(manifest).ok_or(FetchError::NoImage(release.version))
}

#[cfg(test)]
mod tests;
