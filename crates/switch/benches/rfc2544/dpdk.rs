//! The same measurements over ports of DPDK: its null devices, which produce frames as fast as they are received, and discard
//! sent ones.
//!
//! DPDK starts once in a process, so that each row is measured by a process of its own. With FANIN_HUGEPAGES=1 they use huge pages
//! (set /proc/sys/vm/nr_hugepages to 800 first).

#[path = "../eal/mod.rs"]
mod eal;

use std::process::{Command, Stdio};

use fanin_switch::DpdkPorts;

use crate::offered::OfferedPorts;
use crate::{Device, FCS, SIZES, TRAFFIC, bursts, config, destination, frame, mac, row, show_burst, sizes};

const WORD: &str = "--dpdk";

/// Returns true if the measurements over DPDK were asked for.
pub(crate) fn is_asked() -> bool {
    std::env::args().any(|argument| argument == WORD)
}

/// A switch over null devices, which copy all payloads as network cards do by DMA.
fn device(ports: usize, bytes: usize, tag: Option<u16>) -> Device<DpdkPorts> {
    let mut config = config(ports, tag);
    config.dpdk.arguments = eal::arguments(512);
    for (number, port) in config.port.iter_mut().enumerate() {
        let name = format!("net_null{number}");
        config.dpdk.arguments.push(format!("--vdev={name},size={},copy=1", bytes - FCS));
        port.dpdk = Some(name);
    }
    let headers = (0..ports)
        .map(|port| {
            let header = |turn| {
                let frame = frame(mac(2, destination(ports, port, turn)), mac(2, port), bytes, tag);
                frame[..if tag.is_some() { 18 } else { 14 }].to_vec()
            };
            (0..ports - 1).map(header).collect()
        })
        .collect();
    let driver = DpdkPorts::open(&config).unwrap_or_else(|error| panic!("{error}")).remove(0);
    Device::new(config, OfferedPorts::new(driver, headers))
}

/// Measures all rows, or the row whose place in the table follows the word on the command line.
#[expect(clippy::print_stdout, reason = "a benchmark says what it measured")]
pub(crate) fn measure(quick: bool) {
    let rows: Vec<_> =
        TRAFFIC.into_iter().flat_map(|traffic| sizes(traffic).map(move |bytes| (traffic, bytes))).collect();
    let place =
        std::env::args().skip_while(|argument| argument != WORD).nth(1).and_then(|place| place.parse().ok());
    let Some(place) = place else {
        for place in 0..rows.len() + SIZES.len() {
            println!("{}", of_own_process(place));
        }
        return;
    };
    match rows.get::<usize>(place) {
        Some(&((name, pattern, tag), bytes)) => {
            row(name, bytes, &mut device(pattern.ports(), bytes, tag), quick);
        }
        None => {
            let bytes = SIZES[place - rows.len()];
            let (rate, most) = bursts(bytes, quick);
            show_burst(bytes, device(2, bytes, None).back_to_back(rate, most), most);
        }
    }
}

/// The line that a process of its own prints for a row.
fn of_own_process(place: usize) -> String {
    let own = std::env::current_exe().expect("this program has a file");
    let output = Command::new(own)
        .args(["--bench", WORD, &place.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .expect("this program starts");
    assert!(output.status.success(), "the measurement of row {place} failed");
    // DPDK's own output precedes it.
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or("gave no figure").to_owned()
}
