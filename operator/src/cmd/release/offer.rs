//! Releases offered to hosts, and offers taken back.
//!
//! Hosts are taken in the order given. One that is refused ends the command, and those before it stay as they are now.

use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::stored::{HostOffer, OfferRequest, WithdrawnOffer};

use crate::error::CliError;
use crate::hub::Hub;
use crate::render::release::{OfferAtHost, WithdrawalAtHost};
use crate::screen::Screen;
use crate::{clock, render};

pub async fn offer(
    version: VersionNumber,
    hosts: &[String],
    hub: &Hub,
    screen: &Screen,
) -> Result<(), CliError> {
    let body = serde_json::to_vec(&OfferRequest { version }).map_err(CliError::Unwritable)?;
    let mut done = Vec::new();
    for host in hosts {
        let offer: HostOffer = hub.put(&["v1", "hosts", host, "release-offer"], body.clone()).await?;
        screen.note(&format!("release {version} is offered to {host}"));
        done.push(OfferAtHost { host: host.clone(), offer });
    }
    screen.show(&done, |done, style| render::release::offers(done, clock::now(), style))
}

pub async fn withdraw(hosts: &[String], hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let mut done = Vec::new();
    for host in hosts {
        let WithdrawnOffer { offer } = hub.delete(&["v1", "hosts", host, "release-offer"]).await?;
        done.push(WithdrawalAtHost { host: host.clone(), offer });
    }
    screen.show(&done, |done, style| render::release::withdrawals(done, style))
}
