//! The newest change, looked for while pages are open.
//!
//! In: the number of the newest change in the database, whichever hub or command made it. Out: a wake for each open page.
//! Deliberately absent: what changed, which each page's own request reads within its scope.

use std::time::Duration;

use tokio::sync::watch;

use super::{Rest, log_failure, rest};
use crate::api::LiveFeed;
use crate::store::SharedStore;

/// A change is on an open page within a second: this long to be seen, the rest to be fetched.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Ends with `stop`.
pub async fn run(store: SharedStore, feed: LiveFeed, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = feed.wanted() => {}
        }
        match store.newest_page_change().await {
            Ok(number) => feed.reached(number),
            Err(error) => log_failure("look for changes", &error),
        }
        if rest(&mut stop, LOOK_EVERY).await == Rest::Stop {
            return;
        }
    }
}
