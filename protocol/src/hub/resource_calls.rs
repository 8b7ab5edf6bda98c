//! Calls of the parts of a desired document, and of its versions.

use schemars::{JsonSchema as _, Schema, SchemaGenerator};

use super::calls::{CURSOR, Call, DRY_RUN, HOST, KEY, LIMIT, OF_GUESTS, SEEN, change, get, param, text};
use crate::api::{Answer, Method, Param, ParamLocation, framed, of};
use crate::code::ErrorCode::{self, *};
use crate::desired::{DesiredGuest, DesiredVolume, Reason};
use crate::generation::Generation;
use crate::id::{PolicyName, TargetName, VolumeName};
use crate::operator::{DesiredVersion, Page};
use crate::protection::BackupPolicy;
use crate::resource::DocumentDiff;
use crate::resource::on_host::OnHost;
use crate::resource::requests::{ChangeAnswer, PartChanged, PartPatch, PartPut, RollbackRequest};
use crate::resource::view::PartView;
use crate::storage::StorageTarget;

const GUEST: Param = param(ParamLocation::Path, "guest", "uid or name of a guest of the document", text);
const VOLUME: Param = param(ParamLocation::Path, "volume", "a volume of the guest", of::<VolumeName>);
const TARGET: Param = param(ParamLocation::Path, "target", "a storage target", of::<TargetName>);
const POLICY: Param = param(ParamLocation::Path, "policy", "a backup policy", of::<PolicyName>);
const GENERATION: Param =
    param(ParamLocation::Path, "generation", "a version of the document", of::<Generation>);
const FROM: Param = param(ParamLocation::Query, "from", "the earlier version; 0 is none", of::<Generation>);
const TO: Param =
    param(ParamLocation::Query, "to", "the later version; the newest by default", of::<Generation>);
const REASON: Param = param(ParamLocation::Query, "reason", "why; kept in the history", of::<Reason>);
const ON_HOST: Param = param(
    ParamLocation::Query,
    "on_host",
    "`leave` lets what the host still has stay there, no longer named by the document; `refuse` by default",
    on_host,
);

fn on_host(generator: &mut SchemaGenerator) -> Schema {
    OnHost::json_schema(generator)
}

/// What the change of a part may be refused with: by the rules of documents, and by those of parts.
const REFUSALS: &[ErrorCode] = &[
    DuplicateAddress,
    DuplicateGuest,
    DuplicateKey,
    DuplicateName,
    DuplicateTarget,
    DuplicateVmid,
    DuplicateVolume,
    GenerationConflict,
    GenerationJump,
    IdempotencyMismatch,
    InUse,
    Missing,
    NameTaken,
    NotFound,
    OnHost,
    PolicyUnknown,
    PreconditionFailed,
    PreconditionRequired,
    Size,
    StaleGeneration,
    Syntax,
    UnknownField,
    Unsupported,
    Version,
];

const PAGE: Answer = Answer::Done(framed::<Page<PartView>>);
const VIEW: Answer = Answer::Done(framed::<PartView>);
const CHANGED: Answer = Answer::Done(framed::<ChangeAnswer<PartChanged>>);

/// The six calls of one kind of part: its two paths, its two names, the parameters of its paths, its content.
macro_rules! calls_of {
    ($each:ident, $all:literal, $one:literal, [$($in_all:expr),*], [$($query:expr),*], $name:expr,
     ($list:literal, $show:literal, $create:literal, $put:literal, $patch:literal, $delete:literal), $what:literal, $content:ty) => {
        /// Calls of one kind of part.
        pub const $each: &[Call] = &[
            Call {
                parts: &[$($in_all,)* $($query,)* LIMIT, CURSOR],
                refusals: &[NotFound],
                ..get($all, $list, concat!("Lists each ", $what, " as desired, reported and last applied."), PAGE)
            },
            Call {
                parts: &[$($in_all,)* SEEN, KEY, DRY_RUN],
                refusals: REFUSALS,
                ..change($all, ($create, concat!("Makes a ", $what, " in the host's document.")),
                    Some(of::<PartPut<$content>>), Answer::MadeOrJudged(framed::<ChangeAnswer<PartChanged>>))
            },
            Call {
                parts: &[$($in_all,)* $name],
                refusals: &[NotFound],
                ..get($one, $show, concat!("One ", $what, " as desired, reported and last applied."), VIEW)
            },
            Call {
                method: Method::Put,
                parts: &[$($in_all,)* $name, SEEN, KEY, DRY_RUN],
                refusals: REFUSALS,
                ..change($one, ($put, concat!("Sets a ", $what, " of the host's document whole.")),
                    Some(of::<PartPut<$content>>), CHANGED)
            },
            Call {
                method: Method::Patch,
                parts: &[$($in_all,)* $name, SEEN, KEY, DRY_RUN],
                refusals: REFUSALS,
                ..change($one, ($patch, concat!("Changes fields of a ", $what, " of the host's document.")),
                    Some(of::<PartPatch>), CHANGED)
            },
            Call {
                method: Method::Delete,
                parts: &[$($in_all,)* $name, SEEN, KEY, REASON, ON_HOST, DRY_RUN],
                refusals: REFUSALS,
                ..change($one, ($delete, concat!("Takes a ", $what, " that nothing uses out of the host's document.")),
                    None, CHANGED)
            },
        ];
    };
}

calls_of!(
    GUESTS,
    "/v1/hosts/{host}/guests",
    "/v1/hosts/{host}/guests/{guest}",
    [HOST],
    [OF_GUESTS],
    GUEST,
    ("hostGuests", "hostGuest", "createHostGuest", "putHostGuest", "patchHostGuest", "deleteHostGuest"),
    "guest",
    DesiredGuest
);
calls_of!(
    VOLUMES,
    "/v1/hosts/{host}/guests/{guest}/volumes",
    "/v1/hosts/{host}/guests/{guest}/volumes/{volume}",
    [HOST, GUEST],
    [],
    VOLUME,
    ("hostVolumes", "hostVolume", "createHostVolume", "putHostVolume", "patchHostVolume", "deleteHostVolume"),
    "volume",
    DesiredVolume
);
calls_of!(
    STORAGE_TARGETS,
    "/v1/hosts/{host}/storage-targets",
    "/v1/hosts/{host}/storage-targets/{target}",
    [HOST],
    [],
    TARGET,
    (
        "storageTargets",
        "storageTarget",
        "createStorageTarget",
        "putStorageTarget",
        "patchStorageTarget",
        "deleteStorageTarget"
    ),
    "storage target",
    StorageTarget
);
calls_of!(
    POLICIES,
    "/v1/hosts/{host}/policies",
    "/v1/hosts/{host}/policies/{policy}",
    [HOST],
    [],
    POLICY,
    ("policies", "policy", "createPolicy", "putPolicy", "patchPolicy", "deletePolicy"),
    "backup policy",
    BackupPolicy
);

/// Calls of the versions of a document.
pub const VERSIONS: &[Call] = &[
    Call {
        parts: &[HOST, GENERATION],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/desired/history/{generation}",
            "desiredVersion",
            "One version of a host's desired document.",
            Answer::Done(framed::<DesiredVersion>),
        )
    },
    Call {
        parts: &[HOST, FROM, TO],
        refusals: &[NotFound],
        ..get(
            "/v1/hosts/{host}/desired/diff",
            "desiredDiff",
            "What differs between two versions of a host's desired document.",
            Answer::Done(framed::<DocumentDiff>),
        )
    },
    Call {
        parts: &[HOST, SEEN, KEY, DRY_RUN],
        refusals: REFUSALS,
        ..change(
            "/v1/hosts/{host}/desired/rollback",
            ("rollBackDesired", "Puts the content of an earlier version as the next one."),
            Some(of::<RollbackRequest>),
            Answer::Done(framed::<ChangeAnswer<DesiredVersion>>),
        )
    },
];
