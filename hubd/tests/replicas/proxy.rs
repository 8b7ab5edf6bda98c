//! A proxy of the database that cuts sessions after a COMMIT.
//!
//! The server commits, and the hub never hears of it: the outcome is unknown to it. Deliberately absent: anything about
//! what else is in the stream.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

/// The name of a server's socket in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// A simple query as the writer sends it, with the end of its text.
const COMMIT: &[u8] = b"COMMIT\0";

pub struct Proxy {
    pub folder: PathBuf,
    cuts: Arc<AtomicU32>,
}

impl Proxy {
    /// Listens in a folder of its own for the server whose socket is in `server`.
    pub fn start(folder: PathBuf, server: &Path) -> Self {
        std::fs::create_dir(&folder).unwrap();
        let listener = UnixListener::bind(folder.join(SOCKET)).unwrap();
        let (cuts, server) = (Arc::new(AtomicU32::new(0)), server.join(SOCKET));
        let counted = Arc::clone(&cuts);
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, server.clone(), Arc::clone(&counted)));
            }
        });
        Self { folder, cuts }
    }

    /// Cuts the next sessions that commit.
    pub fn cut(&self, sessions: u32) {
        self.cuts.store(sessions, Ordering::SeqCst);
    }

    /// How many are still to be cut.
    pub fn left(&self) -> u32 {
        self.cuts.load(Ordering::SeqCst)
    }
}

/// Passes bytes on until one side ends, or the session is cut. Both ends are closed then.
async fn pass(client: UnixStream, server: PathBuf, cuts: Arc<AtomicU32>) {
    let Ok(server) = UnixStream::connect(server).await else { return };
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let up = async {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let Ok(length @ 1..) = from_client.read(&mut bytes).await else { return };
            if to_server.write_all(&bytes[..length]).await.is_err() {
                return;
            }
            let commits = bytes[..length].windows(COMMIT.len()).any(|part| part == COMMIT);
            let cut = |left: u32| left.checked_sub(1);
            if commits && cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, cut).is_ok() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
    }
}
