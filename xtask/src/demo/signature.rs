//! Chapter of the demo: a guest is deleted by a signature.

use anyhow::{Result, ensure};
use e2e::document;
use e2e::stage::{HOST, Stage};
use serde_json::Value;

use super::chapter::{chapter, typed, well};

/// A document without a guest deletes nothing; an operator's signature does.
pub fn delete(stage: &Stage, document: &Value) -> Result<()> {
    chapter(12, "A guest is taken out of the document: it runs on until an operator signs for its end");
    stage.apply(&document::without(document.clone(), "wiki"), "the customer left")?;
    typed("holdfast desired apply box1 …/operator/desired.json --yes --reason \"the customer left\"");
    stage.waiting("destroy_guest")?;
    let guests = stage.guests()?;
    let runs = guests.iter().any(|guest| guest["name"] == "wiki" && guest["run"] == "running");
    ensure!(runs, "wiki does not run any more, and nobody signed: {guests:#?}");
    stage.show(&["host", "show", HOST])?;
    typed("holdfast sign box1 wiki --reason \"the customer left\" --submit");
    let job = stage.sign(&["wiki"], "wiki", "the customer left")?;
    stage.job_done(&job)?;
    stage.guests_until("wiki is gone", |guests| {
        guests.iter().all(|guest| guest["name"] != "wiki") && guests.iter().all(well)
    })?;
    println!("   wiki is deleted; its backups stay");
    Ok(())
}
