//! May a box take the place of a lost one, and must a box stand still because another took its place? Both hang on one
//! order that operators signed; the hub hands it over and can make none.
//!
//! In: the order as it was handed over, who may sign here, and who this is. Out: the checked order, or why it is none.
//! Pure. Deliberately absent: what is done then.

use holdfast_protocol::id::HostId;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::job::envelope::SignedJobError;
use holdfast_protocol::job::{HostEpoch, SignedJob, Verb};
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
    /// Another order.
    #[error("the hub handed over an order to {}, not to restore a host: look who runs the hub", .0.as_str())]
    Verb(Verb),
    /// Not the one that the invite names.
    #[error("the hub handed over another order than the invite names: look who runs the hub")]
    Exchanged,
    /// For another host.
    #[error("the order is for host {wanted}, and the hub hands over {here}: look who runs the hub")]
    Host {
        /// For whom.
        wanted: HostId,
        /// Whom the hub speaks of.
        here: HostId,
    },
    /// For another life: this box is the one that took the place, or has moved on since.
    #[error("the order ends epoch {wanted} of this host's state, and this is epoch {here}")]
    Epoch {
        /// For which.
        wanted: HostEpoch,
        /// Which it is.
        here: HostEpoch,
    },
    /// Not now.
    #[error(
        "the order is good from {from:.0} to {until:.0} by this box's clock at {now:.0}: set the clock, or have a new one signed"
    )]
    Time {
        /// Not earlier.
        from: Timestamp,
        /// Not at or after this.
        until: Timestamp,
        /// The clock.
        now: Timestamp,
    },
}

fn ordered(text: &str, roster: &Roster, host: HostId, now: Timestamp) -> Result<Accepted, NoOrder> {
    let order = roster.accept(&SignedJob::parse(text.as_bytes())?, now)?;
    let payload = order.payload();
    match payload.act.verb() {
        Verb::RestoreHost if payload.host_id == host => Ok(order),
        Verb::RestoreHost => Err(NoOrder::Host { wanted: payload.host_id, here: host }),
        other => Err(NoOrder::Verb(other)),
    }
}

/// Whether this box, which has no records yet, may become `host`.
///
/// # Errors
/// [`NoOrder`]; then it becomes nobody.
pub fn may_take_the_place(
    text: &str,
    named: &Sha256Text,
    roster: &Roster,
    host: HostId,
    now: Timestamp,
) -> Result<Accepted, NoOrder> {
    let order = ordered(text, roster, host, now)?;
    if Sha256Text::from_digest(order.digest()) != *named {
        return Err(NoOrder::Exchanged);
    }
    let (from, until) = (order.payload().not_before.at(), order.payload().expires_at.at());
    if now < from || now >= until {
        return Err(NoOrder::Time { from, until, now });
    }
    Ok(order)
}

/// Whether this box was replaced. Its time does not matter: an old box may wake up after years. The life of its state
/// does: who took the place has another, and the order that made it does not end it.
///
/// # Errors
/// [`NoOrder`]; then it goes on by what it holds.
pub fn was_replaced(
    text: &str,
    roster: &Roster,
    (host, epoch): (HostId, HostEpoch),
    now: Timestamp,
) -> Result<Accepted, NoOrder> {
    let order = ordered(text, roster, host, now)?;
    let wanted = order.payload().host_epoch;
    if wanted == epoch { Ok(order) } else { Err(NoOrder::Epoch { wanted, here: epoch }) }
}
