//! Parses the hosts and ports in a system's file.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Maximum number of hosts in one range.
const HOSTS_MAX: usize = 100_000;

/// Returns the port in `host:port`; `None` if the host is empty or the port is not in 1 to 65535.
pub fn port(address: &str) -> Option<u16> {
    let (host, port) = address.rsplit_once(':')?;
    port.parse().ok().filter(|&port| port != 0 && !host.is_empty())
}

/// Returns the addresses at which a process listens: `address`, or all to which its host's name resolves. `listen`
/// replaces the host.
///
/// # Errors
/// If the name does not resolve.
pub fn listen_addresses(address: &str, listen: Option<IpAddr>) -> std::io::Result<Vec<SocketAddr>> {
    if let (Some(listen), Some(port)) = (listen, port(address)) {
        return Ok(vec![SocketAddr::new(listen, port)]);
    }
    let mut found: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Expands names with a range of numbers in brackets: `ros-[00-23]` becomes 24 names.
///
/// # Errors
/// The invalid name, and the reason.
pub(super) fn expand(list: &[String]) -> Result<Vec<String>, (String, &'static str)> {
    let mut all = Vec::new();
    for name in list {
        let fail = |why| (name.clone(), why);
        if name.is_empty() {
            return Err(fail("a name is empty"));
        }
        let range = name.split_once('[').and_then(|(before, rest)| {
            let (range, after) = rest.split_once(']')?;
            range.split_once('-').map(|range| (before, range, after))
        });
        match range {
            // An IPv6 address stands in brackets too, but has no such range.
            Some((before, (from, to), after)) => {
                let number = |text: &str| text.parse::<u32>().map_err(|_| fail("a range is written [0-23]"));
                let (first, last) = (number(from)?, number(to)?);
                if first > last || (last - first) as usize >= HOSTS_MAX {
                    return Err(fail("a range goes from a lower to a higher number"));
                }
                let width = from.len();
                all.extend((first..=last).map(|n| format!("{before}{n:0width$}{after}")));
            }
            None if name.contains(['[', ']']) && !name.starts_with('[') => {
                return Err(fail("a range is written [0-23]"));
            }
            None => all.push(name.clone()),
        }
    }
    Ok(all)
}
