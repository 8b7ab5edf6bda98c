//! The agent's own alarm about a hub that does not answer.
//!
//! In: the state of the contact with the hub. Out: one message by the channel of `agent.toml` when the hub has been away
//! for too long, and one when it is back. What was announced is kept in the state folder, so a restart announces nothing
//! twice. A message that could not be delivered is tried again at the next look, under the same id.

use std::sync::Arc;

use holdfast_protocol::id::{HostId, NodeName};
use holdfast_protocol::json::chain;
use holdfast_protocol::listening::Listening;
use jiff::{SignedDuration, Timestamp};
use notify::message::{Alert, Draft, Message, MessageState};
use notify::{Channel, GroupId, OutboxId, Sender, Severity};
use tokio::sync::watch;

use super::stop::Stop;
use crate::model::hub_alarm::{ABSENCE, Announcement, LOOK_EVERY, judge};
use crate::port::clock::Clock;
use crate::port::hub::Contact;
use crate::port::hub_alarm_file::HubAlarmFile;

pub struct HubAlarmTask {
    pub host: HostId,
    pub node: NodeName,
    pub contact: watch::Receiver<Contact>,
    pub channel: Channel,
    pub sender: Sender,
    /// After how long a silence it is announced.
    pub after: SignedDuration,
    /// What was announced.
    pub file: HubAlarmFile,
    pub clock: Arc<dyn Clock>,
}

impl HubAlarmTask {
    /// Looks until the agent stops.
    pub async fn run(self, mut stop: Stop) {
        let mut listening = Listening::from(self.clock.now(), ABSENCE);
        let mut announced = self.file.read();
        loop {
            tokio::select! {
                () = stop.requested() => return,
                () = self.clock.sleep(LOOK_EVERY) => {}
            }
            let now = self.clock.now();
            let (since, reached) = (listening.look(now), self.contact.borrow().reached_at);
            let Some(announcement) = judge(announced, reached, since, self.after, now) else { continue };
            match self.announce(announcement, now).await {
                Ok(()) => {
                    tracing::warn!(?announcement, "the hub's state was announced");
                    announced = announcement.announced();
                    if let Err(error) = self.file.write(announced) {
                        tracing::error!(error = chain(&error), "what was announced could not be kept");
                    }
                }
                Err(error) => {
                    tracing::error!(error = chain(&error), "the hub's state could not be announced")
                }
            }
        }
    }

    async fn announce(
        &self,
        announcement: Announcement,
        now: Timestamp,
    ) -> Result<(), notify::DeliveryError> {
        let (word, since) = match announcement {
            Announcement::Away { since } => ("away", since),
            Announcement::Back { since } => ("back", since),
        };
        let id = OutboxId::digest_of(&format!("hub-alarm/{}/{since}/{word}", self.host));
        let message = message(self.host, &self.node, announcement, now);
        self.sender.deliver(&self.channel, &message, &id, now).await.map(|_| ())
    }
}

fn message(host: HostId, node: &NodeName, announcement: Announcement, now: Timestamp) -> Message {
    let (state, severity, title, text, remedy) = match announcement {
        Announcement::Away { since } => (
            MessageState::Firing,
            Severity::Critical,
            format!("{node}: the hub does not answer"),
            format!(
                "{node} has not reached its hub since {since:.0}. Guests, backups and restore tests go on; \
                 the hub's alerts about this host do not come meanwhile."
            ),
            Some("On the hub: systemctl status hubd. On the host: agentd status".to_owned()),
        ),
        Announcement::Back { since } => (
            MessageState::Resolved,
            Severity::Info,
            format!("{node}: the hub answers again"),
            format!("{node} has reached its hub again, after it was away since {since:.0}."),
            None,
        ),
    };
    let alerts = notify::IncidentId::try_from(format!("hub-{host}")).ok();
    Message::from(Draft {
        group: GroupId::digest_of(&format!("hub-alarm/{host}")),
        state,
        severity,
        title,
        alerts: alerts
            .into_iter()
            .map(|incident| Alert { incident, text: text.clone(), series: None })
            .collect(),
        omitted: 0,
        remedy,
        link: None,
        at: now,
    })
}

#[cfg(test)]
mod tests;
