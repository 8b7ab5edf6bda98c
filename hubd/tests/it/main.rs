//! Integration tests of the hub over real TLS.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod alertmanager;
mod alerts;
mod authorization;
mod ca_change;
mod certificate_files;
mod certificates;
mod channels;
mod checkin;
mod csr;
mod customer_notices;
mod customer_resources;
mod customers;
mod database_check;
mod deadman;
mod desired;
mod enrollment;
mod enrollment_requests;
mod envelope;
mod escrow;
#[path = "../../../tests/support/filled_hub.rs"]
mod filled_hub;
mod grants;
mod guest_audit;
mod guests;
mod idempotency;
mod image_rollouts;
mod jobs;
mod layers;
mod live;
#[path = "../../../tests/support/mail_server.rs"]
mod mail_server;
mod metrics;
mod narrowed;
mod notices;
mod oidc;
mod oidc_provider;
mod openapi;
mod operator_rates;
mod operators;
mod page_forms;
mod page_walls;
mod pages;
mod pages_document;
mod pages_first_start;
mod pages_forms;
mod pages_of_work;
mod postgres;
#[path = "../../../tests/support/postgres.rs"]
mod postgres_server;
mod process;
mod prometheus;
mod readmission;
mod releases;
mod reload;
mod resources;
mod restart;
mod restore;
mod restore_certificates;
mod rollouts;
mod root_links;
#[path = "../../../tests/support/rows.rs"]
mod rows;
mod sessions;
mod sign_in;
mod slow_receivers;
mod state;
mod store;
mod strangers;
mod tls;
mod tokens;
mod transfer;
mod webhook;
mod work_orders;
mod world;
