//! Compares the memory of a live collector with its events in progress.

use fanin_units::Bytes;

use crate::errors::Problem;
use crate::tree::{TomlNode, TomlTable};
use crate::types::*;

/// Returns a warning if the events of a live collector do not fit its memory for received messages. Fragments then arrive late
/// or count as missing. Sizes in files are not known here.
pub(crate) fn scarce_memory(scenario: &Scenario, tree: &TomlTable) -> Option<Problem> {
    let mean = scenario.readout.fragment_size.mean().filter(|_| !scenario.is_barrier())?;
    let waiting = if scenario.logger.hosts > 0 { u64::from(scenario.live.shipping_max) } else { 0 };
    let events = u64::from(scenario.collectors.units_per_host) + waiting;
    let size = mean.get().saturating_mul(scenario.fragments_total());
    // Buffers are up to a quarter larger than their content.
    let needed = size.saturating_mul(events).saturating_mul(5) / 4;
    if needed <= RECEIVE_BYTES_MAX {
        return None;
    }
    let message = format!(
        "a live collector may need {} for {events} events of {}, and has {} for received messages",
        Bytes::new(needed),
        Bytes::new(size),
        Bytes::new(RECEIVE_BYTES_MAX)
    );
    let place = ["collectors.units_per_host", "live.shipping_max", "readout.fragment_size"]
        .into_iter()
        .find_map(|path| tree.find(path).and_then(TomlNode::place).cloned());
    let label = "fragments would arrive late, or count as missing".to_owned();
    let help =
        "lower `collectors.units_per_host` or `live.shipping_max`; plans and simulations have no such limit";
    Some(Problem { message, label, place, other: None, help: vec![help.to_owned()] })
}
