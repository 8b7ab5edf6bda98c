//! `holdfast customer`: customers of the hub.

use std::collections::BTreeMap;

use holdfast_protocol::customer::{
    Contact, CustomerChange, CustomerField, CustomerFields, CustomerView, NewCustomer,
};
use holdfast_protocol::host_label::{HostLabels, LabelChange, LabelKey, LabelValue};
use holdfast_protocol::id::CustomerId;

use crate::args::{CustomerCommand, FieldArg, FieldArgs, LabelTerm};
use crate::cmd_errors::HostLabelError;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::screen::Screen;
use crate::{clock, prompt, render};

pub async fn run(command: CustomerCommand, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    match command {
        CustomerCommand::List => {
            let all: Vec<CustomerView> = hub.list(&["v1", "customers"], &[], WHOLE).await?;
            screen.show(&all, |all, style| render::customer::customers(all, style))
        }
        CustomerCommand::Show { customer } => show(&read(hub, &customer).await?, screen),
        CustomerCommand::Add { customer, fields, labels } => {
            let change = labels_change(labels)?.unwrap_or_default();
            let labels = HostLabels::try_from(change.set).map_err(HostLabelError::Labels)?;
            let contact = contact(&fields);
            let FieldArgs { display_name, notes, .. } = fields;
            let fields = CustomerFields { display_name, contact, notes, labels };
            let made: CustomerView =
                hub.post(&["v1", "customers"], &NewCustomer { name: customer, fields }).await?;
            show(&made, screen)
        }
        CustomerCommand::Set { customer, fields, labels, remove } => {
            let before = read(hub, &customer).await?;
            let (contact, labels) = (contact(&fields), labels_change(labels)?);
            let FieldArgs { display_name, notes, .. } = fields;
            let remove = remove.into_iter().map(CustomerField::from).collect();
            let change = CustomerChange { display_name, contact, notes, labels, remove };
            let path = ["v1", "customers", customer.as_str()];
            show(&hub.patch_seen::<CustomerView>(&path, before.version, &change).await?, screen)
        }
        CustomerCommand::Remove { customer, assume_yes } => {
            let before = read(hub, &customer).await?;
            prompt::confirm(&format!("Remove {customer}? What is written about it goes."), assume_yes)?;
            let path = ["v1", "customers", customer.as_str()];
            show(&hub.delete_seen::<CustomerView>(&path, before.version).await?, screen)
        }
    }
}

async fn read(hub: &Hub, customer: &CustomerId) -> Result<CustomerView, CliError> {
    Ok(hub.get(&["v1", "customers", customer.as_str()]).await?)
}

fn show(view: &CustomerView, screen: &Screen) -> Result<(), CliError> {
    screen.show(view, |view, _| render::customer::customer(view, clock::now()))
}

fn contact(fields: &FieldArgs) -> Option<Contact> {
    let mail = fields.mail.clone().map(|address| Contact::Mail { address });
    mail.or_else(|| fields.webhook.clone().map(|url| Contact::Webhook { url }))
}

/// The change of labels, where there is one.
fn labels_change(terms: Vec<LabelTerm>) -> Result<Option<LabelChange>, HostLabelError> {
    if terms.is_empty() {
        return Ok(None);
    }
    let mut set: BTreeMap<LabelKey, LabelValue> = BTreeMap::new();
    let mut change = LabelChange::default();
    for term in terms {
        let (key, is_twice) = match term {
            LabelTerm::Set(key, value) => (key.clone(), set.insert(key, value).is_some()),
            LabelTerm::Remove(key) => (key.clone(), !change.remove.insert(key)),
        };
        if is_twice {
            return Err(HostLabelError::Twice { key: key.as_str().to_owned() });
        }
    }
    change.set = set;
    Ok(Some(change))
}

impl From<FieldArg> for CustomerField {
    fn from(field: FieldArg) -> Self {
        match field {
            FieldArg::DisplayName => Self::DisplayName,
            FieldArg::Contact => Self::Contact,
            FieldArg::Notes => Self::Notes,
        }
    }
}
