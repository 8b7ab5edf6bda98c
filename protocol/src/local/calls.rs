//! A table of all calls of the local API.

use schemars::{Schema, SchemaGenerator};

use super::audit::AuditPage;
use super::desired::DesiredView;
use super::due_backups::DueView;
use super::restore_test::{Reported, RestoreTestsView, TestReport};
use super::window::{Quiesced, Released, WindowRequest, WindowView};
use super::work::{
    Accepted, BackupRequest, BackupView, BackupsView, RollBackRequest, SnapshotRequest, SnapshotsView,
};
use super::{ClaimRequest, Healthy, Hello, HelloAnswer, SelfView, StorageView};
use crate::api::{self, framed, of};
use crate::bootstrap::Bootstrap;
use crate::code::ErrorCode::{self, *};
use crate::id::{IdempotencyKey, OperationId, SnapshotName};
use crate::job::act::Sha256Text;
use crate::operation::OperationView;

pub use crate::api::{Answer, Method, Needed, Param, ParamLocation, SchemaOf};

/// Who may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Anyone who reaches the address.
    Anyone,
    /// A guest, by its token and from its own address.
    Guest,
}

impl api::Caller for Caller {
    fn refusals(self) -> &'static [ErrorCode] {
        match self {
            Self::Anyone => &[Internal, Misdirected, Range, RateLimited, Unavailable],
            Self::Guest => &[
                DiskFull,
                Frozen,
                Internal,
                Misdirected,
                Range,
                RateLimited,
                RecordsBroken,
                RecordsDamaged,
                Unauthenticated,
                Unavailable,
            ],
        }
    }

    fn body_refusals(self) -> &'static [ErrorCode] {
        &[DuplicateKey, Missing, Size, Syntax, UnknownField, Version]
    }

    fn scheme(self) -> Option<&'static str> {
        match self {
            Self::Anyone => None,
            Self::Guest => Some("token"),
        }
    }
}

/// One call of the local API.
pub type Call = api::Call<Caller>;

const fn get(path: &'static str, name: &'static str, does: &'static str, answer: Answer) -> Call {
    let (method, caller) = (Method::Get, Caller::Guest);
    Call { method, path, name, does, caller, parts: &[], body: None, answer, refusals: &[] }
}

const KEY: Param = Param {
    location: ParamLocation::Header,
    name: "idempotency-key",
    says: "the same key with the same request is answered with the same work",
    schema: of::<IdempotencyKey>,
};
const ID: Param = Param {
    location: ParamLocation::Path,
    name: "id",
    says: "an operation of this guest",
    schema: of::<OperationId>,
};
const WINDOW: Param = Param {
    location: ParamLocation::Path,
    name: "id",
    says: "a quiesce window of this guest",
    schema: of::<OperationId>,
};
const WAIT: Param = Param {
    location: ParamLocation::Query,
    name: "wait",
    says: "answers when it has changed, at the latest after so many seconds: `1s` to `55s`",
    schema: wait,
};
const NAME: Param = Param {
    location: ParamLocation::Path,
    name: "name",
    says: "a snapshot of this guest",
    schema: of::<SnapshotName>,
};

const DIGEST: Param = Param {
    location: ParamLocation::Path,
    name: "sha256",
    says: "what `GET /v1/desired` names",
    schema: of::<Sha256Text>,
};

const TRIAL: Param = Param {
    location: ParamLocation::Query,
    name: "trial",
    says: "the build that the guest runs and that is not confirmed yet; the answer has `trial` then",
    schema: of::<Sha256Text>,
};
const TAKEN_BACK: Param = Param {
    location: ParamLocation::Query,
    name: "taken_back",
    says: "the build that the guest ran and put its previous program back for",
    schema: of::<Sha256Text>,
};

/// A call that requests a piece of work.
const fn work(path: &'static str, name: &'static str, does: &'static str, body: (Needed, SchemaOf)) -> Call {
    Call {
        method: Method::Post,
        parts: &[KEY],
        body: Some(body),
        refusals: &[Busy, IdempotencyMismatch, Locked, NameTaken, NotFound, NotYours, Quota],
        ..get(path, name, does, Answer::Taken(framed::<Accepted>))
    }
}

/// What a controller says of its window.
const fn says(path: &'static str, name: &'static str, does: &'static str, body: SchemaOf) -> Call {
    Call {
        method: Method::Put,
        parts: &[WINDOW],
        body: Some((Needed::Always, body)),
        refusals: &[IdempotencyMismatch, Locked, NotFound, NotYours, WindowOver],
        ..get(path, name, does, Answer::Done(framed::<WindowView>))
    }
}

/// All of them.
pub const CALLS: &[Call] = &[
    Call {
        caller: Caller::Anyone,
        ..get("/healthz", "healthz", "Whether the agent serves.", Answer::Done(framed::<Healthy>))
    },
    Call {
        caller: Caller::Anyone,
        ..get("/v1/openapi.json", "openapi", "This document.", Answer::Description)
    },
    Call {
        method: Method::Post,
        caller: Caller::Anyone,
        body: Some((Needed::Always, of::<ClaimRequest>)),
        refusals: &[ClaimRefused, ClaimTwice, DiskFull, RecordsBroken, RecordsDamaged],
        ..get(
            "/v1/claim",
            "claim",
            "Trades the one-time claim of the guest's environment for its token. Only from the guest's own address.",
            Answer::Done(framed::<Bootstrap>),
        )
    },
    Call {
        method: Method::Post,
        body: Some((Needed::Always, of::<Hello>)),
        ..get(
            "/v1/hello",
            "hello",
            "The controller is up: its version and how it is.",
            Answer::Done(framed::<HelloAnswer>),
        )
    },
    Call {
        refusals: &[NotFound],
        ..get(
            "/v1/self",
            "self",
            "Which guest this is, as it is asked for.",
            Answer::Done(framed::<SelfView>),
        )
    },
    Call {
        refusals: &[NotFound],
        ..get("/v1/storage", "storage", "The mounts of this guest.", Answer::Done(framed::<StorageView>))
    },
    Call {
        parts: &[ID, WAIT],
        refusals: &[NotFound, NotYours],
        ..get(
            "/v1/operations/{id}",
            "operation",
            "How far a piece of work is.",
            Answer::Done(framed::<OperationView>),
        )
    },
    Call {
        method: Method::Delete,
        parts: &[ID, KEY],
        refusals: &[IdempotencyMismatch, NotFound, NotYours, UnderWay],
        ..get(
            "/v1/operations/{id}",
            "cancelOperation",
            "Cancels work that has not begun.",
            Answer::Done(framed::<OperationView>),
        )
    },
    Call {
        parts: &[WAIT],
        ..get(
            "/v1/snapshots",
            "snapshots",
            "The snapshots of this guest.",
            Answer::Done(framed::<SnapshotsView>),
        )
    },
    work(
        "/v1/snapshots",
        "takeSnapshot",
        "Takes a snapshot of this guest. It goes by itself when its time is over.",
        (Needed::Always, of::<SnapshotRequest>),
    ),
    Call {
        method: Method::Delete,
        parts: &[NAME, KEY],
        body: None,
        ..work(
            "/v1/snapshots/{name}",
            "deleteSnapshot",
            "Removes a snapshot of this guest before its time.",
            (Needed::Optional, of::<SnapshotRequest>),
        )
    },
    work(
        "/v1/rollback",
        "rollBack",
        "Takes this guest back to a snapshot that was taken through this API. What was written since is lost.",
        (Needed::Always, of::<RollBackRequest>),
    ),
    Call {
        parts: &[WAIT],
        ..get(
            "/v1/backups",
            "backups",
            "The backups of this guest: asked for, under way and kept.",
            Answer::Done(framed::<BackupsView>),
        )
    },
    work(
        "/v1/backups",
        "takeBackup",
        "Takes a backup of this guest now.",
        (Needed::Optional, of::<BackupRequest>),
    ),
    Call {
        parts: &[WAIT],
        ..get(
            "/v1/backups/due",
            "due",
            "Which backups of this guest are due, by which policy, and until when the agent waits for the controller.",
            Answer::Done(framed::<DueView>),
        )
    },
    Call {
        parts: &[ID, WAIT],
        refusals: &[NotFound, NotYours],
        ..get("/v1/backups/{id}", "backup", "One backup of this guest.", Answer::Done(framed::<BackupView>))
    },
    Call {
        parts: &[WAIT],
        ..get(
            "/v1/restore-tests",
            "restoreTests",
            "What was found when backups of this guest were restored, the newest first.",
            Answer::Done(framed::<RestoreTestsView>),
        )
    },
    Call {
        method: Method::Post,
        body: Some((Needed::Always, of::<TestReport>)),
        refusals: &[Forbidden, NotYours],
        ..get(
            "/v1/restore-tests/report",
            "reportRestoreTest",
            "What the controller of a scratch guest found. Only at the door of scratch guests; the first report stands.",
            Answer::Done(framed::<Reported>),
        )
    },
    work(
        "/v1/quiesce-windows",
        "askForWindow",
        "Asks for a backup with the guest's programs standing still. Nothing may be stopped before it is granted.",
        (Needed::Optional, of::<WindowRequest>),
    ),
    Call {
        parts: &[WINDOW, WAIT],
        refusals: &[NotFound, NotYours],
        ..get(
            "/v1/quiesce-windows/{id}",
            "window",
            "How far a quiesce window is.",
            Answer::Done(framed::<WindowView>),
        )
    },
    Call {
        method: Method::Delete,
        parts: &[WINDOW],
        refusals: &[NotFound, NotYours, UnderWay, WindowOver],
        ..get(
            "/v1/quiesce-windows/{id}",
            "giveWindowUp",
            "Gives a window up before its backup began. No backup is taken then.",
            Answer::Done(framed::<WindowView>),
        )
    },
    says(
        "/v1/quiesce-windows/{id}/quiesced",
        "quiesced",
        "Everything that ran stands still: the backup begins.",
        of::<Quiesced>,
    ),
    says(
        "/v1/quiesce-windows/{id}/released",
        "released",
        "What was stopped was started again. Taken whenever a window was granted, also when it is over.",
        of::<Released>,
    ),
    Call {
        parts: &[WAIT, TRIAL, TAKEN_BACK],
        ..get(
            "/v1/desired",
            "desired",
            "Which controller this guest should run, and whether it is its turn to change.",
            Answer::Done(framed::<DesiredView>),
        )
    },
    Call {
        parts: &[DIGEST],
        refusals: &[NotFound],
        ..get(
            "/v1/artifacts/{sha256}",
            "artifact",
            "The bytes of the controller that this guest should run, and of no other.",
            Answer::Bytes,
        )
    },
    Call {
        parts: &[
            Param {
                location: ParamLocation::Query,
                name: "after",
                says: "the records behind the one of this number; 0 is the beginning",
                schema: number,
            },
            Param {
                location: ParamLocation::Query,
                name: "limit",
                says: "how many records at most: 1 to 100",
                schema: limit,
            },
        ],
        ..get(
            "/v1/audit",
            "audit",
            "What was decided and done about this guest, oldest first.",
            Answer::Done(framed::<AuditPage>),
        )
    },
];

fn wait(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "string", "pattern": "^([1-9]|[1-4][0-9]|5[0-5])s$" })
}

fn number(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "integer", "minimum": 0, "maximum": i64::MAX })
}

fn limit(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "integer", "minimum": 1, "maximum": super::audit::RECORDS_MAX })
}
