//! Duties that one hub has at a time, each with a type.
//!
//! Several hubs may work on one database. What must happen once, whatever hub does it, is a duty, and a hub acts in it
//! only with a [`Term`](super::Term) of that type.

/// What one hub does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Duty {
    /// The dead-man's switch: which hosts are silent.
    DeadMansSwitch,
    /// The timer of the alert engine, and the hub's own conditions.
    Alerts,
    /// Notices out of the outbox.
    Deliveries,
    /// Events to the webhook.
    Webhook,
    /// Notices to customers about reads of wrapped keys.
    EscrowNotices,
    /// The timer of rollouts.
    Rollouts,
    /// The timer of work orders.
    WorkOrders,
    /// Deletion of what is past its time.
    Upkeep,
}

impl Duty {
    pub const ALL: [Self; 8] = [
        Self::DeadMansSwitch,
        Self::Alerts,
        Self::Deliveries,
        Self::Webhook,
        Self::EscrowNotices,
        Self::Rollouts,
        Self::WorkOrders,
        Self::Upkeep,
    ];

    /// As it is stored and logged.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeadMansSwitch => "dead_mans_switch",
            Self::Alerts => "alerts",
            Self::Deliveries => "deliveries",
            Self::Webhook => "webhook",
            Self::EscrowNotices => "escrow_notices",
            Self::Rollouts => "rollouts",
            Self::WorkOrders => "work_orders",
            Self::Upkeep => "upkeep",
        }
    }

    /// The duty of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|duty| duty.as_str() == name)
    }
}

/// A duty as a type.
pub trait DutyType: Send + Sync + 'static {
    const DUTY: Duty;
}

/// One type without a value for each duty.
macro_rules! duty_types {
    ($($name:ident)*) => {$(
        #[derive(Debug)]
        pub enum $name {}

        impl DutyType for $name {
            const DUTY: Duty = Duty::$name;
        }
    )*};
}

duty_types!(DeadMansSwitch Alerts Deliveries Webhook EscrowNotices Rollouts WorkOrders Upkeep);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duty_is_found_by_its_name() {
        for duty in Duty::ALL {
            assert_eq!(Duty::named(duty.as_str()), Some(duty));
        }
        assert_eq!(Duty::named("everything"), None);
    }
}
