//! Text of the kit and of fetched keys.

use crate::cmd::escrow::{FetchedKey, Kit, KitTarget};

/// Sentences are this wide; commands are never broken.
const COLUMNS: usize = 78;

/// The page, to be printed.
pub fn kit(kit: &Kit) -> String {
    let made_at: String = kit.made_at.to_string().chars().take("2026-11-22".len()).collect();
    let title = format!("Off-site backups of {}", kit.host);
    let mut text = format!("{title}\n{}\n\n", "=".repeat(title.chars().count()));
    text += &format!("Host: {}\nCustomer: {}\nAs of: {made_at}\n\n", kit.host, kit.customer);
    text += &wrapped(
        "This page and the sheet with the eleven words bring the guests' files back, without the box they came from and without \
         any program of Holdfast. There is no secret on it.",
        "",
    );
    text += "\nGuests\n------\n\n";
    if kit.guests.is_empty() {
        text += "No guest was reported to the hub yet: the list of the server names them.\n";
    }
    for guest in &kit.guests {
        let numbers: Vec<String> = guest.vmids.iter().map(ToString::to_string).collect();
        let (now, before) = numbers.split_first().map_or(("", &[][..]), |(now, rest)| (now.as_str(), rest));
        let before =
            if before.is_empty() { String::new() } else { format!(" (before: {})", before.join(", ")) };
        text += &format!("  {}: {now}{before}\n", guest.name);
    }
    kit.targets.iter().map(target).fold(text, |text, part| text + &part)
}

fn target(target: &KitTarget) -> String {
    let title = format!("Off-site target {}", target.target);
    let mut text = format!("\n{title}\n{}\n\n", "-".repeat(title.chars().count()));
    match &target.sheet {
        Some(sheet) => text += &format!("Sheet: {}, made {}\n", sheet.code, sheet.made_at),
        None => {
            text += &wrapped(
                "!! No recovery code opens this key. Without one the backups there are lost with the box: run `agentd escrow \
                 create` on it.",
                "",
            );
        }
    }
    for (name, value) in &target.facts {
        text += &format!("{name}: {value}\n");
    }
    for (number, step) in target.steps.iter().enumerate() {
        text.push('\n');
        text += &wrapped(&format!("{:>2}. {}", number + 1, step.says), "    ");
        for command in &step.commands {
            text += &format!("        {command}\n");
        }
    }
    text += &format!("\nFor the operator: on {}, as root, once for this customer:\n", server(target));
    for line in &target.account {
        text += &format!("        {line}\n");
    }
    text + &wrapped(
        "The second line prints the account's secret, this once: it goes to the customer by another way than this page. Where the \
         account is there already, the last two lines are enough.",
        "",
    )
}

fn server(target: &KitTarget) -> &str {
    target.facts.iter().find(|(name, _)| *name == "Server").map_or("the server", |(_, value)| value)
}

/// A sentence in lines, those after the first behind a margin.
fn wrapped(sentence: &str, margin: &str) -> String {
    let (mut text, mut line) = (String::new(), String::new());
    for word in sentence.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            text += &line;
            text.push('\n');
            line = format!("{margin}{word}");
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
    }
    text + &line + "\n"
}

/// Lists the written files and their keys.
pub fn fetched(written: &[FetchedKey]) -> String {
    let mut text = String::new();
    for FetchedKey { path, version } in written {
        text += &format!(
            "{}  sheet {}, made {}, key {}\n",
            path.display(),
            version.code,
            version.made_at,
            version.fingerprint
        );
    }
    text + "The hub recorded this and notifies the customer.\n"
}
