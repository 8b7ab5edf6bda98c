//! Chapters of the demo: a killed agent and a destroyed guest.

use anyhow::{Result, ensure};
use e2e::stage::{HOST, Stage};
use e2e::wait;

use super::chapter::{chapter, done, typed, vmid, well};
use super::protection::{self, backup_now};

/// How long the backup is kept from ending, in milliseconds: longer than the agent is dead.
const HELD_MS: &str = "10000";

/// The agent is killed while Proxmox takes a backup for it, and follows the same task when it is back.
pub fn kill_agent(stage: &mut Stage) -> Result<()> {
    chapter(10, "The agent is killed in the middle of a backup, and goes on");
    let backups = |stage: &Stage| -> Result<usize> {
        Ok(stage.tasks()?.iter().filter(|task| task.contains(":vzdump:")).count())
    };
    let before = backups(stage)?;
    stage.fault(&["hold-worker", "vzdump", "start", HELD_MS])?;
    let job = backup_now(stage, "mail")?;
    wait::until("the backup begins", protection::TRIED, || Ok((backups(stage)? > before).then_some(())))?;
    stage.kill_agent()?;
    println!("   kill -9 of agentd, while Proxmox runs its backup");
    typed(&stage.start_agent(None)?);
    stage.job_done(&job)?;
    let taken = backups(stage)? - before;
    ensure!(taken == 1, "{taken} backups were begun where one was asked for");
    println!(
        "   the agent found its task in the journal and followed it to its end: one backup, no second one"
    );
    Ok(())
}

/// A guest is destroyed by hand and is made again from its newest backup.
pub fn destroy_by_hand(stage: &Stage) -> Result<()> {
    chapter(11, "An admin destroys a guest by hand, with its disks");
    let old = vmid(stage, "web")?;
    let before = stage.orders(&old, 0)?.count;
    let backups = done(stage, "quiesced_backup", "web")?;
    stage.fault(&["destroy", &old])?;
    println!("   guest {old} (web) and its volumes are gone; it had written {before} orders");
    stage.guests_until("web is back", |guests| {
        guests
            .iter()
            .any(|guest| guest["name"] == "web" && well(guest) && guest["vmid"].as_u64() != old.parse().ok())
    })?;
    let new = vmid(stage, "web")?;
    let after = stage.orders(&new, 0)?.count;
    println!("   made again as {new} from its newest backup, with {after} orders; its program runs");
    wait::until("a backup of what was made again", protection::TRIED, || {
        Ok((done(stage, "quiesced_backup", "web")? > backups).then_some(()))
    })?;
    println!("   backed up again, without being asked");
    stage.show(&["guest", "list", HOST])
}
