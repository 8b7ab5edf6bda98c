//! Stories that every engine of the store must pass.
//!
//! A story gets a fresh store and knows nothing of its engine: it calls methods and compares answers. An engine is one
//! line below.

mod alerts;
mod documents;
mod endings;
pub mod fixture;
mod hosts;
mod image_rollouts;
mod images;
mod keys;
mod leases;
mod log;
mod many;
mod narrow;
mod oidc;
mod operators;
mod page_changes;
mod persons;
pub mod quiet;
mod releases;
mod restore_certificates;
mod rollouts;
mod sign_in;
mod state_snapshots;
mod usage;
mod work_orders;

use self::fixture::Fixture;

/// Runs every story on an engine.
macro_rules! engine {
    ($engine:ident, $fresh:expr, $($module:ident: $($story:ident)*;)*) => {
        mod $engine {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    super::$module::$story($fresh).await;
                }
            )*)*
        }
    };
}

/// All stories, for each engine.
macro_rules! stories {
    ($($engine:ident, $fresh:expr;)*) => {$(
        engine! {
            $engine, $fresh,
            alerts:
                a_condition_is_sent_once_and_so_is_its_end
                a_silent_host_mutes_what_it_said_and_speaks_for_it_again
                an_operator_acknowledges_silences_and_announces_work
                a_delivery_that_fails_is_tried_again_and_one_that_was_cut_off_too
                a_condition_of_a_guest_has_the_labels_of_report_and_document
                builders_that_differ_are_a_fact_of_the_hub
                a_whole_fleet_at_once_loses_no_alert
                what_the_hub_finds_by_itself_is_an_incident_once
                a_backup_of_the_hub_that_is_missing_is_an_incident_until_there_is_one;
            documents:
                a_document_is_put_over_the_one_that_was_seen
                the_history_comes_in_pages_and_a_revoked_host_has_none
                a_signed_job_waits_is_answered_and_is_then_beyond_recall
                old_jobs_and_the_oldest_versions_are_deleted
                the_newest_order_of_a_tunnel_outlives_its_job;
            endings:
                a_revoked_host_ends_with_one_notice_and_nothing_fires_for_it_again
                a_deleted_guest_ends_with_one_notice_and_may_come_back;
            hosts:
                a_host_is_invited_enrolled_heard_and_let_go
                guests_are_listed_with_their_hosts
                a_refused_certificate_leaves_nothing
                a_host_goes_on_with_its_latest_key_alone
                a_host_that_is_ahead_of_the_record_is_served_and_renewed
                an_old_certificate_after_a_newer_one_freezes_its_host_for_good
                a_renewal_is_repeated_for_its_key_and_for_no_other
                a_report_changes_what_it_names_and_an_old_one_nothing
                silence_is_written_down_once_and_not_over_a_later_word
                a_request_waits_for_an_operator_and_gives_one_certificate
                what_a_request_seals_for_stays_from_its_approval_on
                an_abandoned_request_and_an_old_invite_are_deleted
                another_machine_takes_a_place_by_an_order_that_names_it;
            images:
                an_approval_is_kept_once_and_reaches_every_host
                an_approval_is_withdrawn_from_who_has_not_seen_it
                an_approval_that_ended_goes_with_its_jobs
                an_open_approval_waits_for_the_machine_that_takes_a_place;
            image_rollouts:
                an_image_is_offered_to_hosts_without_it_and_builders_that_differ_hold_it;
            keys:
                a_version_is_kept_proved_and_read_with_a_notice
                a_host_that_asks_too_often_is_refused_and_the_count_stays
                one_customer_who_cannot_be_reached_delays_no_other;
            leases:
                a_paused_holder_writes_nothing_after_its_term
                epochs_rise_with_each_holder_and_never_fall
                a_hub_s_clock_that_jumps_moves_no_lease
                hubs_hear_hosts_together_since_one_of_them_began
                the_first_ca_is_kept_and_another_one_is_seen;
            log:
                an_audit_that_goes_back_or_changes_is_evidence
                events_are_read_by_host_and_page_and_passed_on_in_order
                a_commit_with_an_event_is_announced
                what_is_past_its_time_goes_and_the_rest_stays;
            many:
                many_hosts_with_news_are_each_answered_as_alone
                reports_of_one_host_at_the_same_time_are_kept_in_their_order;
            oidc:
                a_linked_person_of_the_provider_is_their_operator
                a_group_makes_an_operator_who_is_never_more_than_it;
            page_changes:
                changes_are_numbered_in_their_order_and_narrowed;
            operators:
                a_repeat_with_the_same_key_is_the_same_answer
                a_refusal_in_a_shared_commit_undoes_itself_alone
                tokens_end_and_the_last_admin_stays;
            narrow:
                lists_of_the_hub_have_the_part_of_a_scope
                a_role_is_changed_in_place_and_tokens_above_it_end;
            persons:
                a_scope_is_kept_with_its_person_and_decides_who_is_the_last_admin
                lists_are_narrowed_to_a_scope
                a_customer_is_added_changed_and_removed_when_nothing_names_it
                a_machine_token_is_rotated_with_an_overlap_and_ends_at_once
                a_customer_hears_of_a_destructive_job_and_objects_while_it_waits;
            quiet:
                a_quiet_host_is_heard_of_by_all_who_ask
                a_quiet_host_gets_a_new_document_with_its_next_check_in
                a_quiet_host_is_refused_from_its_revocation_on
                an_old_certificate_freezes_a_quiet_host;
            usage:
                samples_are_kept_once_thinned_and_removed
                kept_use_has_a_bound_and_the_oldest_of_all_hosts_goes_first
                samples_of_a_stranger_or_a_wrong_clock_change_nothing;
            releases:
                a_release_is_kept_replaced_by_a_later_one_and_deleted
                a_release_is_read_by_hosts_with_a_good_certificate
                a_release_is_offered_to_one_host_and_withdrawn
                offers_go_with_their_release_and_stay_with_another_edition;
            rollouts:
                a_defect_in_the_second_wave_of_200_hosts_reaches_no_third
                a_rollout_is_planned_paused_resumed_and_aborted
                waves_by_label_keep_to_windows_and_to_a_rate
                hosts_go_back_to_the_release_that_the_plan_names
                guest_agents_are_asked_for_in_the_documents_of_a_wave;
            state_snapshots:
                the_state_of_all_hosts_is_one_document
                a_snapshot_is_kept_once_for_each_day
                kept_snapshots_are_thinned_and_bounded;
            restore_certificates:
                a_restore_certificate_is_countersigned_once_and_two_are_kept;
            sign_in:
                a_session_lives_by_its_use_and_ends_with_its_operator
                a_session_is_ended_by_its_operator_or_an_admin
                sessions_of_one_operator_are_bounded
                a_password_change_ends_all_other_sessions_and_links
                each_step_and_each_recovery_code_is_used_once
                a_link_opens_one_session_within_its_time
                refusals_are_written_down;
            work_orders:
                an_order_is_passed_on_until_its_host_speaks_of_it_and_ends_once
                a_quiet_host_gets_an_order_and_what_it_says_of_it_is_news
                an_order_is_taken_back_by_its_host_and_expires_without_one
                orders_are_bounded_listed_by_state_and_deleted
                texts_of_readings_are_kept_few_and_for_a_time;
        }
    )*};
}

stories! {
    sqlite, super::Fixture::sqlite();
    postgres, super::Fixture::postgres();
}
