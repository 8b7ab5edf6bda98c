//! Notices of jobs by the contact of a customer.
//!
//! In: the contact of a customer's resource, and a notice. Out: a mail by the server of a receiver that the settings name, or
//! a POST of the notice, within the egress policy of all deliveries. Neither is signed: a contact has no secret, and the
//! notice says nothing that is one. Deliberately absent: the queue, and when to try again.

use holdfast_protocol::condition::Severity;
use holdfast_protocol::customer::Contact;
use holdfast_protocol::id::ReceiverName;
use holdfast_protocol::json;
use holdfast_protocol::objection::JobNotice;
use holdfast_protocol::secret::Secret;
use jiff::Timestamp;
use notify::channel::Smtp;
use notify::channel::smtp::{MailAddress, SmtpSettings};
use notify::url::{SecretUrl, UrlError};
use notify::{
    Alert, Channel, DeliveryError, Draft, GroupId, IncidentId, Link, Message, MessageState, OutboxId, Sender,
};
use tokio::sync::watch;

use super::delivery::ReceiverSet;
use crate::domain::alerting::notice_text::HubName;
use crate::store::OutgoingNotice;

/// The most bytes of a notice of the hub's own.
const NOTICE_BYTES_MAX: usize = 16 * 1024;

/// Why a notice did not reach a contact.
#[derive(Debug, thiserror::Error)]
pub enum ContactError {
    #[error("customer_mail in hub.toml names no receiver of kind smtp, so no customer gets mail")]
    NoMailServer,
    #[error("the contact is no address of mail that mail is sent to: {0}")]
    Address(notify::field::FieldError),
    #[error("the contact is no address of a webhook")]
    Url(#[source] UrlError),
    #[error("the notice cannot be written as a message")]
    Notice,
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
}

impl ContactError {
    /// Whether another try could end otherwise.
    #[must_use]
    pub const fn is_lasting(&self) -> bool {
        match self {
            Self::NoMailServer | Self::Address(_) | Self::Url(_) | Self::Notice => true,
            Self::Delivery(_) => false,
        }
    }
}

/// How contacts are reached.
#[derive(Clone, Debug)]
pub struct ContactRoute {
    /// The receivers of alerts as the settings name them now.
    pub set: watch::Receiver<ReceiverSet>,
    /// Whose mail server and sender are used.
    pub mail: Option<ReceiverName>,
    pub hub: HubName,
}

impl ContactRoute {
    /// Sends a notice of a job.
    ///
    /// # Errors
    /// [`ContactError`].
    pub async fn send(
        &self,
        to: &Contact,
        notice: &OutgoingNotice,
        now: Timestamp,
    ) -> Result<(), ContactError> {
        let id = format!("notice-{}-{}", notice.number, notice.correlation);
        let id = OutboxId::try_from(id).map_err(|_| ContactError::Notice)?;
        let set = self.set.borrow().clone();
        let sender = Sender::new(set.reach());
        match to {
            Contact::Webhook { url } => {
                let url =
                    SecretUrl::try_from(Secret::new(url.as_str().to_owned())).map_err(ContactError::Url)?;
                Ok(sender.post(&url, &id, notice.body.clone().into()).await?)
            }
            Contact::Mail { address } => {
                let server =
                    self.mail.as_ref().and_then(|name| set.smtp(name)).ok_or(ContactError::NoMailServer)?;
                let to = MailAddress::try_from(address.as_str().to_owned()).map_err(ContactError::Address)?;
                let settings = SmtpSettings { to: vec![to], ..SmtpSettings::clone(server) };
                let channel = Channel::Smtp(Smtp::try_from(settings).map_err(ContactError::Address)?);
                let notice = json::parse("a notice", notice.body.as_bytes(), NOTICE_BYTES_MAX)
                    .map_err(|_| ContactError::Notice)?;
                sender.deliver(&channel, &message(&notice, &self.hub)?, &id, now).await?;
                Ok(())
            }
        }
    }
}

/// A notice as a message for people.
fn message(notice: &JobNotice, hub: &HubName) -> Result<Message, ContactError> {
    let JobNotice { job, verb, host, guest, .. } = notice;
    let place = format!("{}/job/{job}", hub.pin);
    let what = verb.as_str();
    let when = match notice.due_at {
        Some(due) => format!("after {due:.0}"),
        None => "soon".to_owned(),
    };
    let incident = IncidentId::try_from(job.to_string()).map_err(|_| ContactError::Notice)?;
    Ok(Message::from(Draft {
        group: GroupId::digest_of(&place),
        state: MessageState::Firing,
        severity: Severity::Warning,
        title: format!("{what} of one of your guests waits, and is done {when}"),
        alerts: vec![Alert {
            incident,
            text: format!(
                "Job {job} ({what}) is signed for guest {guest} on {host}, and is done {when}. You may object until then. \
                 Operators see it, and one of them can sign a cancel: an objection alone does not stop the job."
            ),
            series: None,
        }],
        omitted: 0,
        remedy: Some(format!("holdfast job object {job} --reason \"…\"")),
        link: Link::try_from(format!("{}/", hub.url)).ok(),
        at: notice.at,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_when_and_how_to_object() {
        let notice = serde_json::json!({ "schema": "holdfast.job-notice/v1", "customer": "acme",
            "at": "2026-11-28T14:00:00Z", "job": "00000000-0000-0000-0000-000000000001", "verb": "destroy_guest",
            "host": "box7", "guest": "00000000-0000-0000-0000-000000000002", "due_at": "2026-11-28T14:10:00Z",
            "text": "x" });
        let notice: JobNotice = serde_json::from_value(notice).unwrap();
        let hub = HubName { pin: "p".to_owned(), url: "https://hub.example".to_owned() };
        let message = message(&notice, &hub).unwrap();
        assert_eq!(
            message.title,
            "destroy_guest of one of your guests waits, and is done after 2026-11-28T14:10:00Z"
        );
        assert!(message.remedy.as_deref().unwrap().starts_with("holdfast job object 00000000-"));
        assert!(
            message.alerts[0].text.ends_with("an objection alone does not stop the job."),
            "nothing is cut"
        );
        assert_eq!(message.link.as_ref().unwrap().as_str(), "https://hub.example/");
    }
}
