//! The machine's capacity, and the scale that a run chooses for it.

use std::path::Path;

use fanin_report::Records;
use fanin_scenario::Loaded;
use fanin_testbed::live::{Capacity, Chosen, LiveNetwork, configure, measure};

use super::arguments::Arguments;
use super::folder::RunFolder;
use crate::failure::Failure;
use crate::output;

/// The machine's capacity, and the scale that was chosen for the run.
pub(super) struct Carried {
    pub(super) capacity: Capacity,
    pub(super) chosen: Chosen,
}

impl Carried {
    /// Measures the machine, and chooses the scale that the scenario leaves open.
    pub(super) fn find(arguments: &Arguments, loaded: &Loaded, folder: &RunFolder) -> Result<Self, Failure> {
        // A network that cannot be built is refused before the measurement.
        let network = LiveNetwork::of(&loaded.scenario)?;
        for number in 0..network.switches.len() {
            configure(&loaded.scenario, &network, number, Path::new("unused"))?;
        }
        let bar = output::bar(arguments.quiet, "{spinner} measuring the capacity of this machine");
        let capacity = measure(&folder.network().join("calibration"), &std::env::current_exe()?);
        bar.finish_and_clear();
        let capacity = capacity?;
        let chosen = capacity.choose(&loaded.scenario, &network)?;
        Ok(Self { capacity, chosen })
    }

    /// Converts times by the clock into the scenario's.
    pub(super) fn rescale(&self, records: &mut Records) {
        let scale = self.chosen.scale;
        let back = |time: &mut u64| *time = scale.checked_of(*time).unwrap_or(*time);
        for row in &mut records.events {
            back(&mut row.assigned_ps);
            let times = [&mut row.first_request_ps, &mut row.last_byte_ps, &mut row.collection_time_ps];
            times.into_iter().flatten().for_each(back);
        }
        records.queues.iter_mut().for_each(|row| back(&mut row.time_ps));
        records.windows.iter_mut().for_each(|row| back(&mut row.time_ps));
        for row in &mut records.flows {
            [&mut row.rtt_min_ps, &mut row.rtt_smoothed_ps].into_iter().flatten().for_each(back);
        }
    }
}
