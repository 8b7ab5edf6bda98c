//! Named formats, with the real refusal texts.
//!
//! In: a format name (`-list` and `-opt` endings included, `@name` for a property string) and a text. Out: fits, or why not.
use std::net::{Ipv4Addr, Ipv6Addr};

use super::property;
use super::table::Table;

/// Judges a text by a named format. `path` is the parameter's name, for nested texts.
///
/// # Errors
/// The refusal, newline included.
pub fn check(table: &Table, format: &str, text: &str, path: &str) -> Result<(), String> {
    if let Some(name) = property_name(table, format) {
        let keys = table.format(name).ok_or_else(|| format!("undefined format '{format}'\n"))?;
        return property::parse(table, keys, text).map(drop).map_err(|fault| fault.text(&format!("{path}.")));
    }
    if let Some(single) = format.strip_suffix("-list") {
        return split_list(text).try_for_each(|part| scalar(single, part).ok_or_else(undefined(format))?);
    }
    if let Some(single) = format.strip_suffix("-opt") {
        return if text.is_empty() { Ok(()) } else { scalar(single, text).ok_or_else(undefined(format))? };
    }
    scalar(format, text).ok_or_else(undefined(format))?
}

fn undefined(format: &str) -> impl Fn() -> String {
    move || format!("undefined format '{format}'\n")
}

/// Formats that the schema names but whose keys it does not spell out.
fn property_name<'a>(table: &Table, format: &'a str) -> Option<&'a str> {
    let name = format.strip_prefix('@').unwrap_or(format);
    (format.starts_with('@') || table.format(name).is_some()).then_some(name)
}

/// Whether a format can be judged.
#[must_use]
pub fn known(table: &Table, format: &str) -> bool {
    let single = format.strip_suffix("-list").or_else(|| format.strip_suffix("-opt")).unwrap_or(format);
    property_name(table, format).is_some_and(|name| table.format(name).is_some())
        || scalar(single, "x").is_some()
}

/// The real splitter: commas, semicolons, NULs and blanks.
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| matches!(c, ',' | ';' | '\0') || c.is_ascii_whitespace())
        .filter(|part| !part.is_empty())
}

type Judgement = Result<(), String>;

fn say(fits: bool, text: impl FnOnce() -> String) -> Judgement {
    if fits { Ok(()) } else { Err(text() + "\n") }
}

fn looks(fits: bool, what: &str) -> Judgement {
    say(fits, || format!("value does not look like a valid {what}"))
}

/// `None` when the format is not known.
fn scalar(format: &str, text: &str) -> Option<Judgement> {
    network(format, text)
        .or_else(|| access(format, text))
        .or_else(|| storage(format, text))
        .or_else(|| guest(format, text))
        .or_else(|| firewall(format, text))
}

/// Helpers that follow connections.
const HELPERS: &[&str] = &["amanda", "ftp", "irc", "netbios-ns", "pptp", "sane", "sip", "snmp", "tftp"];

fn firewall(format: &str, text: &str) -> Option<Judgement> {
    use crate::firewall::address;
    Some(match format {
        "IPorCIDR" | "IPorCIDRorAlias" => {
            let fits = match address::read(text) {
                Some(address::Address::Alias(_)) => format == "IPorCIDRorAlias",
                other => other.is_some(),
            };
            looks(fits, "IP address or CIDR network")
        }
        "pve-fw-addr-spec" => text.split(',').try_for_each(|part| {
            let set = part.strip_prefix('+').unwrap_or(part);
            let ends = part.split('-').all(|end| address::read(end).is_some());
            let fits = ends || set.split('/').all(address::is_name);
            say(fits, || format!("invalid IP address: {}", wrong_quad(part)))
        }),
        "pve-fw-dport-spec" | "pve-fw-sport-spec" => {
            say(text.split([',', ':']).all(|port| simple(port, "-")), || format!("invalid port '{text}'"))
        }
        "pve-fw-conntrack-helper" => {
            say(HELPERS.contains(&text), || format!("value '{text}' is not a known connection helper"))
        }
        "pve-fw-protocol-spec" => say(simple(text, "-."), || format!("invalid protocol '{text}'")),
        "pve-fw-icmp-type-spec" => say(simple(text, "-/"), || format!("invalid icmp-type '{text}'")),
        _ => return None,
    })
}

/// The error in an address, as the real library reports it.
fn wrong_quad(text: &str) -> String {
    let large = text.split('.').find(|quad| quad.parse::<u32>().is_ok_and(|quad| quad > 255));
    large.map_or_else(|| text.to_owned(), |quad| format!("Invalid quad in IP address {text} - {quad}"))
}

fn network(format: &str, text: &str) -> Option<Judgement> {
    Some(match format {
        "ipv4" => looks(text.parse::<Ipv4Addr>().is_ok(), "IPv4 address"),
        "ipv6" => looks(text.parse::<Ipv6Addr>().is_ok(), "IPv6 address"),
        "ip" => looks(is_ip(text), "IP address"),
        "address" => {
            say(is_ip(text) || is_dns(text), || format!("value does not look like a valid address: {text}"))
        }
        "lxc-ip-with-ll-iface" => looks(is_link_local(text) || is_ip(text), "IP address"),
        "pve-ipv4-config" => {
            looks(matches!(text, "dhcp" | "manual") || is_cidr4(text), "ipv4 network configuration")
        }
        "pve-ipv6-config" => {
            looks(matches!(text, "auto" | "dhcp" | "manual") || is_cidr6(text), "ipv6 network configuration")
        }
        "dns-name" => looks(is_dns(text), "DNS name"),
        "mac-addr" => looks(is_mac(text), "unicast MAC address"),
        "pve-iface" => say(is_iface(text), || format!("invalid network interface name '{text}'")),
        "pve-bridge-id" => {
            say(!text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)), || {
                format!("invalid bridge ID '{text}'")
            })
        }
        "email" => looks(is_email(text), "email address"),
        "email-or-username" => looks(is_email(text) || simple(text, "-_.+&"), "email address or user name"),
        _ => return None,
    })
}

fn access(format: &str, text: &str) -> Option<Judgement> {
    Some(match format {
        "pve-userid" => user_id(text),
        "pve-realm" => say(is_realm(text), || format!("value '{text}' does not look like a valid realm")),
        "pve-tokenid" => {
            say(is_token_id(text), || format!("value '{text}' does not look like a valid token ID"))
        }
        "pve-groupid" => {
            say(simple(text, ".-_"), || format!("group name '{text}' contains invalid characters"))
        }
        "pve-roleid" => {
            say(simple(text, ".-_"), || format!("role name '{text}' contains invalid characters"))
        }
        "pve-priv" => say(crate::access::privileges::exists(text), || format!("invalid privilege '{text}'")),
        "pve-poolid" if text.split('/').count() > 3 => {
            Err(format!("pool name '{text}' nested too deeply (max levels = 3)\n"))
        }
        "pve-poolid" => say(text.split('/').all(|part| simple(part, ".-_")), || {
            format!("pool name '{text}' contains invalid characters")
        }),
        "pve-tfa-config" => Ok(()),
        _ => return None,
    })
}

fn storage(format: &str, text: &str) -> Option<Judgement> {
    Some(match format {
        "pve-storage-id" if text.chars().count() < 2 => {
            Err(format!("storage ID '{text}' cannot be shorter than 2 characters\n"))
        }
        "pve-storage-id" => {
            say(is_storage_id(text), || format!("storage ID '{text}' contains illegal characters"))
        }
        "pve-volume-id" => say(is_volume_id(text), || format!("unable to parse volume ID '{text}'")),
        "pve-storage-content" => say(is_content(text), || format!("invalid content type '{text}'")),
        "pve-storage-path" => looks(
            text.len() > 1 && text.starts_with('/') && !text[1..2].contains([';', '(', ')']),
            "absolute path",
        ),
        "pve-storage-server" | "pve-storage-portal-dns" => {
            looks(is_ip(text) || is_dns(text), "server name or IP address")
        }
        "pve-storage-options" => {
            say(!text.contains(char::is_whitespace), || format!("invalid options '{text}'"))
        }
        "pve-storage-vgname" => {
            say(simple(text, "-_."), || format!("lvm name '{text}' contains illegal characters"))
        }
        "pve-storage-zfs-blocksize" => {
            say(text.trim_end_matches(['k', 'K', 'm', 'M']).parse::<u64>().is_ok(), || {
                format!("'{text}' is not a valid block size")
            })
        }
        "pve-dir-override" => say(text.split_once('=').is_some_and(|(kind, _)| is_content(kind)), || {
            format!("invalid override '{text}'")
        }),
        "disk-size" => {
            say(parse_size(text).is_some(), || format!("value does not look like a valid disk size: {text}"))
        }
        "storage-pair" | "bridge-pair" | "proxmox-remote" => Ok(()),
        _ => return None,
    })
}

fn guest(format: &str, text: &str) -> Option<Judgement> {
    Some(match format {
        "pve-vmid" => looks(is_vmid(text), "VM ID"),
        "pve-node" => looks(is_label(text), "node name"),
        "pve-configid" => say(is_config_id(text), || format!("invalid configuration ID '{text}'")),
        "pve-tag" => say(is_tag(text), || "invalid characters in tag".to_owned()),
        "pve-startup-order" => say(is_startup(text), || "unable to parse startup options".to_owned()),
        "pve-ct-timezone" => say(is_timezone(text), || format!("invalid time zone '{text}'")),
        "pve-lxc-mp-string" => say(!climbs(text), || format!("{text} contains illegal character sequences")),
        "pve-lxc-dev-string" => {
            say(text.starts_with("/dev/") && !dotted(text), || format!("{text} is not a valid device path"))
        }
        "pve-task-status-type" => {
            let word = text.to_ascii_lowercase();
            say(["ok", "error", "warning", "unknown"].contains(&word.as_str()), || {
                format!("invalid status '{text}'")
            })
        }
        _ => return None,
    })
}

fn is_ip(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

fn is_link_local(text: &str) -> bool {
    text.split_once('%').is_some_and(|(addr, iface)| {
        addr.starts_with("fe80:") && addr.parse::<Ipv6Addr>().is_ok() && is_iface(iface)
    })
}

fn is_cidr4(text: &str) -> bool {
    text.split_once('/').is_some_and(|(addr, bits)| {
        addr.parse::<Ipv4Addr>().is_ok() && bits.parse::<u8>().is_ok_and(|n| (8..=32).contains(&n))
    })
}

fn is_cidr6(text: &str) -> bool {
    text.split_once('/').is_some_and(|(addr, bits)| {
        addr.parse::<Ipv6Addr>().is_ok() && bits.parse::<u8>().is_ok_and(|n| (8..=128).contains(&n))
    })
}

fn is_label(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn is_dns(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let hex = parts.iter().all(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()));
    let unicast = text.chars().nth(1).and_then(|c| c.to_digit(16)).is_some_and(|low| low % 2 == 0);
    parts.len() == 6 && hex && unicast
}

fn is_iface(text: &str) -> bool {
    let name = text.split([':', '.']).next().unwrap_or_default();
    let rest = text.get(name.len()..).unwrap_or_default();
    let suffix = rest.is_empty() || (rest.len() > 1 && rest.bytes().skip(1).all(|b| b.is_ascii_digit()));
    (2..=21).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && suffix
}

fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(local, host)| simple(local, "+-_.~&") && is_dns(host))
}

/// ASCII letters, digits and the given marks, at least one.
fn simple(text: &str, marks: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c))
}

fn user_id(text: &str) -> Judgement {
    match text.chars().count() {
        0..=2 => Err(format!("user name '{text}' is too short\n")),
        long @ 65.. => Err(format!("user name '{text}' is too long ({long} > 64)\n")),
        _ => say(is_user_id(text), || format!("value '{text}' does not look like a valid user name")),
    }
}

/// `name@realm`
#[must_use]
pub fn is_user_id(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(name, realm)| {
        !name.is_empty()
            && !name.contains(|c: char| c.is_whitespace() || matches!(c, ':' | '/'))
            && is_realm(realm)
    })
}

fn is_realm(text: &str) -> bool {
    text.len() >= 2 && text.starts_with(|c: char| c.is_ascii_alphabetic()) && simple(text, ".-_")
}

/// `name@realm!token`
#[must_use]
pub fn is_token_id(text: &str) -> bool {
    text.rsplit_once('!').is_some_and(|(user, token)| is_user_id(user) && is_realm(token))
}

fn is_storage_id(text: &str) -> bool {
    text.len() >= 2
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && simple(text, "-_.")
}

fn is_volume_id(text: &str) -> bool {
    text.split_once(':').is_some_and(|(storage, name)| is_storage_id(storage) && !name.is_empty())
}

fn is_content(text: &str) -> bool {
    ["images", "rootdir", "vztmpl", "iso", "backup", "snippets", "none", "import"].contains(&text)
}

fn is_vmid(text: &str) -> bool {
    (3..=9).contains(&text.len()) && !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_config_id(text: &str) -> bool {
    text.len() >= 2 && text.starts_with(|c: char| c.is_ascii_alphabetic()) && simple(text, "-_")
}

fn is_tag(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && simple(text, "_-+.")
}

fn is_startup(text: &str) -> bool {
    let number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let part = |part: &str| {
        let bare = part
            .strip_prefix("order=")
            .or_else(|| part.strip_prefix("up="))
            .or_else(|| part.strip_prefix("down="));
        part.trim().is_empty() || number(bare.unwrap_or(part))
    };
    !text.is_empty() && text != "0" && text.split(',').all(part)
}

/// Where the zones of the zone table lie.
const AREAS: &[&str] = &[
    "Africa",
    "America",
    "Antarctica",
    "Arctic",
    "Asia",
    "Atlantic",
    "Australia",
    "Etc",
    "Europe",
    "Indian",
    "Pacific",
];

/// The real one looks into the zone table of the system; here the area and the shape are judged.
fn is_timezone(text: &str) -> bool {
    matches!(text, "host" | "UTC")
        || text.split_once('/').is_some_and(|(area, place)| {
            AREAS.contains(&area)
                && place.starts_with(|c: char| c.is_ascii_uppercase())
                && simple(text, "/_-+")
        })
}

fn dotted(text: &str) -> bool {
    text.contains("/./") || text.contains("/../") || text.ends_with("/.") || text.ends_with("/..")
}

fn climbs(text: &str) -> bool {
    dotted(text) || text.starts_with("../")
}

/// A size with an optional unit, in bytes.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let plain = text.strip_suffix("iB").unwrap_or(text);
    let (number, shift) = match plain.chars().last()? {
        'K' => (plain.strip_suffix('K')?, 10),
        'M' => (plain.strip_suffix('M')?, 20),
        'G' => (plain.strip_suffix('G')?, 30),
        'T' => (plain.strip_suffix('T')?, 40),
        _ if plain.len() == text.len() => (plain, 0),
        _ => return None,
    };
    let shaped = number.split('.').count() <= 2
        && number.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let value: f64 = shaped.then(|| number.parse().ok())??;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes are positive and far below 2^63"
    )]
    let bytes = (value * (1_u64 << shift) as f64) as u64;
    Some(bytes)
}

/// A size as the real API writes it: the largest unit that divides it.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    let mut value = bytes;
    for unit in ["", "K", "M", "G"] {
        if !value.is_multiple_of(1024) {
            return format!("{value}{unit}");
        }
        value /= 1024;
    }
    format!("{value}T")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_write_as_the_real_ones() {
        assert_eq!(parse_size("1G"), Some(1 << 30));
        assert_eq!(parse_size("0.5MiB"), Some(1 << 19));
        assert_eq!(parse_size("1.G"), None);
        assert_eq!(parse_size("lots"), None);
        assert_eq!(format_size(0), "0T");
        assert_eq!(format_size(10 << 20), "10M");
        assert_eq!(format_size(1100 << 20), "1100M");
        assert_eq!(format_size(1 << 32), "4G");
    }

    #[test]
    fn edges_of_the_small_formats() {
        let fits = |format: &str, text: &str| scalar(format, text).expect("known").is_ok();
        assert!(fits("mac-addr", "BC:24:11:00:00:01") && !fits("mac-addr", "BD:24:11:00:00:01"));
        assert!(fits("pve-configid", "a-b_1") && !fits("pve-configid", "a") && !fits("pve-configid", "1bad"));
        assert!(fits("dns-name", "a.b-c") && !fits("dns-name", "-bad-") && !fits("dns-name", "a..b"));
        assert!(fits("pve-startup-order", "order=2,up=5") && !fits("pve-startup-order", "order=x"));
        assert!(fits("pve-vmid", "100") && !fits("pve-vmid", "99") && !fits("pve-vmid", "1000000000"));
        assert!(fits("pve-tokenid", "a@pve!x1") && !fits("pve-tokenid", "a@pve!x"));
    }
}
