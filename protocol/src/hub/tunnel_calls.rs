//! Calls of orders that gave tunnels their tokens.

use super::calls::{Call, HOST, get, param};
use crate::api::{Answer, Param, ParamLocation, framed, of};
use crate::code::ErrorCode::NotFound;
use crate::id::TunnelName;
use crate::operator::TunnelOrder;

const TUNNEL: Param = param(ParamLocation::Path, "tunnel", "a tunnel of the host", of::<TunnelName>);

/// All of them.
pub const CALLS: &[Call] = &[Call {
    parts: &[HOST, TUNNEL],
    refusals: &[NotFound],
    ..get(
        "/v1/hosts/{host}/tunnels/{tunnel}/order",
        "tunnelOrder",
        "The newest signed job that gave a tunnel its token.",
        Answer::Done(framed::<TunnelOrder>),
    )
}];
