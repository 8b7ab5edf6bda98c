//! Tests of audit records over lost replies and restarts.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use holdfast_protocol::local::audit::AuditRecord;
use net::client::Method;
use serde_json::{Value, json};

use super::*;
use crate::port::clock::RealClock;
use crate::port::hub::{Line, Posted};
use crate::task::enrolled_agent;

#[derive(Debug, Default)]
struct Records {
    through: u64,
    kept: Vec<AuditRecord>,
    puts: usize,
    /// The hub takes the next one, and the answer says otherwise.
    loses_reply: bool,
}

#[derive(Clone, Debug, Default)]
struct FakeHub(Arc<Mutex<Records>>);

impl FakeHub {
    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap()
    }

    fn answer(&self, body: &[u8]) -> (u16, Value, Value) {
        let mut records = self.records();
        let put: GuestAuditPut = serde_json::from_slice(body).unwrap();
        records.puts += 1;
        records.through = put.through.unwrap_or(records.through);
        for record in put.records {
            assert!(record.holds());
            if !records.kept.contains(&record) {
                records.kept.push(record);
            }
        }
        if std::mem::take(&mut records.loses_reply) {
            return (503, Value::Null, json!({ "code": "UNAVAILABLE", "message": "no" }));
        }
        (200, json!({ "through": records.through }), Value::Null)
    }
}

impl Line for FakeHub {
    fn send<'a>(&'a self, method: Method, path: &'a str, body: Vec<u8>, _: Duration) -> Posted<'a> {
        assert_eq!((method, path), (Method::PUT, "/v1/agent/guest-audit"));
        let answer = enrolled_agent::answer(self.answer(&body));
        Box::pin(async move { Ok(answer) })
    }
}

/// An enrolled agent in a folder.
fn start(state: &Path, hub: &FakeHub) -> GuestAuditTask {
    let folder = IdentityFolder::open(state).unwrap();
    enrolled_agent::enrol(state);
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let line = hub.clone();
    GuestAuditTask {
        store: Store::open(state, clock.now()).unwrap(),
        folder,
        dial: Arc::new(move |identity| Ok(Hub::over(Arc::new(line.clone()), &identity.hub))),
        clock,
    }
}

#[tokio::test]
async fn each_record_reaches_the_hub_once_over_lost_replies_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let (state, hub) = (folder.path(), FakeHub::default());
    let task = start(state, &hub);
    let mut known = None;
    task.round(&mut known).await.unwrap();
    assert_eq!((known, hub.records().puts), (Some(0), 1), "the hub is asked once, and there is nothing");
    task.store
        .write_lines_for_tests(vec![(Some(1), "line 1".to_owned()), (None, String::new())])
        .await
        .unwrap();
    hub.records().loses_reply = true;
    task.round(&mut known).await.unwrap_err();
    let kept = hub.records().kept.clone();
    assert_eq!(kept.len(), 1);

    // As after a restart the hub says how far it is.
    known = None;
    task.round(&mut known).await.unwrap();
    assert_eq!(hub.records().kept, kept);
    task.store
        .write_lines_for_tests(vec![(Some(1), "line 2".to_owned()), (None, String::new())])
        .await
        .unwrap();
    task.round(&mut known).await.unwrap();
    assert_eq!((hub.records().kept.len(), known), (2, Some(4)));
    let puts = hub.records().puts;
    task.round(&mut known).await.unwrap();
    assert_eq!(hub.records().puts, puts, "nothing new is no request");

    // The hub was set back to an older copy.
    *hub.records() = Records { kept, through: 2, ..Records::default() };
    known = None;
    task.round(&mut known).await.unwrap();
    assert_eq!((hub.records().kept.len(), known), (2, Some(4)));
}
