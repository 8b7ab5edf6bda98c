//! The form of a table of calls, described as OpenAPI.

pub mod openapi;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::code::ErrorCode;
use crate::envelope::Envelope;

/// Makes the schema of a type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A method of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Reads.
    Get,
    /// Requests an action.
    Post,
    /// Sets a value. Repeating the call changes nothing.
    Put,
    /// Changes parts of a value.
    Patch,
    /// Takes something back.
    Delete,
}

impl Method {
    /// As it is written in a request.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Who may call, with the refusals that all its calls share.
pub trait Caller: Copy + 'static {
    /// What any call of this caller may be refused with.
    fn refusals(self) -> &'static [ErrorCode];

    /// What a call with a body may also be refused with.
    fn body_refusals(self) -> &'static [ErrorCode];

    /// The security scheme of the document that this caller needs; none is for anybody.
    fn scheme(self) -> Option<&'static str>;
}

/// Where a part of the request is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamLocation {
    /// In the path; it is always there.
    Path,
    /// In the query, where the caller likes.
    Query,
    /// Among the headers, where the caller likes.
    Header,
}

/// A part of the request besides its body.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Where.
    pub location: ParamLocation,
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub says: &'static str,
    /// Its form.
    pub schema: SchemaOf,
}

/// Whether a body must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// Always.
    Always,
    /// It may be left out.
    Optional,
    /// Always, and it is bytes as they are, not JSON.
    Octets,
}

/// What comes back when all is well.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// Status 200, in the envelope.
    Done(SchemaOf),
    /// Status 201, in the envelope: a thing that was made.
    Made(SchemaOf),
    /// Status 201 or 200, in the envelope: a thing that was made, or only judged.
    MadeOrJudged(SchemaOf),
    /// Status 200 or 202, in the envelope: done, or still to be decided.
    DoneOrTaken(SchemaOf),
    /// Status 202, in the envelope: work that was taken.
    Taken(SchemaOf),
    /// Status 200, and no envelope: bytes as they are.
    Bytes,
    /// Status 200, and no envelope: a page of text.
    Text,
    /// Status 200 or 206, and no envelope: bytes as they are, all or those that `Range` names.
    BytesOrPart,
    /// Status 200, and no envelope: this table, as an OpenAPI document.
    Description,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Call<C: 'static> {
    /// How.
    pub method: Method,
    /// Where.
    pub path: &'static str,
    /// Its name in the tools of others.
    pub name: &'static str,
    /// What it does.
    pub does: &'static str,
    /// For whom.
    pub caller: C,
    /// The parameters besides the body.
    pub parts: &'static [Param],
    /// The body.
    pub body: Option<(Needed, SchemaOf)>,
    /// The answer.
    pub answer: Answer,
    /// What it refuses beyond [`Call::always`].
    pub refusals: &'static [ErrorCode],
}

impl<C: Caller> Call<C> {
    /// What every call of its kind may be refused with.
    pub fn always(&self) -> impl Iterator<Item = ErrorCode> {
        let body = if self.body.is_some() { self.caller.body_refusals() } else { &[] };
        self.caller.refusals().iter().chain(body).copied()
    }
}

/// The schema of a type.
pub fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The schema of an answer in its envelope.
pub fn framed<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Envelope<T>>()
}
