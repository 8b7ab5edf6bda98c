//! `agentd enroll --restore` and `--take-up`: a host replaces a lost one.
//!
//! Nothing is taken from the hub without the operators' order, checked against the operators file that root installed
//! here. The handed-over data is on disk before the identity, and both before the command reports success. If it is
//! interrupted, it is simply run again.

use holdfast_protocol::restore::{HandOver, RestoreRedeem, Restored};
use holdfast_trust::{Operators, Policy, Roster};
use jiff::Timestamp;

use super::{EnrollError, Invite, wait_or_give_up};
use crate::gate::restore::{NewBox, may_take_the_place};
use crate::plan::inherited::was_there;
use crate::port::admin_socket::{self, Answer, Question, StatusError};
use crate::port::host_replacement::HandOverFolder;
use crate::port::hub::Hub;
use crate::port::identity::{Identity, IdentityFolder, Purpose};
use crate::port::trust_files;
use crate::settings::{Settings, TrustSettings};

/// Who may sign on this host, by the files that root installed.
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
    let new = NewBox { host: enrolled.host_id, name: &enrolled.host_name, key: key.fingerprint() };
    may_take_the_place(&order, &named, roster, new, now)?;
    handed.keep(&handover)?;
    let identity = folder.accept(&key, invite.hub.trim_end_matches('/'), enrolled)?;
    Ok((identity, handover))
}

/// The operator's next steps.
pub(super) fn next_steps(handover: &HandOver) -> String {
    let list = handover.sections.guests.iter().flatten();
    let guests: Vec<&str> = list.filter(|guest| was_there(guest)).map(|guest| guest.name.as_str()).collect();
    let mut text = format!(
        "This box takes the place of the lost one, which stands still should it come back.\n\
         Its guests were: {}. No document is taken until they are taken up, so that none is made anew, empty.\n",
        if guests.is_empty() { "none that it reported".to_owned() } else { guests.join(", ") }
    );
    for found in &handover.escrows {
        let (code, key) = (found.version.code, &found.version.fingerprint);
        text.push_str(&format!(
            "The wrapped key {key} was handed over, which sheet {code} opens; the customer was notified that it was read.\n"
        ));
    }
    if let Some(why) = &handover.withheld {
        text.push_str(&format!("The wrapped backup keys were not handed over: {why}\n"));
    }
    text + "Next: start the agent (systemctl enable --now agentd), then `agentd enroll --take-up`: its guests are written down as \
            lost and come back from their off-site backups. `agentd storage recover-key` opens the wrapped key with the code on \
            the sheet and seals it to this box: an operator puts that into the document and signs for the off-site target. Name \
            the goldens, too. Tunnels wait for their tokens: `holdfast sign HOST --tunnel-token TUNNEL --carry-over IDENTITY` \
            carries them over.\n"
}

/// Has the running agent write down the lost host's guests, which come back then, and take documents again.
pub(super) fn take_up(settings: &Settings, without: &[String]) -> Result<(), EnrollError> {
    let question = Question::TakeUp { without: without.to_vec() };
    let Answer::TakenUp { guests } = admin_socket::put(&settings.state.dir, question)? else {
        return Err(StatusError::Other.into());
    };
    println!("{guests} guests of the lost box are on record; documents are taken again.");
    println!("They come back once their backups are found; `agentd status` shows how far that is.");
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::inherited::{NotTaken, taking};

    /// A name copied from this list into `--without` is understood.
    #[test]
    fn who_is_named_as_a_guest_of_the_lost_box_is_known_to_the_taking_up() {
        let uid = |n: u32| format!("018f3c1e-6b1f-7c1d-9d0a-{n:012}");
        let guests = json!([
            { "uid": uid(1), "name": "web-1", "vmid": 301, "status": "managed", "run": "running" },
            { "uid": uid(2), "name": "wanted", "status": "absent", "run": "stopped" },
            { "uid": uid(1), "name": "copy", "vmid": 309, "status": "restored_copy", "run": "stopped" },
            { "name": "strangers", "vmid": 900, "status": "foreign", "run": "running" }
        ]);
        let handover: HandOver = serde_json::from_value(json!({ "sections": { "guests": guests } })).unwrap();
        let said = next_steps(&handover);
        assert!(said.contains("Its guests were: web-1. "), "{said}");
        let list = handover.sections.guests.as_deref();
        for name in ["wanted", "copy", "strangers"] {
            let without = [name.to_owned()];
            assert_eq!(taking(list, None, &without), Err(NotTaken::NoOne(name.to_owned())));
        }
        assert_eq!(taking(list, None, &["web-1".to_owned()]).unwrap().away.len(), 1);
    }
}
