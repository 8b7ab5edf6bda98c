//! Every state against everything that can happen to it.

use holdfast_protocol::work_order::HostOrderState as Said;
use holdfast_protocol::work_order::WorkOrderState::{self, *};

use super::*;

const REPORTED: [(WorkOrderState, [WorkOrderState; 6]); 7] = [
    // Said: claimed, running, succeeded, failed, cancelled, expired.
    (Pending, [Claimed, Running, Succeeded, Failed, Cancelled, Expired]),
    (Claimed, [Claimed, Running, Succeeded, Failed, Cancelled, Expired]),
    (Running, [Running, Running, Succeeded, Failed, Cancelled, Expired]),
    (Succeeded, [Succeeded; 6]),
    (Failed, [Failed, Running, Succeeded, Failed, Failed, Failed]),
    (Cancelled, [Claimed, Running, Succeeded, Failed, Cancelled, Cancelled]),
    (Expired, [Claimed, Running, Succeeded, Failed, Expired, Expired]),
];

#[test]
fn every_state_against_every_report() {
    assert!(WorkOrderState::ALL.iter().zip(REPORTED).all(|(state, (row, _))| *state == row));
    for (state, row) in REPORTED {
        for (said, wanted) in Said::ALL.into_iter().zip(row) {
            assert_eq!(reported(state, said), wanted, "{state:?} and the host says {said:?}");
        }
    }
}

#[test]
fn what_was_done_once_is_never_offered_again() {
    for state in WorkOrderState::ALL {
        for cancel in [CancelRequest::None, CancelRequest::Made] {
            let waiting = waits(OrderStanding { state, cancel });
            let wanted = state == Pending || (state == Claimed && cancel == CancelRequest::Made);
            assert_eq!(waiting, wanted, "{state:?} {cancel:?}");
            assert!(!(waiting && state.is_end()));
        }
    }
}

#[test]
fn time_ends_only_what_no_host_spoke_of() {
    for state in WorkOrderState::ALL {
        let over = |cancel| time_over(OrderStanding { state, cancel });
        let wanted = if state == Pending { (Expired, Cancelled) } else { (state, state) };
        assert_eq!((over(CancelRequest::None), over(CancelRequest::Made)), wanted);
    }
}

#[test]
fn each_state_against_a_cancellation() {
    use CancelOutcome::{Known, Requested};
    let table = [
        (Pending, CancelRequest::None, Ok(Requested)),
        (Pending, CancelRequest::Made, Ok(Known)),
        (Claimed, CancelRequest::None, Ok(Requested)),
        (Claimed, CancelRequest::Made, Ok(Known)),
        (Running, CancelRequest::None, Err(WorkOrderError::UnderWay)),
        (Running, CancelRequest::Made, Err(WorkOrderError::UnderWay)),
        (Succeeded, CancelRequest::Made, Err(WorkOrderError::Over(Succeeded))),
        (Failed, CancelRequest::None, Err(WorkOrderError::Over(Failed))),
        (Cancelled, CancelRequest::Made, Ok(Known)),
        (Cancelled, CancelRequest::None, Ok(Known)),
        (Expired, CancelRequest::None, Err(WorkOrderError::Over(Expired))),
    ];
    for (state, request, wanted) in table {
        assert_eq!(cancel(OrderStanding { state, cancel: request }), wanted, "{state:?} {request:?}");
    }
}

#[test]
fn bounds_hold_for_host_guest_and_life() {
    let open = |of_host, of_guest| OpenOrders { of_host, of_guest };
    assert_eq!(admit(open(OPEN_PER_HOST_MAX - 1, OPEN_PER_GUEST_MAX - 1), LIFE_MAX_S), Ok(()));
    assert_eq!(admit(open(OPEN_PER_HOST_MAX, 0), 60), Err(WorkOrderError::HostFull));
    assert_eq!(admit(open(0, OPEN_PER_GUEST_MAX), 60), Err(WorkOrderError::GuestFull));
    assert_eq!(admit(open(0, 0), LIFE_MAX_S + 1), Err(WorkOrderError::Life));
}

#[test]
fn an_end_is_an_event_once() {
    for before in WorkOrderState::ALL {
        for now in WorkOrderState::ALL {
            assert_eq!(event(before, now).is_some(), now.is_end() && before != now, "{before:?} {now:?}");
        }
    }
}
