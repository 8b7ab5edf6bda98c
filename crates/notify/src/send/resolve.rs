//! Addresses of a receiver, judged by the egress policy.

use std::io;
use std::net::{IpAddr, SocketAddr};

use super::DeliveryError;
use crate::egress::EgressPolicy;

/// Looks a host up once. The connection is made to the addresses that are returned, so a name that changes its address
/// in between leads nowhere else.
pub(super) async fn resolve(
    host: &str,
    port: u16,
    policy: EgressPolicy,
) -> Result<Vec<SocketAddr>, DeliveryError> {
    // The address form of a URL has brackets around an IPv6 address.
    let found: Vec<SocketAddr> = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => tokio::net::lookup_host((host, port)).await.map_err(DeliveryError::Lookup)?.collect(),
    };
    allowed(found, policy)
}

/// The addresses that the policy allows.
fn allowed(found: Vec<SocketAddr>, policy: EgressPolicy) -> Result<Vec<SocketAddr>, DeliveryError> {
    let mut refused = None;
    let mut addresses = Vec::new();
    for address in found {
        match policy.check(address.ip()) {
            Ok(()) => addresses.push(address),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match (addresses.is_empty(), refused) {
        (false, _) => Ok(addresses),
        (true, Some(error)) => Err(DeliveryError::Egress(error)),
        (true, None) => Err(DeliveryError::Lookup(io::ErrorKind::NotFound.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_several_addresses_keeps_the_allowed_ones() {
        let found =
            |list: &[&str]| -> Vec<SocketAddr> { list.iter().map(|one| one.parse().unwrap()).collect() };
        let public = found(&["1.1.1.1:443"]);
        let mixed = found(&["169.254.169.254:443", "1.1.1.1:443", "10.0.0.1:443"]);
        assert_eq!(allowed(mixed.clone(), EgressPolicy::Public).unwrap(), public);
        assert_eq!(allowed(mixed, EgressPolicy::Private).unwrap().len(), 2);
        let inner = allowed(found(&["10.0.0.1:443", "127.0.0.1:443"]), EgressPolicy::Public);
        assert!(
            matches!(inner, Err(DeliveryError::Egress(error)) if error.address.to_string() == "10.0.0.1")
        );
        assert!(matches!(allowed(Vec::new(), EgressPolicy::Loopback), Err(DeliveryError::Lookup(_))));
    }

    #[tokio::test]
    async fn addresses_in_any_spelling_are_judged_too() {
        for host in ["127.0.0.1", "[::1]", "::1", "localhost"] {
            let refused = resolve(host, 80, EgressPolicy::Private).await;
            assert!(matches!(refused, Err(DeliveryError::Egress(_))), "{host}: {refused:?}");
            resolve(host, 80, EgressPolicy::Loopback).await.unwrap();
        }
    }
}
