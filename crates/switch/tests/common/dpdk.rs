//! Common parts of tests with DPDK devices: arguments to start without huge pages and privileges, and frames.

pub(crate) const SERVER: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const COLLECTOR: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Arguments of its environment, before those of the devices.
pub(crate) fn arguments() -> Vec<String> {
    ["--no-huge", "-m", "128", "--iova-mode=va", "--no-telemetry", "--no-shconf", "--no-pci"]
        .map(str::to_owned)
        .to_vec()
}

/// A frame from the server to the collector, with its number.
pub(crate) fn frame(number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = [COLLECTOR, SERVER].concat();
    frame.extend([0x88, 0xb5]);
    frame.extend(number.to_be_bytes());
    frame.resize(bytes, number as u8);
    frame
}
