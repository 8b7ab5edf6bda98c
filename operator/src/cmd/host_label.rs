//! `holdfast host label` and `holdfast host window`.

use holdfast_protocol::host_label::LabelChange;
use holdfast_protocol::operator::{HostState, HostView, UpdateWindowsPut};

use crate::args::{LabelTerm, WindowArgs};
use crate::cmd_errors::HostLabelError;
use crate::error::CliError;
use crate::hub::{Hub, WHOLE};
use crate::screen::Screen;
use crate::{clock, prompt, render};

/// Sets and removes labels of one host.
pub async fn label(host: &str, changes: Vec<LabelTerm>, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let mut change = LabelChange::default();
    for term in changes {
        let twice = match term {
            LabelTerm::Set(key, value) => {
                let named = key.as_str().to_owned();
                change.set.insert(key, value).map(|_| named)
            }
            LabelTerm::Remove(key) => {
                let named = key.as_str().to_owned();
                Some(named).filter(|_| !change.remove.insert(key))
            }
        };
        if let Some(key) = twice {
            return Err(HostLabelError::Twice { key }.into());
        }
    }
    let view: HostView = hub.post(&["v1", "hosts", host, "labels"], &change).await?;
    show(&[view], screen)
}

/// Writes the windows of hosts.
pub async fn window(args: WindowArgs, hub: &Hub, screen: &Screen) -> Result<(), CliError> {
    let WindowArgs { mut hosts, label, windows, any_time: _, assume_yes } = args;
    let put = UpdateWindowsPut { windows: windows.try_into().map_err(HostLabelError::Windows)? };
    if let Some(label) = label {
        let mut all: Vec<HostView> = hub.list(&["v1", "hosts"], &[], WHOLE).await?;
        all.retain(|host| host.state != HostState::Revoked && label.matches(&host.labels));
        if all.is_empty() {
            return Err(HostLabelError::NoHost { label: label.to_string() }.into());
        }
        let names: Vec<&str> = all.iter().map(|host| host.name.as_str()).collect();
        let question = format!("Write the windows of {} hosts ({})?", names.len(), names.join(", "));
        prompt::confirm(&question, assume_yes)?;
        hosts = all.iter().map(|host| host.id.to_string()).collect();
    }
    let body = serde_json::to_vec(&put).map_err(CliError::Unwritable)?;
    let mut views = Vec::new();
    for host in &hosts {
        let view: HostView = hub.put(&["v1", "hosts", host, "update-windows"], body.clone()).await?;
        views.push(view);
    }
    show(&views, screen)
}

fn show(hosts: &[HostView], screen: &Screen) -> Result<(), CliError> {
    screen.show(&hosts, |hosts, style| render::host::hosts(hosts, clock::now(), style))
}
