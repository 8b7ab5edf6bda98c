//! The replacement of a lost host: both sides of the order.
//!
//! In: the order as it was handed over, who may sign here, and who this is. Out: the checked order, or why it is none.
//! Pure. Deliberately absent: what is done then.

use holdfast_protocol::id::{HostId, HostName};
use holdfast_protocol::job::act::{Act, Sha256Text};
use holdfast_protocol::job::envelope::SignedJobError;
use holdfast_protocol::job::{HostEpoch, SeenHost, SignedJob, Verb};
use holdfast_protocol::pin::Pin;
use holdfast_trust::scope::{self, NotHere};
use holdfast_trust::{Accepted, Refused, Roster};
use jiff::Timestamp;

/// Why an order counts for nothing here.
#[derive(Debug, thiserror::Error)]
pub enum NoOrder {
    /// Not a signed job.
    #[error("what the hub handed over is no signed order")]
    Envelope(#[from] SignedJobError),
    /// The signatures, the bytes, or the policy.
    #[error("the operators' order is refused")]
    Refused(#[from] Refused),
    #[error("the hub handed over an order to {}, not to restore a host: look who runs the hub", .0.as_str())]
    Verb(Verb),
    /// Not the one that the invite names.
    #[error("the hub handed over another order than the invite names: look who runs the hub")]
    Exchanged,
    /// For another host.
    #[error("the order is for host {wanted}, and the hub hands over {here}: look who runs the hub")]
    Host {
        wanted: HostId,
        /// The host that the hub means.
        here: HostId,
    },
    /// For a host of another name.
    #[error("the order is for host {wanted}, and the hub calls it {here}: look who runs the hub")]
    Name {
        wanted: HostName,
        /// What the hub calls it.
        here: HostName,
    },
    /// For a host with another key.
    #[error(
        "the order lets the box with key {wanted} take the place, and this box has {here}: sign one with what \
         `agentd enroll --show-key` prints here"
    )]
    Key { wanted: Pin, here: Pin },
    /// For another host by what this host knows of itself, or it does not say for which.
    #[error(transparent)]
    NotHere(#[from] NotHere),
    /// Operators took it back.
    #[error("the order was taken back by the operators")]
    Withdrawn,
    /// No host followed it in its time.
    #[error(
        "the order ended at {until:.0}, and the hub served this box at {served:.0}: no box followed it, and it is over"
    )]
    Over {
        /// When it ended.
        until: Timestamp,
        /// When this host was served.
        served: Timestamp,
    },
    /// For another life: this host is the one that took the place, or has moved on since.
    #[error("the order ends epoch {wanted} of this host's state, and this is epoch {here}")]
    Epoch {
        wanted: HostEpoch,
        /// Which it is.
        here: HostEpoch,
    },
    #[error(
        "the order is good from {from:.0} to {until:.0} by this box's clock at {now:.0}: set the clock, or have a new one signed"
    )]
    Time {
        from: Timestamp,
        /// Not at or after this.
        until: Timestamp,
        now: Timestamp,
    },
}

/// The old host, as it knows itself.
#[derive(Clone, Copy, Debug)]
pub struct OldBox<'a> {
    pub host: HostId,
    /// Its name, and its own fingerprint.
    pub seen: &'a SeenHost,
    /// The life of its state.
    pub epoch: HostEpoch,
    /// When its hub last served it.
    pub served: Option<Timestamp>,
}

/// The new host: its key, and what it is to become.
#[derive(Clone, Copy, Debug)]
pub struct NewBox<'a> {
    /// Whose place it takes.
    pub host: HostId,
    /// Under what name.
    pub name: &'a HostName,
    /// Its own key.
    pub key: Pin,
}

fn signed(text: &str, roster: &Roster, host: HostId, now: Timestamp) -> Result<Accepted, NoOrder> {
    let order = roster.accept(&SignedJob::parse(text.as_bytes())?, now)?;
    let wanted = order.payload().host_id;
    if wanted == host { Ok(order) } else { Err(NoOrder::Host { wanted, here: host }) }
}

fn ordered(text: &str, roster: &Roster, host: HostId, now: Timestamp) -> Result<Accepted, NoOrder> {
    let order = signed(text, roster, host, now)?;
    match order.payload().act.verb() {
        Verb::RestoreHost => Ok(order),
        other => Err(NoOrder::Verb(other)),
    }
}

/// Whether this host, which has no records yet, may become that host.
///
/// # Errors
/// [`NoOrder`]; then this host takes no other host's place.
pub fn may_take_the_place(
    text: &str,
    named: &Sha256Text,
    roster: &Roster,
    new: NewBox<'_>,
    now: Timestamp,
) -> Result<Accepted, NoOrder> {
    let order = ordered(text, roster, new.host, now)?;
    if Sha256Text::from_digest(order.digest()) != *named {
        return Err(NoOrder::Exchanged);
    }
    let payload = order.payload();
    let said = payload.host.as_ref().map(|seen| &seen.name);
    let said = said.ok_or(NotHere::Unbound("which host it means by name and fingerprint"))?;
    if said != new.name {
        return Err(NoOrder::Name { wanted: said.clone(), here: new.name.clone() });
    }
    let Act::RestoreHost(args) = &payload.act else { return Err(NoOrder::Verb(payload.act.verb())) };
    let wanted = args.new_key.ok_or(NotHere::Unbound("the new box's key"))?;
    if wanted != new.key {
        return Err(NoOrder::Key { wanted, here: new.key });
    }
    let (from, until) = (payload.not_before.at(), payload.expires_at.at());
    if now < from || now >= until {
        return Err(NoOrder::Time { from, until, now });
    }
    Ok(order)
}

/// Whether this host was replaced. Its time does not matter: an old host may wake up after years. The life of its state
/// does: who took the place has another, and the order that made it does not end it. A host that its hub went on
/// serving after the order's end was not replaced by it. An order of an older `holdfast` does not name the host; it is
/// followed, since a host may sleep from before.
///
/// # Errors
/// [`NoOrder`]; then it continues with the state that it holds.
pub fn was_replaced(
    text: &str,
    withdrawal: Option<&str>,
    roster: &Roster,
    old: OldBox<'_>,
    now: Timestamp,
) -> Result<Accepted, NoOrder> {
    let order = ordered(text, roster, old.host, now)?;
    let payload = order.payload();
    if let Some(wanted) = &payload.host {
        scope::same(wanted, old.seen)?;
    }
    let wanted = payload.host_epoch;
    if wanted != old.epoch {
        return Err(NoOrder::Epoch { wanted, here: old.epoch });
    }
    let until = payload.expires_at.at();
    if let Some(served) = old.served.filter(|_| roster.policy.restore.is_over(until, old.served)) {
        return Err(NoOrder::Over { until, served });
    }
    match withdrawal {
        // What is no withdrawal of this order takes nothing back.
        Some(text) if takes_back(text, &order, roster, old, now).is_ok() => Err(NoOrder::Withdrawn),
        Some(_) | None => Ok(order),
    }
}

/// Whether a text takes back this very order. Its time does not matter either.
///
/// # Errors
/// [`NoOrder`].
pub fn takes_back(
    text: &str,
    order: &Accepted,
    roster: &Roster,
    old: OldBox<'_>,
    now: Timestamp,
) -> Result<Accepted, NoOrder> {
    let withdrawal = signed(text, roster, old.host, now)?;
    scope::meant_for(withdrawal.payload(), old.seen)?;
    match &withdrawal.payload().act {
        Act::WithdrawRestore(args) if args.order == Sha256Text::from_digest(order.digest()) => Ok(withdrawal),
        Act::WithdrawRestore(_) => Err(NoOrder::Exchanged),
        other => Err(NoOrder::Verb(other.verb())),
    }
}

#[cfg(test)]
mod tests;
