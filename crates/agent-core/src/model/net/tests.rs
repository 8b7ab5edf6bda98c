//! Tests of network lines.

use super::*;

const OWN: &str = "name=eth0,bridge=vmbr0,firewall=1,gw=10.66.0.1,hwaddr=BC:24:11:00:00:01,ip=10.66.0.20/24,tag=5,type=veth";

#[test]
fn a_line_reads_back_as_it_was_and_is_the_same_in_any_order() {
    let own: NetLine = OWN.parse().unwrap();
    assert_eq!(own.to_string(), OWN);
    let turned: Vec<&str> = OWN.split(',').rev().collect();
    assert_eq!(turned.join(",").parse::<NetLine>().unwrap(), own);
    assert_eq!((own.name(), own.bridge(), own.address()), ("eth0", Some("vmbr0"), Some("BC:24:11:00:00:01")));
}

#[test]
fn its_plug_is_pulled_and_its_hardware_address_changed() {
    let own: NetLine = OWN.parse().unwrap();
    let copys: NetLine =
        "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,ip=manual,link_down=1,type=veth".parse().unwrap();
    assert!(own.unplugged().is_unplugged() && !own.is_unplugged());
    assert_eq!(own.unplugged().to_string(), OWN.replace(",tag=5", ",link_down=1,tag=5"));
    assert_eq!(own.under_the_address_of(&copys).unwrap().to_string(), OWN.replace("00:01", "00:02"));
    let bare: NetLine = "name=eth0,bridge=vmbr0".parse().unwrap();
    assert_eq!(own.under_the_address_of(&bare), None);
}

#[test]
fn a_line_at_another_place_keeps_its_addresses() {
    let own: NetLine = OWN.parse().unwrap();
    let place = |bridge: &str, vlan: Option<u32>, gateway: Option<&str>| NetPlace {
        bridge: bridge.parse().unwrap(),
        vlan: vlan.map(|tag| tag.try_into().unwrap()),
        gateway: gateway.map(|text| text.parse().unwrap()),
        address: None,
        mtu: None,
        rate: None,
        firewall: None,
    };
    assert_eq!(own.at(&place("vmbr0", Some(5), Some("10.66.0.1"))), own);
    assert_eq!(
        own.at(&place("vmbr1", None, None)).to_string(),
        "name=eth0,bridge=vmbr1,firewall=1,hwaddr=BC:24:11:00:00:01,ip=10.66.0.20/24,type=veth"
    );
    let moved = NetPlace {
        address: Some("10.66.0.30/24".parse().unwrap()),
        ..place("vmbr0", Some(5), Some("10.66.0.1"))
    };
    assert_eq!(own.at(&moved).to_string(), OWN.replace("0.20/24", "0.30/24"));
}

#[test]
fn packets_limit_and_firewall_are_set_taken_back_or_left() {
    let by_hand: NetLine =
        "name=eth0,bridge=vmbr0,firewall=1,ip=10.66.0.20/24,mtu=1400,rate=2.5".parse().unwrap();
    let place = |mtu, rate, firewall| NetPlace {
        bridge: "vmbr0".parse().unwrap(),
        vlan: None,
        gateway: None,
        address: None,
        mtu,
        rate,
        firewall,
    };
    assert_eq!(by_hand.at(&place(None, None, None)), by_hand, "what no document names stays");
    let set = place(
        Some(Mtu::Bytes(9000.try_into().unwrap())),
        Some(Rate::MibPerS(50.try_into().unwrap())),
        Some(FirewallFlag::On),
    );
    assert_eq!(
        by_hand.at(&set).to_string(),
        "name=eth0,bridge=vmbr0,firewall=1,ip=10.66.0.20/24,mtu=9000,rate=50"
    );
    let back = place(Some(Mtu::Bridge), Some(Rate::Unlimited), Some(FirewallFlag::Off));
    assert_eq!(by_hand.at(&back).to_string(), "name=eth0,bridge=vmbr0,ip=10.66.0.20/24");
    let off: NetLine = "name=eth0,bridge=vmbr0,firewall=0".parse().unwrap();
    assert_eq!(off.at(&back), off, "off is off, however it is written");
}

#[test]
fn a_line_is_where_it_would_be_the_same() {
    let lines = [
        "name=eth0,bridge=vmbr0,ip=10.66.0.20/24",
        "name=eth0,bridge=vmbr1,ip=10.66.0.20/24",
        "name=eth0,bridge=vmbr0,ip=10.66.0.20/2",
        "name=eth0,bridge=vmbr0,ip=10.66.0.20/244",
        "name=eth0,bridge=vmbr0,ip=dhcp",
        "name=eth0,bridge=vmbr0,ip=10.66.0.20/+24",
        "name=eth0,bridge=vmbr0,gw=none,ip=10.66.0.020/24",
        "name=eth0,bridge=vmbr0,gw=10.66.0.01,ip=10.66.0.20/24",
        "name=eth0,bridge=vmbr0",
        "name=eth0,bridge=vmbr0,gw=10.66.0.1,ip=10.66.0.20/24,tag=5",
        "name=eth0,bridge=vmbr0,firewall=1,ip=10.66.0.20/24,mtu=1400,rate=50",
        "name=eth0,bridge=vmbr0,firewall=0,ip=10.66.0.20/24,mtu=9000,rate=2.5",
        OWN,
    ];
    let mut same = 0;
    for line in lines.map(|line| line.parse::<NetLine>().unwrap()) {
        for number in 0..3_u32.pow(5) {
            let choice = |place: u32| number / 3_u32.pow(place) % 3;
            let vlan = [None, Some(5), Some(50)][choice(0) as usize];
            let gateway = [None, Some("10.66.0.1"), Some("10.66.0.10")][choice(1) as usize];
            let network = GuestNetwork {
                bridge: "vmbr0".parse().unwrap(),
                address: "10.66.0.20/24".parse().unwrap(),
                gateway: gateway.map(|text| text.parse().unwrap()),
                vlan: vlan.map(|tag| tag.try_into().unwrap()),
                mtu: [None, Some(Mtu::Bridge), Some(Mtu::Bytes(1400.try_into().unwrap()))]
                    [choice(2) as usize],
                rate: [None, Some(Rate::Unlimited), Some(Rate::MibPerS(50.try_into().unwrap()))]
                    [choice(3) as usize],
                firewall: [None, Some(FirewallFlag::On), Some(FirewallFlag::Off)][choice(4) as usize],
                address_filter: None,
                resolver: None,
            };
            let stays = line.at(&NetPlace::of(&network)) == line;
            assert_eq!(line.is_at(&network), stays, "{line} at {network:?}");
            same += usize::from(stays);
        }
    }
    assert!(same > 20, "{same}");
}

#[test]
fn what_is_no_line_is_refused() {
    for bad in [
        "",
        "bridge=vmbr0",
        "name=eth0,",
        "name=eth0,name=eth1",
        "name=eth0,ip=a b",
        "name=eth0,IP=x",
        "eth0",
    ] {
        assert!(bad.parse::<NetLine>().is_err(), "{bad:?}");
    }
    assert!(format!("name={}", "x".repeat(CHARS_MAX)).parse::<NetLine>().is_err());
}
