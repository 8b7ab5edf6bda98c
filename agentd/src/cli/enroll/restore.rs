//! `agentd enroll --restore`: this box takes the place of a lost one. `agentd enroll --take-up`: its guests are back.
//!
//! Nothing is taken from the hub without the operators' order, held to the operators that root laid down here. What is
//! handed over is on the disk before the identity, and both before the command says so; cut off, it is simply run again.

use std::collections::BTreeSet;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::report::{GuestReport, Standing};
use holdfast_protocol::restore::{HandOver, RestoreRedeem, Restored};
use holdfast_trust::{Operators, Policy, Roster};
use jiff::Timestamp;

use super::{EnrollError, Invite, wait_or_give_up};
use crate::gate::restore::may_take_the_place;
use crate::port::handover::HandOverFolder;
use crate::port::hub::Hub;
use crate::port::identity::{Identity, IdentityFolder, Purpose};
use crate::port::status_door;
use crate::port::trust_files;
use crate::settings::{Settings, TrustSettings};

/// Who may sign on this box, by what root laid down.
pub(super) fn roster(trust: &TrustSettings) -> Result<Roster, EnrollError> {
    let texts = trust_files::laid_down(&trust.operators, &trust.policy)?;
    let texts = texts.ok_or_else(|| EnrollError::NoOperators { path: trust.operators.clone() })?;
    let operators = Operators::parse(&texts.operators)?;
    let policy = match texts.policy.as_str() {
        "" => Policy::first(),
        text => Policy::parse(text, &operators)?,
    };
    Ok(Roster { operators, policy })
}

/// Redeems a restore invite.
pub(super) async fn redeem(
    folder: &IdentityFolder,
    handed: &HandOverFolder,
    roster: &Roster,
    invite: Invite,
    now: Timestamp,
) -> Result<(Identity, HandOver), EnrollError> {
    let named = invite.order.ok_or(EnrollError::NotRestore)?;
    let hub = Hub::first_contact(&invite.hub, invite.ca)?;
    let key = folder.pending(Purpose::Enrol)?;
    let request = RestoreRedeem { secret: invite.secret, csr_pem: key.csr_pem()? };
    let mut failures = 0;
    let Restored { enrolled, order, handover } = loop {
        match hub.restore(&request).await {
            Ok(restored) => break restored,
            Err(error) => {
                failures += 1;
                wait_or_give_up(error, failures).await?;
            }
        }
    };
    may_take_the_place(&order, &named, roster, enrolled.host_id, now)?;
    handed.keep(&handover)?;
    let identity = folder.accept(&key, invite.hub.trim_end_matches('/'), enrolled)?;
    Ok((identity, handover))
}

/// What a person does next.
pub(super) fn next_steps(handed: &HandOverFolder, handover: &HandOver) -> String {
    let guests: Vec<&str> =
        handover.sections.guests.iter().flatten().map(|guest| guest.name.as_str()).collect();
    let mut text = format!(
        "This box takes the place of the lost one, which stands still should it come back.\n\
         Its guests were: {}. No document is taken until they are back, so that none is made anew, empty.\n",
        if guests.is_empty() { "none that it told of".to_owned() } else { guests.join(", ") }
    );
    match (&handover.escrow, &handover.withheld) {
        (Some(_), _) => {
            let from = handed.escrow();
            text.push_str(&format!(
                "The wrapped backup key: `agentd recover --from {} --to KEYFILE`, with the code on the sheet.\n",
                from.display()
            ));
        }
        (None, Some(why)) => text.push_str(&format!("The wrapped backup key was not handed over: {why}\n")),
        (None, None) => {}
    }
    text + "Once all is back: `agentd enroll --take-up`, then restart the agent.\n"
}

/// Lets documents be taken again, once every guest that was handed over is here, or named as one that stays away.
pub(super) fn take_up(settings: &Settings, without: &[String]) -> Result<(), EnrollError> {
    let handed = HandOverFolder::of(&settings.state.dir);
    let handover = handed.read()?.ok_or(EnrollError::NothingHandedOver)?;
    let status = status_door::ask(&settings.state.dir)?;
    let here = status.sections.guests.unwrap_or_default();
    let missing = missing(handover.sections.guests.as_deref().unwrap_or_default(), &here, without);
    if !missing.is_empty() {
        return Err(EnrollError::Missing { names: missing.join(", ") });
    }
    handed.take_up()?;
    println!("The next start of the agent takes documents again: systemctl restart agentd");
    Ok(())
}

/// Who of the lost box's guests is neither here nor named.
fn missing(lost: &[GuestReport], here: &[GuestReport], without: &[String]) -> Vec<String> {
    let there = |guest: &&GuestReport| matches!(guest.standing, Standing::Managed | Standing::Unmanaged);
    let here: BTreeSet<GuestUid> = here.iter().filter(there).filter_map(|guest| guest.uid).collect();
    let lost = lost.iter().filter(|guest| guest.uid.is_some_and(|uid| !here.contains(&uid)));
    lost.map(|guest| guest.name.clone()).filter(|name| !without.contains(name)).collect()
}
