//! The story of the demo: the chapters of the quick one.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::stage::{HOST, Options, Runtime, Stage};
use e2e::{document, wait};
use serde_json::Value;

use super::chapter::{chapter, done, typed, vmid, well};
use super::{certificate, loss, protection, signature};

/// Some things about a guest are observed once a minute.
const HEALED: Duration = Duration::from_secs(180);

/// How much of the story is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Guests are made, and brought back to what the document requires.
    Quick,
    /// Also backups, restore tests, losses and a signature.
    Whole,
}

impl Length {
    /// What will happen, and how long it takes.
    pub const fn introduction(self) -> &'static str {
        match self {
            Self::Quick => {
                "A simulated Proxmox VE, a hub, an agent and three guests are set up; two guests are changed by hand\n\
                 and come back. It takes less than a minute."
            }
            Self::Whole => {
                "A simulated Proxmox VE, a hub, an agent and three guests are set up; two guests are changed by hand\n\
                 and come back. Then the guests are backed up with their programs stopped, each backup is tried and\n\
                 the certificate of one test is verified, the agent is killed during a backup, a guest is destroyed\n\
                 by hand and comes back, and another one is deleted by a signature. It takes about two minutes;\n\
                 `--quick` ends before the backups."
            }
        }
    }
}

/// Runs the story, and returns the stage as it is at the end.
pub fn report(options: Options, length: Length) -> Result<Stage> {
    println!("\n{}\nAll of it is in {}", length.introduction(), options.folder.display());
    let runtime = options.runtime;
    let mut stage = Stage::new(options)?;
    set_up(&mut stage, runtime, length)?;
    let document = document::story(&stage.ground());
    make_guests(&stage, &document)?;
    heal(&stage)?;
    let number = match length {
        Length::Quick => 7,
        Length::Whole => {
            let document = protection::promise(&stage, &document, runtime)?;
            protection::back_up(&stage)?;
            protection::restore_tests(&stage)?;
            certificate::fetched_and_verified(&stage, "web")?;
            loss::kill_agent(&mut stage)?;
            loss::destroy_by_hand(&stage)?;
            signature::delete(&stage, &document)?;
            13
        }
    };
    end(&stage, number, length)?;
    Ok(stage)
}

fn set_up(stage: &mut Stage, runtime: Runtime, length: Length) -> Result<()> {
    chapter(1, "A Proxmox VE (simulated: same API, same errors, real archives)");
    let proxmox = stage.start_simulator()?;
    println!("   node {} at {}", proxmox.node, proxmox.url);

    chapter(2, "A hub in an empty folder, and an operator who logs in");
    let url = stage.start_hub()?;
    println!("   hub at {url}");
    typed(&stage.log_in()?);

    chapter(3, "The host is set up: pool, user, roles, narrow tokens, grants, and who may sign");
    let choices = match length {
        Length::Quick => &[][..],
        Length::Whole => runtime.restore_tests(),
    };
    typed(&stage.set_up_agent_with(choices)?);
    if length == Length::Whole {
        typed(&stage.make_signer("ada")?);
    }

    chapter(4, "The agent enrols with a one-time invite and starts, without root");
    typed(&stage.enrol_agent()?);
    typed(&stage.start_agent(None)?);
    Ok(())
}

fn make_guests(stage: &Stage, document: &Value) -> Result<()> {
    chapter(5, "The operator asks for three guests");
    let file = stage.write_document(document)?;
    let file = file.to_str().context("the stage's folder has a plain name")?;
    let reason = ["--yes", "--watch", "--reason", "the first three guests"];
    stage.show(&[&["desired", "apply", HOST, file], &reason[..]].concat())?;
    stage.guests_until("three guests run and said hello", |guests| {
        guests.len() == 3 && guests.iter().all(well)
    })?;
    stage.show(&["guest", "list", HOST])
}

fn heal(stage: &Stage) -> Result<()> {
    chapter(6, "An admin changes one guest's memory and stops another, by hand");
    let (first, second) = (vmid(stage, "mail")?, vmid(stage, "wiki")?);
    let wanted = memory(stage, &first)?;
    stage.fault(&["set", &first, "memory=128"])?;
    println!("   guest {first}: memory {wanted} -> 128");
    stage.fault(&["stop", &second])?;
    println!("   guest {second}: stopped");
    // What the guests reported may be older than the stop: what counts is that the agent did the work and read it back.
    wait::until("the agent's work on both", HEALED, || {
        let done = done(stage, "reconfigure", "mail")? > 0 && done(stage, "start", "wiki")? > 0;
        Ok(done.then_some(()))
    })?;
    stage.guests_until("both are well", |guests| guests.iter().all(well))?;
    ensure!(memory(stage, &first)? == wanted, "guest {first} has not its memory back");
    println!("   healed: guest {first} has {wanted} again, guest {second} runs");
    Ok(())
}

fn end(stage: &Stage, number: u8, length: Length) -> Result<()> {
    chapter(number, "What the operator sees");
    stage.show(&["host", "list"])?;
    stage.show(&["guest", "list", HOST])?;
    let guests = match length {
        Length::Quick => 3,
        Length::Whole => {
            protection::all_protected(stage)?;
            2
        }
    };
    let configurations = stage.configurations()?;
    let marked = configurations.values().filter(|text| text.contains("holdfast guest ")).count();
    ensure!(marked == guests, "{marked} guests carry our mark in Proxmox, where {guests} were asked for");
    Ok(())
}

/// The memory size in Proxmox's own file.
fn memory(stage: &Stage, vmid: &str) -> Result<String> {
    let number: u32 = vmid.parse().context("a VMID is a number")?;
    let configurations = stage.configurations()?;
    let text = configurations.get(&number).with_context(|| format!("guest {vmid} is gone"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("memory: ")).context("a guest has memory")?;
    Ok(line.to_owned())
}
