//! The end of the demo: addresses and a clean stop.

use std::sync::mpsc;

use anyhow::{Context, Result};
use e2e::stage::{HOST, Stage};

use super::{Options, own_network, page};

/// Ends at once, or stays up until Ctrl-C.
pub fn end(mut stage: Stage, options: &Options) -> Result<()> {
    let link = page::link(&stage).context("nobody can sign in at the hub's page")?;
    if !options.once {
        let enter = if options.in_own_network { own_network::enter() } else { Vec::new() };
        let holdfast = stage.write_wrapper(&enter)?;
        let holdfast = holdfast.display();
        println!("\n── It stays up. Look around from another terminal:");
        for words in [
            "host list",
            &format!("host show {HOST}"),
            &format!("guest list {HOST}"),
            "guest show web",
            &format!("desired show {HOST}"),
            &format!("desired history {HOST}"),
            "events",
        ] {
            println!("   {holdfast} {words}");
        }
        page::show(&stage, &link, &enter);
        println!("   logs: {}/log/", stage.folder().display());
        println!("\nCtrl-C ends it.");
        wait_for_ctrl_c()?;
        println!();
    }
    stage.stop_agent().context("the agent did not end well")?;
    stage.stop_hub()?;
    stage.nothing_forbidden_was_sent()?;
    drop(stage);
    println!("\n── Everything is stopped. All went as expected.");
    Ok(())
}

fn wait_for_ctrl_c() -> Result<()> {
    let (reported, hear) = mpsc::sync_channel(1);
    ctrlc::set_handler(move || {
        // A second press finds the first still in the queue, and changes nothing.
        let _ = reported.try_send(());
    })
    .context("cannot listen for Ctrl-C")?;
    hear.recv().context("nobody can press Ctrl-C any more")
}
