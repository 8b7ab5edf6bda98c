//! Customers as the hub keeps them.
//!
//! | call | request | answer |
//! | --- | --- | --- |
//! | `GET /v1/customers` | | [`crate::operator::Page`] of [`CustomerView`] |
//! | `POST /v1/customers` | [`NewCustomer`] | [`CustomerView`] |
//! | `GET /v1/customers/{customer}` | | [`CustomerView`], ETag is the version in quotes |
//! | `PATCH /v1/customers/{customer}`, `If-Match` | [`CustomerChange`] | [`CustomerView`] |
//! | `DELETE /v1/customers/{customer}`, `If-Match` | | [`CustomerView`] |
//!
//! The key is the `customer` of guests in desired documents. A document may name a customer that nobody registered: the
//! list has it too, with the origin `named`.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::host_label::{HostLabels, LabelChange, LabelError};
use crate::id::CustomerId;
use crate::text::texts;

texts! {
    /// What a customer is called among people.
    DisplayName, 1..=128, "a display name is 1 to 128 characters without control characters",
        |text| !text.chars().any(char::is_control);
    /// What the provider's people note about a customer.
    CustomerNotes, 1..=2048, "notes are 1 to 2048 characters without control characters but line ends",
        |text| !text.chars().any(|character| character.is_control() && character != '\n');
    /// Where a customer is reached by mail.
    MailContact, 3..=254, "an address of mail is up to 254 characters without spaces, with one '@' inside",
        |text| is_mail(text);
    /// Where a customer is reached by a webhook.
    WebhookContact, 9..=512, "a webhook is an https:// address of up to 512 characters without spaces",
        |text| text.starts_with("https://") && is_plain(text);
}

fn is_plain(text: &str) -> bool {
    !text.chars().any(|character| character.is_control() || character.is_whitespace())
}

fn is_mail(text: &str) -> bool {
    let parts = text.split_once('@');
    is_plain(text)
        && parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
}

/// How a customer is reached outside of the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Contact {
    /// By mail.
    Mail {
        /// The address.
        address: MailContact,
    },
    /// By a webhook.
    Webhook {
        /// The address.
        url: WebhookContact,
    },
}

impl fmt::Display for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mail { address } => f.write_str(address.as_str()),
            Self::Webhook { url } => f.write_str(url.as_str()),
        }
    }
}

/// Where a customer is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CustomerOrigin {
    /// An operator added it.
    Registered,
    /// A document or a report names it, and nobody added it.
    Named,
}

/// What is written about a customer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomerFields {
    /// What it is called among people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<DisplayName>,
    /// How it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<Contact>,
    /// Notes of the provider. The customer does not see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<CustomerNotes>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "HostLabels::is_empty")]
    pub labels: HostLabels,
}

/// A customer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomerView {
    /// The name that guests are marked with.
    pub name: CustomerId,
    /// Where it is known from.
    pub origin: CustomerOrigin,
    /// What is written about it.
    pub fields: CustomerFields,
    /// Counts its changes; 0 for one that nobody added.
    pub version: u64,
    /// When it was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
    /// Its guests, by the newest documents and the last reports.
    pub guests: u32,
}

/// Adds a customer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCustomer {
    /// The name that guests are marked with.
    pub name: CustomerId,
    /// What is written about it.
    #[serde(default)]
    pub fields: CustomerFields,
}

/// A field that can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CustomerField {
    /// `display_name`.
    DisplayName,
    /// `contact`.
    Contact,
    /// `notes`.
    Notes,
}

/// Changes a customer. What it does not name stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomerChange {
    /// A new display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<DisplayName>,
    /// A new contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<Contact>,
    /// New notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<CustomerNotes>,
    /// Labels that are set and removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelChange>,
    /// Fields that are removed. One that is set as well is set.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub remove: BTreeSet<CustomerField>,
}

impl CustomerFields {
    /// The fields after a change.
    ///
    /// # Errors
    /// [`LabelError`].
    pub fn changed(&self, change: &CustomerChange) -> Result<Self, LabelError> {
        fn next<T: Clone>(now: Option<&T>, new: Option<&T>, is_removed: bool) -> Option<T> {
            new.or_else(|| now.filter(|_| !is_removed)).cloned()
        }
        let removed = |field| change.remove.contains(&field);
        let labels = match &change.labels {
            Some(labels) => self.labels.changed(labels)?,
            None => self.labels.clone(),
        };
        let display_name = next(
            self.display_name.as_ref(),
            change.display_name.as_ref(),
            removed(CustomerField::DisplayName),
        );
        let contact = next(self.contact.as_ref(), change.contact.as_ref(), removed(CustomerField::Contact));
        let notes = next(self.notes.as_ref(), change.notes.as_ref(), removed(CustomerField::Notes));
        Ok(Self { display_name, contact, notes, labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_is_an_address_or_an_https_webhook() {
        for (text, good) in [("a@b", true), ("a b@c", false), ("@b", false), ("a@", false), ("a@b@c", false)]
        {
            assert_eq!(MailContact::try_from(text.to_owned()).is_ok(), good, "{text}");
        }
        for (text, good) in
            [("https://a.example/x", true), ("http://a.example", false), ("https://a b", false)]
        {
            assert_eq!(WebhookContact::try_from(text.to_owned()).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn a_change_sets_removes_and_leaves_the_rest() {
        let text = |text: &str| DisplayName::try_from(text.to_owned()).unwrap();
        let notes = CustomerNotes::try_from("pays late".to_owned()).ok();
        let before =
            CustomerFields { display_name: Some(text("Acme")), notes: notes.clone(), ..Default::default() };
        let change = CustomerChange {
            display_name: Some(text("Acme Inc.")),
            remove: [CustomerField::DisplayName, CustomerField::Contact].into(),
            ..Default::default()
        };
        let after = before.changed(&change).unwrap();
        assert_eq!((after.display_name, after.notes), (Some(text("Acme Inc.")), notes));
        let change = CustomerChange { remove: [CustomerField::Notes].into(), ..Default::default() };
        assert_eq!(before.changed(&change).unwrap().notes, None);
    }
}
