//! The table of all metrics.
//!
//! One row holds everything that is known of a metric. Those of use ([`holdfast_protocol::usage`]) have a table of their own.

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, save at a restart.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts by size, which only grow: `_bucket` with the label `le`, `_sum` and `_count`.
    Histogram,
}

impl Kind {
    /// As the text format names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Who serves a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Agent and hub.
    Host,
    /// The agent alone.
    Agent,
    /// The hub alone.
    Hub,
    /// The guest agent, in a file for node_exporter.
    Guest,
}

macro_rules! catalogue {
    ($($metric:ident = $name:literal, $kind:ident, $source:ident, [$($label:literal)*], $help:literal;)*) => {
        /// What is measured.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $(#[doc = $help] $metric,)*
        }

        impl Metric {
            /// Every metric.
            pub const ALL: &'static [Self] = &[$(Self::$metric,)*];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$metric => $name,)* }
            }

            /// How it behaves.
            #[must_use]
            pub const fn kind(self) -> Kind {
                match self { $(Self::$metric => Kind::$kind,)* }
            }

            /// Who serves it.
            #[must_use]
            pub const fn source(self) -> Source {
                match self { $(Self::$metric => Source::$source,)* }
            }

            /// Its labels, besides the host's at the hub.
            #[must_use]
            pub const fn labels(self) -> &'static [&'static str] {
                match self { $(Self::$metric => &[$($label),*],)* }
            }

            /// What it is, in one sentence.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$metric => $help,)* }
            }
        }
    };
}

catalogue! {
    AgentInfo = "holdfast_agent_info", Gauge, Host, ["node" "version" "proxmox_version"],
        "Versions of the agent and of Proxmox; always 1.";
    AgentProblems = "holdfast_agent_problems", Gauge, Host, [],
        "Problems that keep the agent from its work.";
    AgentStart = "holdfast_agent_start_time_seconds", Gauge, Host, [],
        "When the agent started, in seconds since 1970.";
    HostUnobserved = "holdfast_host_unobserved_since_timestamp_seconds", Gauge, Host, [],
        "Since when the agent could not read Proxmox's state; absent while it can.";
    Conditions = "holdfast_host_conditions", Gauge, Host, ["severity"],
        "Conditions that hold on the host, by severity.";
    TunnelUp = "holdfast_tunnel_up", Gauge, Host, ["tunnel" "unit"],
        "Whether a tunnel carries traffic: 1, in part too, or 0 where it is down or stopped. Absent while nothing proves either.";
    TunnelConnections = "holdfast_tunnel_ready_connections", Gauge, Host, ["tunnel"],
        "Connections of a tunnel that are ready; absent where it does not say.";
    TunnelSince = "holdfast_tunnel_state_since_timestamp_seconds", Gauge, Host, ["tunnel" "state"],
        "Since when a tunnel is in its state.";
    TunnelRestarts = "holdfast_tunnel_restarts_asked", Gauge, Host, ["tunnel"],
        "Restarts of a tunnel that the agent asked for within a day.";
    Waiting = "holdfast_host_requests_waiting_for_signature", Gauge, Host, [],
        "Requests that wait for an operator's signature.";
    StorageUsed = "holdfast_storage_used_bytes", Gauge, Host, ["storage"], "Bytes in use on a storage.";
    StorageSize = "holdfast_storage_size_bytes", Gauge, Host, ["storage"], "Size of a storage.";
    StorageUp = "holdfast_storage_active", Gauge, Host, ["storage"],
        "Whether a storage answers: 1, or 0 where Proxmox says that it is not there. Absent while that is unknown.";
    DiskFailing = "holdfast_disk_failing", Gauge, Host, ["disk" "model" "serial"],
        "Whether a disk says that it fails, or finds a fault of itself: 1 or 0. Absent while it was not read.";
    DiskWear = "holdfast_disk_wear_ratio", Gauge, Host, ["disk" "serial"],
        "How much of a disk's life in writes is used up.";
    DiskTemperature = "holdfast_disk_temperature_celsius", Gauge, Host, ["disk" "serial"],
        "Temperature of a disk, as it was last read.";
    DiskHours = "holdfast_disk_power_on_hours", Gauge, Host, ["disk" "serial"], "How long a disk was powered on.";
    DiskReallocated = "holdfast_disk_reallocated_sectors", Gauge, Host, ["disk" "serial"],
        "Sectors that a disk replaced by spare ones.";
    DiskPending = "holdfast_disk_pending_sectors", Gauge, Host, ["disk" "serial"],
        "Sectors that a disk could not read.";
    DisksRead = "holdfast_host_disks_read_timestamp_seconds", Gauge, Host, [], "When the disks were last read.";
    Temperature = "holdfast_host_temperature_celsius", Gauge, Host, ["sensor"],
        "Temperature of a sensor of the machine.";
    MemoryErrors = "holdfast_host_memory_errors", Gauge, Host, ["kind"],
        "Errors of the memory since the start of the machine: corrected or uncorrected.";
    UpdatesPending = "holdfast_host_updates_pending", Gauge, Host, ["origin"],
        "Packages of the host that wait for an upgrade, by who offers it: debian, proxmox or other. Absent while apt cannot say.";
    SecurityUpdates = "holdfast_host_security_updates_pending", Gauge, Host, [],
        "Packages of the host for which a security upgrade of Debian waits. Absent while apt cannot say.";
    RebootRequired = "holdfast_host_reboot_required", Gauge, Host, [],
        "Whether the host should be restarted, for a newer kernel or since a package asked for it: 1 or 0.";
    ListsChanged = "holdfast_host_package_lists_timestamp_seconds", Gauge, Host, [],
        "When the package lists of the host last changed.";
    UpdatesRead = "holdfast_host_updates_read_timestamp_seconds", Gauge, Host, [],
        "When the packages of the host were last read.";
    Operations = "holdfast_host_operations", Gauge, Host, ["status"],
        "Operations that are not at their end, by status: queued, running, undoing or parked.";
    OldestOperation = "holdfast_host_oldest_operation_age_seconds", Gauge, Host, [],
        "How long the oldest operation that is not at its end has been open.";
    GuestInfo = "holdfast_guest_info", Gauge, Host, ["guest" "uid" "vmid" "customer"],
        "A guest of ours; always 1.";
    GuestRunning = "holdfast_guest_running", Gauge, Host, ["guest"],
        "Whether a guest runs: 1 or 0. Absent while that is unknown.";
    GuestWanted = "holdfast_guest_wanted_running", Gauge, Host, ["guest"],
        "Whether a guest should run: 1 or 0. Absent where the document does not name it.";
    GuestPosture = "holdfast_guest_posture", Gauge, Host, ["guest" "posture"],
        "How well a guest is protected: 1 at the posture that it has.";
    GuestConditions = "holdfast_guest_conditions", Gauge, Host, ["guest"],
        "What an operator should know of a guest, by count.";
    GuestLock = "holdfast_guest_lock_timestamp_seconds", Gauge, Host, ["guest" "kind"],
        "Since when Proxmox's lock on a guest has been seen, where there is one.";
    BackupTime = "holdfast_guest_backup_timestamp_seconds", Gauge, Host, ["guest" "tier"],
        "When the newest backup of a tier was taken.";
    BackupSize = "holdfast_guest_backup_size_bytes", Gauge, Host, ["guest" "tier"],
        "Size of the newest backup of a tier, as its storage reports it.";
    BackupDuration = "holdfast_guest_backup_duration_seconds", Gauge, Host, ["guest" "tier"],
        "How long the operation of the newest backup of a tier took. Its size by this is the throughput.";
    TestTime = "holdfast_guest_restore_test_timestamp_seconds", Gauge, Host, ["guest" "tier"],
        "When the last restore test of a tier ended.";
    TestProved = "holdfast_guest_restore_test_proved", Gauge, Host, ["guest" "tier"],
        "Whether the last restore test of a tier brought the guest back whole: 1 or 0.";
    TestDuration = "holdfast_guest_restore_test_duration_seconds", Gauge, Host, ["guest" "tier"],
        "How long the last restore test of a tier took to its verdict.";
    ControllerHello = "holdfast_guest_controller_hello_timestamp_seconds", Gauge, Host, ["guest"],
        "When a guest's controller was last heard.";
    HubContact = "holdfast_agent_hub_contact_timestamp_seconds", Gauge, Agent, [],
        "When the hub last answered.";
    CertificateEnd = "holdfast_agent_certificate_end_timestamp_seconds", Gauge, Agent, [],
        "When the certificate ends that the agent shows to the hub.";
    HeavyRunning = "holdfast_agent_heavy_operations_running", Gauge, Agent, [],
        "Backups, restores and tests under way.";
    HeavyWaiting = "holdfast_agent_heavy_operations_waiting", Gauge, Agent, [],
        "Operations that wait for a slot of heavy work.";
    HubInfo = "holdfast_hub_info", Gauge, Hub, ["version"], "The hub's version; always 1.";
    HubHosts = "holdfast_hub_hosts", Gauge, Hub, ["state"], "Hosts by state.";
    HubAlerts = "holdfast_hub_alerts", Gauge, Hub, ["severity"], "Alerts that fire, by severity.";
    HubCheckins = "holdfast_hub_checkin_duration_seconds", Histogram, Hub, [],
        "How long check-ins took to be kept since the start, without the time that they were held open.";
    HubUsageDropped = "holdfast_hub_usage_samples_dropped_total", Counter, Hub, [],
        "Samples of use that found no room in the queue since the start.";
    HubUsageSize = "holdfast_hub_usage_bytes", Gauge, Hub, [],
        "Size of the use that is kept of all hosts; beyond `usage_gib_max` the oldest is removed.";
    HubOutbox = "holdfast_hub_notices_waiting", Gauge, Hub, ["receiver"], "Notices that wait for a receiver.";
    HubLeftOut = "holdfast_hub_metrics_hosts_left_out", Gauge, Hub, [],
        "Hosts whose report is not on this page, beyond its bound: ask for them by `?host=NAME`.";
    HostSeen = "holdfast_host_seen_timestamp_seconds", Gauge, Hub, [], "When the host was last heard of.";
    HostState = "holdfast_host_state", Gauge, Hub, ["state"], "The state of a host: 1 at the state that it has.";
    HostMaintenance = "holdfast_host_maintenance", Gauge, Hub, [], "Whether a host is in maintenance: 1 or 0.";
    HostCertificateEnd = "holdfast_host_certificate_end_timestamp_seconds", Gauge, Hub, [],
        "When the host's certificate ends.";
    GuestdHealthy = "holdfast_guestd_healthy", Gauge, Guest, [],
        "Whether nothing is stopped that should run, and the guest agent's files can be used: 1 or 0.";
    GuestdStopped = "holdfast_guestd_stacks_stopped", Gauge, Guest, [],
        "Stacks that were stopped for a backup and do not run again.";
    GuestdStackHealthy = "holdfast_guestd_stack_healthy", Gauge, Guest, ["stack"],
        "Whether a stack is not known to be unwell: 1 or 0.";
    GuestdStackRestarts = "holdfast_guestd_stack_restarts", Gauge, Guest, ["stack"],
        "How often a stack was started since it was last well for long.";
    GuestdWindowOpen = "holdfast_guestd_window_open", Gauge, Guest, [],
        "Whether programs are stopped for a backup now: 1 or 0.";
    GuestdWindowEnd = "holdfast_guestd_window_end_timestamp_seconds", Gauge, Guest, [],
        "When the last window ended in which programs were stopped.";
    GuestdWindowStopped = "holdfast_guestd_window_stopped_seconds", Gauge, Guest, [],
        "For how long programs were stopped in the last window.";
    HostAttention = "holdfast_host_attention", Gauge, Hub, [], "What needs a person on a host, by count.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The rules of <https://prometheus.io/docs/practices/naming/> that a program can check.
    #[test]
    fn names_follow_the_conventions() {
        let names: BTreeSet<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        assert_eq!(names.len(), Metric::ALL.len(), "each once");
        for metric in Metric::ALL {
            let name = metric.name();
            assert!(name.starts_with("holdfast_"), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), metric.kind() == Kind::Counter, "{name}");
            assert!(!metric.help().is_empty());
            for label in metric.labels() {
                assert!(!["le", "quantile", "job", "instance"].contains(label), "{name}: {label}");
            }
        }
    }
}
