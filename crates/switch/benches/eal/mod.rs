//! Arguments of DPDK's environment abstraction layer that all benchmarks share.

/// Returns the option for pages. Huge pages need no file system in memory.
pub(crate) fn pages() -> &'static str {
    if std::env::var_os("FANIN_HUGEPAGES").is_some() { "--in-memory" } else { "--no-huge" }
}

/// Returns the arguments of a DPDK process with this memory in MiB, without its devices.
pub(crate) fn arguments(memory: u32) -> Vec<String> {
    let memory = memory.to_string();
    ["-m", memory.as_str(), "--iova-mode=va", "--no-telemetry", "--no-shconf", "--no-pci", pages()]
        .map(str::to_owned)
        .into()
}
