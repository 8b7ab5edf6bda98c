//! A host's bridge and guests, as network namespaces.

use std::net::Ipv4Addr;
use std::process::Command;

use super::super::test_bridge::run;

/// The addresses that the hostile guest uses in addition to its own. Enough for 1,040 connections with eight each.
pub const STRANGERS: u8 = 130;
const FIRST_STRANGER: u8 = 110;

/// The namespaces. They are removed with this value.
pub struct Net {
    pub the_box: String,
    guests: Vec<String>,
}

impl Drop for Net {
    #[expect(clippy::disallowed_methods, reason = "ip is asked, as the test that made them did")]
    fn drop(&mut self) {
        for name in self.guests.iter().chain([&self.the_box]) {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// Where the guest of this number is, as the document of the stage numbers them.
pub fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 66, 0, 100 + number)
}

/// One of the other addresses of the hostile guest; they come round again.
pub fn stranger(number: usize) -> Ipv4Addr {
    let within = u8::try_from(number % usize::from(STRANGERS)).unwrap();
    Ipv4Addr::new(10, 66, 0, FIRST_STRANGER + within)
}

fn ip(namespace: &str, line: &str) {
    let words: Vec<&str> = ["ip", "-n", namespace].into_iter().chain(line.split(' ')).collect();
    run(&words);
}

impl Net {
    /// A bridge on the host, and this many guests connected to it.
    pub fn new(guests: u8) -> Self {
        let name = |of: &str| format!("hf-{of}-{}", std::process::id());
        let net =
            Self { the_box: name("box"), guests: (1..=guests).map(|at| name(&format!("g{at}"))).collect() };
        for namespace in net.guests.iter().chain([&net.the_box]) {
            run(&["ip", "netns", "add", namespace]);
            ip(namespace, "link set lo up");
        }
        for line in ["link add vmbr0 type bridge", "address add 10.66.0.1/24 dev vmbr0", "link set vmbr0 up"]
        {
            ip(&net.the_box, line);
        }
        for (number, guest) in (1..).zip(&net.guests) {
            ip(&net.the_box, &format!("link add veth{number} type veth peer name eth0 netns {guest}"));
            ip(&net.the_box, &format!("link set veth{number} master vmbr0 up"));
            ip(guest, &format!("address add {}/24 dev eth0", address(number)));
            ip(guest, "link set eth0 up");
        }
        net
    }

    /// The namespace of a guest.
    pub fn guest(&self, number: u8) -> &str {
        &self.guests[usize::from(number) - 1]
    }

    /// A guest takes addresses that were not assigned to it.
    pub fn takes_addresses(&self, number: u8) {
        for other in 0..usize::from(STRANGERS) {
            ip(self.guest(number), &format!("address add {}/24 dev eth0", stranger(other)));
        }
    }

    /// A guest takes a neighbour's address and sends from it. The host learns it from the guest's ARP request for the
    /// host.
    pub fn spoofs(&self, number: u8, neighbour: u8) {
        let address = address(neighbour);
        ip(self.guest(number), &format!("address add {address}/32 dev eth0"));
        self.speaks_from(number, address);
        self.forget_links();
    }

    /// A guest's connections come from one of its addresses.
    pub fn speaks_from(&self, number: u8, address: Ipv4Addr) {
        ip(self.guest(number), &format!("route replace 10.66.0.1/32 dev eth0 src {address}"));
    }

    /// The guest's packets come from its own address again.
    pub fn speaks_from_its_own(&self, number: u8) {
        ip(self.guest(number), "route delete 10.66.0.1/32 dev eth0");
    }

    /// Ends it: the neighbour is the only one with its address again.
    pub fn ends_spoofing(&self, number: u8, neighbour: u8) {
        self.speaks_from_its_own(number);
        ip(self.guest(number), &format!("address delete {}/32 dev eth0", address(neighbour)));
        self.forget_links();
    }

    /// Clears the neighbour tables on the bridge: no address is mapped to a link any more. On a real one that takes a
    /// minute.
    fn forget_links(&self) {
        ip(&self.the_box, "neigh flush dev vmbr0");
        self.guests.iter().for_each(|guest| ip(guest, "neigh flush dev eth0"));
    }
}
