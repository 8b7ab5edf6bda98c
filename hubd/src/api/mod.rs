//! The HTTP API: its routes and shared state.
//!
//! In: requests, with the peer's identity where a client certificate was shown. Out: one envelope each. A handler reads
//! typed input, calls the store and answers with the result; it contains no SQL and no rules.
//!
//! | audience | authentication | routes |
//! | --- | --- | --- |
//! | any caller | none | `/healthz`, `/readyz`, `/v1/enroll`, `/v1/enrollment-requests`, `/v1/restore`, `/v1/login`, `/v1/sign-in-link` |
//! | agents | client certificate | `/v1/renew`, `/v1/agent/checkin`, `/v1/agent/escrow…`, `/v1/agent/replacement`, `/v1/agent/restore-certificates`, `/v1/agent/guest-audit`, `/v1/agent/release-offer`, `/v1/agent/releases…`, `/v1/agent/artifacts…` |
//! | people | cookie of a session, also of one that may only set up a sign-in | `/v1/logout`, `/v1/session`, `/v1/password`, `/v1/totp…` |
//! | people and machines | bearer token or cookie of a session, and the role and scope that the call's table states | all other `/v1/…` |
//! | browsers | cookie of a session; none for `/sign-in…` | all other paths: pages (`html`) |
//!
//! `authorize` decides before any handler, by the tables of `holdfast_protocol::hub`.

mod alerts;
mod artifacts;
mod auth;
mod authorize;
mod body;
mod checkin;
mod customers;
mod desired;
mod document_change;
mod downloads;
mod enrol;
mod enrollment_requests;
mod escrow;
mod events;
mod file_body;
mod grants;
mod guest_audit;
mod guest_jobs;
mod guests;
mod health;
mod host_labels;
mod hosts;
mod html;
mod image_approvals;
mod invites;
mod jobs;
mod live_feed;
mod long_poll;
mod metrics;
mod mutation;
mod operator_rates;
mod operators;
mod page;
mod problem;
mod release_offers;
mod releases;
mod resources;
mod restore;
mod restore_certificates;
mod rollouts;
mod sign_in;
mod state;
mod state_body;
mod tokens;
mod turns;
mod usage;
mod usage_inbox;
mod work_orders;

use std::sync::Arc;
use std::time::Duration;

use axum::routing::{get, post, put};
use axum::{Router, middleware};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::HostId;
use jiff::Timestamp;
use net::admission::Origin;
use net::rate::{Rates, TooOften};
use net::server::{Frame, RefusalLog, frame};
use restore_certificate::countersign::countersign;
use tokio::sync::{Mutex, Semaphore, watch};

pub use self::alerts::{ConfiguredReceiver, ConfiguredReceivers, SettingsFiles};
pub use downloads::Downloads;
pub use html::page_paths;
pub use live_feed::{LISTENERS_EACH, LiveFeed};
pub use long_poll::LongPolls;
pub use metrics::HubCounters;
pub use operator_rates::OperatorCallLimits;
pub use sign_in::{Provider, ProviderClientError, Refusals, SignIn};
pub use usage_inbox::{UsageFromHost, UsageInbox};

use self::operator_rates::OperatorRates;
use self::problem::ApiError;
use crate::artifacts::ArtifactFolder;
use crate::authority::{Authority, HostLife};
use crate::clock::Clock;
use crate::domain::alerting::AlertContext;
use crate::domain::escrow_notice::Recipients;
use crate::serve::STRANGERS_MAX;
use crate::store::{Countersign, Issue, SharedStore};

/// Everything the handlers need.
pub struct Hub {
    /// The store.
    pub store: SharedStore,
    /// What signs certificates.
    pub authority: Arc<Authority>,
    /// How long a host's certificate lives.
    pub host_life: HostLife,
    pub clock: Arc<dyn Clock>,
    /// What decisions on alerts depend on.
    pub alerts: AlertContext,
    /// Receivers of alerts, without their secrets, as the settings name them now.
    pub receivers: watch::Receiver<ConfiguredReceivers>,
    /// Recipients of notices when a wrapped key is read.
    pub reached: Recipients,
    /// How the hub is reached, as invites say.
    pub public_url: String,
    /// What the hub counts of itself.
    pub counters: HubCounters,
    /// Where samples of use go.
    pub usage: UsageInbox,
    /// Files of releases.
    pub artifacts: Arc<ArtifactFolder>,
    /// Held while releases and what is kept of their files are brought into line.
    pub release_order: Mutex<()>,
    /// Files that hosts fetch now.
    pub downloads: Arc<Downloads>,
    /// Check-ins that are held open.
    pub long_polls: LongPolls,
    /// Pages that are open.
    pub live: LiveFeed,
    /// Becomes true when the hub is to stop.
    pub stop: watch::Receiver<bool>,
    /// Limits on reading and keeping bodies at once.
    pub concurrency: ConcurrencyLimits,
    /// How often one place, and how much one certificate, may ask.
    pub rates: RateLimits,
    /// How people sign in.
    pub sign_in: SignIn,
}

/// How often one address may request enrollment, how much one host may report, how often operators may call.
pub struct RateLimits {
    enrollment_requests: Rates<Origin>,
    reports: Rates<HostId>,
    restore_certificates: Rates<HostId>,
    guest_audit: Rates<HostId>,
    artifacts: Rates<HostId>,
    operators: OperatorRates,
}

/// A waiting agent repeats its request every half minute: several hosts behind one address.
const ENROLLMENT_REQUESTS_PER_MINUTE: u32 = 30;

/// Eight whole reports at once, or one each eight seconds. Reports of a host with a hundred guests take a tenth of it.
const REPORT_KIB_PER_MINUTE: u32 = 8 * 1024;

/// A host with a hundred guests that returns to its hub after weeks sends all of them within two minutes.
const RESTORE_CERTIFICATES_PER_MINUTE: u32 = 60;

/// A whole backlog is twenty requests; after that one follows an operation.
const GUEST_AUDITS_PER_MINUTE: u32 = 60;

/// A release has at most 64 files; each is one request, and a few more where the line is bad.
const ARTIFACTS_PER_MINUTE: u32 = 120;

impl RateLimits {
    #[must_use]
    pub fn new(operators: OperatorCallLimits) -> Self {
        Self {
            enrollment_requests: Rates::per_minute(ENROLLMENT_REQUESTS_PER_MINUTE),
            reports: Rates::per_minute(REPORT_KIB_PER_MINUTE),
            restore_certificates: Rates::per_minute(RESTORE_CERTIFICATES_PER_MINUTE),
            guest_audit: Rates::per_minute(GUEST_AUDITS_PER_MINUTE),
            artifacts: Rates::per_minute(ARTIFACTS_PER_MINUTE),
            operators: OperatorRates::new(operators),
        }
    }
}

/// The time as rates take it. A clock that is set back gives nothing away.
fn since_epoch(now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(now.as_millisecond()).unwrap_or(0))
}

/// The answer to a caller beyond its rate, with the time to wait.
fn too_often(what: &str, often: TooOften) -> ApiError {
    ApiError::new(ErrorCode::RateLimited, format!("{what}: ask again in {} seconds", often.retry_after_s))
}

/// How many requests are processed at a time, so that memory is bounded. Each audience has its own limit, so that
/// strangers cannot starve operators, nor operators the agents. The limit for strangers equals their connections, so
/// none waits for another whose body is slow.
pub struct ConcurrencyLimits {
    /// Reports of up to 1 MiB, mostly some kilobytes.
    agents: Semaphore,
    /// Bodies of up to 2.1 MiB, read only when the token is good.
    operators: Semaphore,
    /// Bodies of up to 64 KiB, so 72 MiB together.
    strangers: Semaphore,
    /// Uploads of files, each with a batch of 1 MiB in memory.
    uploads: Semaphore,
    /// Snapshots of state that are being read, each with some hosts in memory.
    states: Arc<Semaphore>,
}

const UPLOADS_AT_ONCE: usize = 4;

const STATES_AT_ONCE: usize = 4;

impl Default for ConcurrencyLimits {
    fn default() -> Self {
        let strangers = STRANGERS_MAX as usize + 128;
        Self {
            agents: Semaphore::new(256),
            operators: Semaphore::new(64),
            strangers: Semaphore::new(strangers),
            uploads: Semaphore::new(UPLOADS_AT_ONCE),
            states: Arc::new(Semaphore::new(STATES_AT_ONCE)),
        }
    }
}

pub fn router(hub: Arc<Hub>) -> Router {
    // Nearer to the handlers than the limits of concurrency: whoever has no token waits, too.
    let authorized = || middleware::from_fn_with_state(Arc::clone(&hub), authorize::authorize);
    let agents = Router::new()
        .route("/v1/agent/checkin", post(checkin::check_in))
        .route("/v1/renew", post(enrol::renew))
        .layer(authorized());
    let escrow = Router::new()
        .route("/v1/agent/replacement", post(restore::replacement))
        .route("/v1/agent/restore-certificates", put(restore_certificates::put))
        .route("/v1/agent/guest-audit", put(guest_audit::put))
        .route("/v1/agent/release-offer", get(release_offers::for_agent))
        .route("/v1/agent/image-offer", get(release_offers::image_for_agent))
        .route("/v1/agent/releases/{version}", get(releases::for_agent))
        .route("/v1/agent/artifacts/{sha256}/release", get(releases::naming))
        .route("/v1/agent/artifacts/{sha256}", get(artifacts::read))
        .route("/v1/agent/escrow", get(escrow::newest).put(escrow::put))
        .route("/v1/agent/escrow/versions", get(escrow::list))
        .route("/v1/agent/escrow/versions/{number}", get(escrow::show))
        .route("/v1/agent/escrow/versions/{number}/proof", get(escrow::prove))
        .route("/v1/agent/escrow/versions/{number}/opened", post(escrow::opened))
        .layer(authorized())
        .layer(middleware::from_fn_with_state(Arc::clone(&hub), turns::agents));
    let strangers = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/v1/openapi.json", get(health::openapi))
        .route("/v1/enroll", post(enrol::enrol))
        .route("/v1/enrollment-requests", post(enrollment_requests::submit))
        .route("/v1/restore", post(restore::redeem))
        .merge(sign_in::entrances())
        .layer(authorized())
        .merge(html::entrances())
        .layer(middleware::from_fn_with_state(Arc::clone(&hub), turns::strangers));
    let operators = Router::new()
        .route("/v1/whoami", get(auth::whoami))
        .route("/v1/invites", post(invites::create))
        .route("/v1/guests", get(guests::list))
        .route("/v1/hosts", get(hosts::list))
        .route("/v1/hosts/{host}", get(hosts::show))
        .route("/v1/hosts/{host}/audit-heads", get(hosts::audit_heads))
        .route("/v1/hosts/{host}/usage", get(usage::show))
        .route("/v1/hosts/{host}/revoke", post(hosts::revoke))
        .route("/v1/hosts/{host}/labels", post(host_labels::change))
        .route("/v1/hosts/{host}/update-windows", put(host_labels::put_windows))
        .route("/v1/hosts/{host}/release-offer", put(release_offers::put).delete(release_offers::delete))
        .route("/v1/hosts/{host}/restore", post(restore::invite))
        .route("/v1/hosts/{host}/restore/withdraw", post(restore::withdraw))
        .route("/v1/hosts/{host}/escrow", get(escrow::of_host))
        .route("/v1/hosts/{host}/escrow/read", post(escrow::fetch))
        .route("/v1/hosts/{host}/desired", get(desired::show).put(desired::put))
        .route("/v1/hosts/{host}/desired/history", get(desired::history))
        .route("/v1/hosts/{host}/desired/history/{generation}", get(desired::version))
        .route("/v1/hosts/{host}/desired/diff", get(desired::difference))
        .route("/v1/hosts/{host}/desired/rollback", post(desired::roll_back))
        .route("/v1/hosts/{host}/guests/{guest}/audit", get(guest_audit::newest))
        .route("/v1/hosts/{host}/guests/{guest}/restore-certificate", get(restore_certificates::newest))
        .route("/v1/hosts/{host}/jobs", get(jobs::list).post(jobs::leave))
        .route("/v1/hosts/{host}/jobs/{job}", get(jobs::show))
        .route("/v1/hosts/{host}/jobs/{job}/withdraw", post(jobs::withdraw))
        .route("/v1/image-approvals", get(image_approvals::list).post(image_approvals::submit))
        .route("/v1/image-approvals/{job}", get(image_approvals::show))
        .route("/v1/image-approvals/{job}/withdraw", post(image_approvals::withdraw))
        .route("/v1/hosts/{host}/tunnels/{tunnel}/order", get(jobs::tunnel_order))
        .route("/v1/hosts/{host}/work-orders", get(work_orders::list).post(work_orders::make))
        .route("/v1/hosts/{host}/work-orders/{order}", get(work_orders::show))
        .route("/v1/hosts/{host}/work-orders/{order}/cancel", post(work_orders::cancel))
        .route("/v1/enrollment-requests", get(enrollment_requests::list))
        .route("/v1/enrollment-requests/{id}/approve", post(enrollment_requests::approve))
        .route("/v1/enrollment-requests/{id}/refuse", post(enrollment_requests::refuse))
        .route("/v1/operators", get(operators::list).post(operators::make))
        .route("/v1/operators/{name}", grants::one())
        .route("/v1/operators/{name}/grant", grants::grant())
        .route("/v1/operators/{name}/revoke", post(operators::revoke))
        .route("/v1/releases", get(releases::list))
        .route("/v1/releases/{version}", put(releases::put).delete(releases::delete))
        .route("/v1/rollouts", get(rollouts::list).post(rollouts::plan))
        .route("/v1/rollouts/{number}", get(rollouts::show))
        .route("/v1/rollouts/{number}/start", post(rollouts::start))
        .route("/v1/rollouts/{number}/pause", post(rollouts::pause))
        .route("/v1/rollouts/{number}/take-back", post(rollouts::take_back))
        .route("/v1/rollouts/{number}/resume", post(rollouts::resume))
        .route("/v1/rollouts/{number}/abort", post(rollouts::abort))
        .route("/v1/state", get(state::now))
        .route("/v1/state-snapshots", get(state::list))
        .route("/v1/state-snapshots/{number}", get(state::show))
        .route("/v1/events", get(events::list))
        .route("/v1/customers", get(customers::list).post(customers::add))
        .route("/v1/customers/{customer}", customers::one())
        .route("/v1/jobs", get(guest_jobs::list))
        .route("/v1/jobs/{job}/objection", post(guest_jobs::object))
        .route("/v1/tokens", get(tokens::list).post(tokens::create))
        .route("/v1/tokens/{name}/rotate", post(tokens::rotate))
        .route("/v1/tokens/{name}/revoke", post(tokens::revoke))
        .route("/metrics", get(metrics::show))
        .merge(alerts::routes())
        .merge(sign_in::routes())
        .merge(resources::routes())
        .layer(authorized())
        .merge(html::routes(&hub))
        .layer(middleware::from_fn_with_state(Arc::clone(&hub), turns::operators))
        .layer(middleware::from_fn_with_state(Arc::clone(&hub), operator_rates::limit));
    // An upload has its own limits: of number, of silence and of time.
    let uploads = Router::new()
        .route("/v1/artifacts/{sha256}", put(artifacts::put))
        .layer(authorized())
        .layer(middleware::from_fn_with_state(Arc::clone(&hub), operator_rates::limit));
    agents
        .merge(uploads)
        .merge(escrow)
        .merge(strangers)
        .merge(operators)
        .fallback(health::no_such_route)
        .layer(middleware::from_fn_with_state(framing(&hub), frame))
        .with_state(hub)
}

impl Hub {
    /// Makes a certificate when the store asks for it.
    fn issue(&self) -> Issue {
        let (authority, life) = (Arc::clone(&self.authority), self.host_life);
        Box::new(move |host, generation, key, now| authority.issue_host(host, generation, key, now, life))
    }

    /// Signs a statement when the store asks for it.
    fn countersign(&self) -> Countersign {
        let authority = Arc::clone(&self.authority);
        Box::new(move |received, owner| countersign(received, owner, authority.countersign_key()))
    }
}

fn framing(hub: &Arc<Hub>) -> Frame {
    let clock = Arc::clone(&hub.clock);
    Frame { now: Arc::new(move || clock.now()), refusals: RefusalLog::Info }
}
