//! The unit of the bridge of scratch guests.
//!
//! Input: the address that `--test-network` gives this host there. Output: the bridge with both ends, the file that
//! `holdfast-test-bridge.service` reads, and steps. Deliberately absent: making the bridge and its rules, which the
//! unit does, so that they are there after every boot.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use holdfast_protocol::local::PORT;
use holdfast_protocol::net::Ipv4Cidr;

use super::diff::StepState;
use super::local::{LocalAct, LocalError, LocalStep, file_state};
use super::plan::Choices;
use crate::model::policy::TestBridge;

/// The unit.
pub const UNIT: &str = "holdfast-test-bridge.service";
/// A short name that no other bridge has.
const BRIDGE: &str = "hftest0";

/// Both ends of the bridge, from this host's address there. The scratch guest gets the next one.
///
/// # Errors
/// When the network has no room for two.
pub fn both_ends(own: Ipv4Cidr) -> Result<TestBridge, &'static str> {
    const RULE: &str =
        "an address of this box with room for one guest after it, such as 10.254.254.1/30: prefix 8 to 30";
    if !(8..=30).contains(&own.prefix()) {
        return Err(RULE);
    }
    let host_bits = u32::MAX >> own.prefix();
    // Neither the network address nor the broadcast address.
    let is_a_hosts = |bits: u32| ![0, host_bits].contains(&(bits & host_bits));
    let next = own.address().to_bits().wrapping_add(1);
    let fits = is_a_hosts(own.address().to_bits()) && is_a_hosts(next);
    let next = Ipv4Addr::from_bits(next);
    if !fits {
        return Err(RULE);
    }
    Ok(TestBridge {
        bridge: BRIDGE.parse().map_err(|_| RULE)?,
        guest: format!("{next}/{}", own.prefix()).parse().map_err(|_| RULE)?,
        listener: SocketAddr::from((own.address(), PORT)),
    })
}

/// Steps, once the settings are written.
///
/// # Errors
/// When the file at this path cannot be read, or is a link.
pub fn steps(choices: &Choices) -> Result<Vec<LocalStep>, LocalError> {
    let speech = choices.scratch.as_ref().and_then(|scratch| scratch.speech.as_ref());
    let Some(speech) = speech else { return Ok(Vec::new()) };
    let path = file(&choices.config);
    let text = environment(speech);
    let status = file_state(&path, &text, StepState::Differs("it says other things"))?;
    let is_shipped = Path::new("/usr/lib/systemd/system").join(UNIT).exists();
    let runs = status == StepState::Done && Path::new("/sys/class/net").join(speech.bridge.as_str()).exists();
    let what = format!("what the bridge of tests reads, {}", path.display());
    let mut steps = vec![LocalStep { what, status, act: LocalAct::PlainFile { path, text } }];
    if choices.system_user.is_some() && is_shipped {
        let status = if runs { StepState::Done } else { StepState::Missing };
        steps.extend(of_unit(speech, &status));
    }
    Ok(steps)
}

/// The unit, and the bridge that it makes. It is restarted too: it may run with another address.
fn of_unit(speech: &TestBridge, status: &StepState) -> [LocalStep; 2] {
    let step = |verb: &str, what| LocalStep {
        what,
        status: status.clone(),
        act: LocalAct::Command(["systemctl", verb, UNIT].map(str::to_owned).to_vec()),
    };
    let made = format!("bridge {}, made now with this address", speech.bridge);
    [step("enable", format!("unit {UNIT}, from boot on")), step("restart", made)]
}

/// The file next to the settings.
fn file(config: &Path) -> PathBuf {
    config.with_file_name("test-bridge.env")
}

/// As systemd reads an `EnvironmentFile`.
fn environment(speech: &TestBridge) -> String {
    format!(
        "# Written by `agentd setup --test-network`; read by {UNIT}.\nBRIDGE={}\nADDRESS={}\nPREFIX={}\nPORT={}\n",
        speech.bridge,
        speech.listener.ip(),
        speech.guest.prefix(),
        speech.listener.port()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_gets_the_address_after_the_boxs_own() {
        let both = both_ends("10.254.254.1/30".parse().unwrap()).unwrap();
        assert_eq!((both.bridge.as_str(), both.guest.to_string().as_str()), ("hftest0", "10.254.254.2/30"));
        assert_eq!(both.listener.to_string(), "10.254.254.1:8443");
        insta::assert_snapshot!(environment(&both), @r"
        # Written by `agentd setup --test-network`; read by holdfast-test-bridge.service.
        BRIDGE=hftest0
        ADDRESS=10.254.254.1
        PREFIX=30
        PORT=8443
        ");
    }

    #[test]
    fn a_plan_names_the_unit_once() {
        let both = both_ends("10.254.254.1/30".parse().unwrap()).unwrap();
        let steps = of_unit(&both, &StepState::Missing);
        assert_eq!(steps.iter().filter(|step| step.what.contains(UNIT)).count(), 1, "{steps:?}");
        let runs = |step: &LocalStep| match &step.act {
            LocalAct::Command(words) => words[1].clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(steps.each_ref().map(runs), ["enable", "restart"]);
    }

    #[test]
    fn a_network_without_room_for_two_is_refused() {
        for bad in [
            "10.254.254.2/30",
            "10.254.254.3/30",
            "10.254.254.0/30",
            "10.254.254.1/31",
            "10.254.254.1/32",
            "10.0.0.1/7",
        ] {
            assert!(both_ends(bad.parse().unwrap()).is_err(), "{bad}");
        }
    }
}
