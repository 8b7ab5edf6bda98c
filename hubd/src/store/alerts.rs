//! Alerts: incidents, their log, silences and maintenance.
//!
//! Whatever may change an incident goes through the engine, and what it decides is kept in the same transaction.

use alerts::incident::{Incident, IncidentId, Scope};
use alerts::log::LogEntry;
use alerts::signal::Maintenance;
use alerts::silence::{Silence, SilenceError, SilenceId};
use alerts::state::ScopeState;
use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::condition::{ConditionCode, ConditionText, ReportedCondition, Severity};
use holdfast_protocol::id::{CorrelationId, GuestName, HostId, HostName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{By, StoreError, Term, WriteError, duty};
use crate::domain::alerting::own::{HostFacts, HubFacts};
use crate::domain::alerting::{GuestLabels, HostOfScope};
use crate::domain::host::HostRef;

/// An incident, with the host it is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncidentRecord {
    /// The host's name; none for the hub.
    pub host: Option<HostName>,
    pub incident: Incident,
}

/// Which incidents are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncidentFilter {
    /// Those that fire.
    Firing,
    /// Those that wait for their grace to pass, too, and those that were over within the hour.
    All,
}

/// Which incidents are listed, and of what. All that is given must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncidentQuery {
    pub phase: IncidentFilter,
    /// Of this host, or of the hub.
    pub scope: Option<Scope>,
    /// About a guest of this name.
    pub guest: Option<GuestName>,
    /// With this code.
    pub code: Option<ConditionCode>,
    /// As urgent as this, or more.
    pub severity: Option<Severity>,
}

impl From<IncidentFilter> for IncidentQuery {
    fn from(phase: IncidentFilter) -> Self {
        Self { phase, scope: None, guest: None, code: None, severity: None }
    }
}

/// A name by which operators mean something that the hub has heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlertName {
    Host(String),
    /// A name or a uid.
    Guest(String),
    Customer(String),
}

/// An entry of the log, with its number, its scope and the host's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    pub number: u64,
    pub scope: Scope,
    /// None for the hub.
    pub host: Option<HostName>,
    pub entry: LogEntry,
}

/// Which entries of the log are listed, the newest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    pub scope: Option<Scope>,
    /// Of this incident of the scope alone.
    pub incident: Option<u64>,
    /// Those before this number.
    pub before: Option<u64>,
}

/// A silence that an operator wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSilence {
    pub matchers: Vec<alerts::label::Matcher>,
    pub until: Timestamp,
    pub comment: holdfast_protocol::condition::ConditionText,
}

/// What an operator says of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// It is known, until this time or until it is over.
    Given { until: Option<Timestamp> },
    /// It is open again.
    TakenBack,
}

/// Why a silence is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SilenceRequestError {
    #[error(transparent)]
    Silence(#[from] SilenceError),
    #[error("{SILENCES_MAX} silences are in force, as many as are possible: end one first")]
    TooMany,
}

/// As many silences as are in force at a time. Each decision on an alert looks at all of them.
pub const SILENCES_MAX: u32 = 256;

/// The end of a maintenance, and why there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncedEnd {
    pub until: Timestamp,
    pub reason: Option<ConditionText>,
}

/// The maintenance of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMaintenance {
    pub id: HostId,
    pub host: HostName,
    /// The windows that are not over.
    pub windows: Vec<Maintenance>,
}

/// What the engine knows of a host, or of the hub.
#[derive(Clone, Debug)]
pub struct AlertPicture {
    pub state: ScopeState,
    pub host: HostOfScope,
    /// The guests that the host reported, or that its document has.
    pub guests: GuestLabels,
}

/// Facts of which the hub makes its own conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnFacts {
    /// Of every host with something that may be wrong, and of every host with an open incident of this kind.
    pub hosts: Vec<HostFacts>,
    pub hub: HubFacts,
}

/// Why an incident cannot be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcknowledgeError {
    #[error("the incident is over: nothing was changed")]
    Over,
}

/// Alerts.
#[async_trait]
pub trait Alerts: Send + Sync {
    /// Lets the engine do what is due, for at most so many scopes. Answers how many there were.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn advance_alerts(
        &self,
        term: &Term<duty::Alerts>,
        now: Timestamp,
        correlation: CorrelationId,
        scopes_max: u32,
    ) -> Result<u32, StoreError>;

    /// Makes every scope due in which something waits, after the rules changed.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn wake_alerts(&self, now: Timestamp) -> Result<(), StoreError>;

    /// Facts of which the hub makes its own conditions.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn own_facts(&self, now: Timestamp) -> Result<OwnFacts, StoreError>;

    /// Takes in all conditions that the hub finds in these scopes.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn observe(
        &self,
        term: &Term<duty::Alerts>,
        found: Vec<(Scope, Vec<ReportedCondition>)>,
        now: Timestamp,
        correlation: CorrelationId,
    ) -> Result<(), StoreError>;

    /// Incidents, by scope and number, after the given one.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn incidents(
        &self,
        query: IncidentQuery,
        after: Option<IncidentId>,
        limit: u32,
    ) -> Result<Vec<IncidentRecord>, StoreError> {
        self.incidents_within(AccessScope::Everything {}, query, after, limit).await
    }

    /// The same of incidents on hosts within a scope, or of guests of its customer.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn incidents_within(
        &self,
        scope: AccessScope,
        query: IncidentQuery,
        after: Option<IncidentId>,
        limit: u32,
    ) -> Result<Vec<IncidentRecord>, StoreError>;

    /// Of these names, those that nothing has that is reported, or in a document.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn unknown_names(&self, names: Vec<AlertName>) -> Result<Vec<AlertName>, StoreError>;

    /// One incident.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn incident(&self, id: IncidentId) -> Result<Option<IncidentRecord>, StoreError>;

    /// The log of what happened and what was not sent.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn alert_log(&self, filter: LogFilter, limit: u32) -> Result<Vec<LogRecord>, StoreError> {
        self.alert_log_within(AccessScope::Everything {}, filter, limit).await
    }

    /// The same within a scope. Of a customer's incidents only those are found that are kept.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn alert_log_within(
        &self,
        scope: AccessScope,
        filter: LogFilter,
        limit: u32,
    ) -> Result<Vec<LogRecord>, StoreError>;

    /// Writes down that an operator knows of an incident, or does not any more.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn acknowledge(
        &self,
        by: By,
        incident: IncidentId,
        said: Acknowledgement,
    ) -> Result<Option<IncidentRecord>, WriteError<AcknowledgeError>>;

    /// The silences that are not over.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn silences(&self, now: Timestamp) -> Result<Vec<Silence>, StoreError> {
        self.silences_within(AccessScope::Everything {}, now).await
    }

    /// Of these, those that mute alerts within a scope alone: they name a host of it, or its customer.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn silences_within(&self, scope: AccessScope, now: Timestamp) -> Result<Vec<Silence>, StoreError>;

    /// Adds a silence.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn add_silence(&self, by: By, new: NewSilence) -> Result<Silence, WriteError<SilenceRequestError>>;

    /// Ends a silence now.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn end_silence(
        &self,
        by: By,
        id: SilenceId,
    ) -> Result<Option<Silence>, WriteError<std::convert::Infallible>>;

    /// Announces maintenance of a host until this time, or ends it now. A revoked host has none.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn set_maintenance(
        &self,
        by: By,
        host: HostRef,
        announced: Option<AnnouncedEnd>,
    ) -> Result<Option<HostMaintenance>, WriteError<std::convert::Infallible>>;

    /// What the engine knows of a host, or of the hub, to explain what it would do.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn alert_picture(&self, host: Option<HostRef>) -> Result<Option<AlertPicture>, StoreError>;
}
