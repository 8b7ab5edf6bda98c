//! The effects of a change before it is made.

use askama::Template;
use holdfast_protocol::id::TargetName;
use holdfast_protocol::resource::DocumentDiff;
use holdfast_protocol::resource::diff::{FieldChange, NamedGuest};
use holdfast_protocol::resource::effects::ChangeEffect;
use holdfast_protocol::resource::requests::ChangePreview;
use holdfast_protocol::resource::signatures::{Certainty, SignatureNeed};

use crate::RenderError;
use crate::form::values::Values;
use crate::frame::{Frame, When};

/// What the page is made of.
pub struct Review<'a> {
    /// What is changed, such as `guest web-1`.
    pub name: &'a str,
    pub host: &'a str,
    pub action: &'a str,
    pub preview: &'a ChangePreview,
    /// Everything that the form sent, to be sent again.
    pub fields: &'a Values,
    /// Names this change, so that sending it twice makes it once.
    pub key: &'a str,
    /// Whether there is a form to go back to.
    pub way_back: WayBack,
}

/// Where a person goes who wants it otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayBack {
    /// To the form, with what was typed.
    Form,
    /// To the page of the document.
    Document,
}

/// One row of the differences.
pub(crate) struct ChangeRow {
    pub of: String,
    pub field: String,
    pub before: String,
    pub after: String,
    pub remark: String,
}

struct EffectLine {
    subject: String,
    words: &'static str,
    because: Vec<String>,
}

struct SignatureLine {
    name: String,
    verb: &'static str,
    why: String,
    is_possible: bool,
}

#[derive(Template)]
#[template(path = "review.html")]
struct ReviewPage<'a> {
    frame: &'a Frame,
    review: &'a Review<'a>,
    rows: Vec<ChangeRow>,
    effects: Vec<EffectLine>,
    weaker: Vec<(String, Vec<String>)>,
    signatures: Vec<SignatureLine>,
    reported: Option<When>,
    is_nothing: bool,
    has_form: bool,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, review: &Review<'_>) -> Result<String, RenderError> {
    let preview = review.preview;
    let weaker = preview.diff.weaker.iter().map(|one| (one.guest.name.to_string(), one.what.clone()));
    let page = ReviewPage {
        frame,
        review,
        rows: rows(&preview.diff),
        effects: preview.effects.iter().map(effect).collect(),
        weaker: weaker.collect(),
        signatures: preview.signatures.iter().map(signature).collect(),
        reported: preview.reported_at.map(|at| frame.when(at)),
        is_nothing: preview.diff.is_empty(),
        has_form: review.way_back == WayBack::Form,
    };
    page.render()
}

/// The differences of two documents as rows.
pub(crate) fn rows(diff: &DocumentDiff) -> Vec<ChangeRow> {
    let whole = |of: &NamedGuest, before: &str, after: &str, remark: &str| ChangeRow {
        of: format!("guest {}", of.name),
        field: "the whole guest".to_owned(),
        before: before.to_owned(),
        after: after.to_owned(),
        remark: remark.to_owned(),
    };
    let field = |of: &str, change: &FieldChange| ChangeRow {
        of: of.to_owned(),
        field: change.field.clone(),
        before: change.before.clone().unwrap_or_else(|| "left out".to_owned()),
        after: change.after.clone().unwrap_or_else(|| "left out".to_owned()),
        remark: change.remark.clone().unwrap_or_default(),
    };
    let settings = diff.settings.iter().map(|change| field("document", change));
    let added = diff.added.iter().map(|guest| {
        let named = NamedGuest { name: guest.name.clone(), uid: guest.uid };
        let size = guest.size;
        let words = format!(
            "{}, {}, {} root disk, {}",
            size.cores, size.memory_mib, size.rootfs_gib, guest.network.address
        );
        whole(&named, "none", &words, "")
    });
    let changed = diff.changed.iter().flat_map(|guest| {
        let of = format!("guest {}", guest.guest.name);
        guest.changes.iter().map(move |change| field(&of, change)).collect::<Vec<_>>()
    });
    let unnamed = diff.unnamed.iter().map(|guest| {
        whole(
            guest,
            "in the document",
            "no longer named",
            "it becomes unmanaged and runs on: nothing is destroyed",
        )
    });
    settings.chain(added).chain(changed).chain(unnamed).collect()
}

fn effect(effect: &ChangeEffect) -> EffectLine {
    let subject = match (&effect.guest, &effect.storage) {
        (Some(guest), _) => format!("guest {}", guest.name),
        (None, Some(storage)) => format!("storage {storage}"),
        (None, None) => "each guest under a changed policy".to_owned(),
    };
    EffectLine { subject, words: effect.effect.words(), because: effect.because.clone() }
}

fn signature(need: &SignatureNeed) -> SignatureLine {
    let named = |guest: Option<&NamedGuest>, storage: Option<&TargetName>| {
        guest.map(|guest| guest.name.to_string()).or_else(|| storage.map(ToString::to_string))
    };
    SignatureLine {
        name: named(need.guest.as_ref(), need.storage.as_ref()).unwrap_or_default(),
        verb: need.verb.as_str(),
        why: need.why.clone(),
        is_possible: need.certainty == Certainty::Possible,
    }
}
