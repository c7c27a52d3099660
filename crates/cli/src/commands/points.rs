//! The points of a sweep: checked before anything runs, loaded when each begins.

use fanin_runs::MemoryEstimate;
use fanin_scenario::{Loaded, ScenarioSource};
use fanin_units::Bytes;

use super::sim::{Arguments, Shard, repeats, settings};
use crate::failure::Failure;
use crate::{build_info, output};

/// Bytes of memory for a point until all have ended, more than measured (incast: 19 kB).
const RESULT: Bytes = Bytes::new(30_000);

/// A point of a sweep with one of its seeds. Its scenario is loaded when it begins, so that many points take little memory.
pub(super) struct PlannedPoint {
    /// Place among all points and seeds of the sweep, from 0.
    pub(super) number: usize,
    /// The swept settings.
    pub(super) sets: Vec<String>,
    /// The seed, where it is not that of the settings.
    seed: Option<u64>,
    /// Bytes of memory that its run needs at least.
    pub(super) memory: u64,
    /// Digest of the file of sizes that was checked.
    sizes_digest: Option<[u8; 32]>,
    /// Name of its folder, where folders are named by hashes.
    pub(super) key: Option<String>,
}

/// The points of a sweep that this command plays.
pub(super) struct PlannedPoints {
    source: ScenarioSource,
    pub(super) points: Vec<PlannedPoint>,
    /// Swept settings that the check refuses, with the reason.
    pub(super) refused: Vec<(Vec<String>, Failure)>,
    /// Number of the sweep's points, those of other shards and refused ones included.
    pub(super) total: u64,
}

impl PlannedPoints {
    /// Checks the points of the shard before anything runs.
    ///
    /// # Errors
    /// If the results of all points do not fit the memory, or every point is refused.
    pub(super) fn load(arguments: &Arguments, has_hashes: bool) -> Result<Self, Failure> {
        let of_sweeps = arguments.sweep.iter().map(|sweep| sweep.values.len() as u64);
        let combinations = of_sweeps.fold(1, u64::saturating_mul);
        let repeats = repeats(arguments);
        let total = combinations.saturating_mul(repeats as u64);
        let shard = arguments.shard.unwrap_or(Shard { index: 0, of: 1 });
        fanin_runs::check_results(total / shard.of as u64, RESULT)?;
        let source = ScenarioSource::read(&arguments.source.source)?;
        let mut planned = Self { source, points: Vec::new(), refused: Vec::new(), total };
        for combination in 0..combinations as usize {
            let first = combination * repeats;
            let is_own = |number: &usize| number % shard.of == shard.index;
            let numbers: Vec<usize> = (first..first + repeats).filter(is_own).collect();
            if numbers.is_empty() {
                continue;
            }
            let sets = swept_settings(arguments, combination);
            match planned.source.load(&settings(arguments, &sets)) {
                Ok(loaded) => {
                    output::warn(&loaded.warnings);
                    for number in numbers {
                        let point = planned.plan(arguments, &loaded, number, &sets, has_hashes)?;
                        planned.points.push(point);
                    }
                }
                Err(reason) => planned.refused.push((sets, reason.into())),
            }
        }
        // Without any point the first reason is the error.
        if planned.points.is_empty() && !planned.refused.is_empty() {
            return Err(planned.refused.swap_remove(0).1);
        }
        Ok(planned)
    }

    fn plan(
        &self,
        arguments: &Arguments,
        loaded: &Loaded,
        number: usize,
        sets: &[String],
        has_hashes: bool,
    ) -> Result<PlannedPoint, Failure> {
        let place = (number % repeats(arguments)) as u64;
        let mut point = PlannedPoint {
            number,
            sets: sets.to_vec(),
            seed: (place > 0).then(|| loaded.scenario.run.seed.saturating_add(place)),
            memory: MemoryEstimate::new(&loaded.scenario).total().get(),
            sizes_digest: loaded.scenario.readout.sizes_digest,
            key: None,
        };
        if has_hashes {
            point.key = Some(self.scenario(arguments, &point)?.point_key(build_info::VERSION));
        }
        Ok(point)
    }

    /// Loads the scenario of a point.
    pub(super) fn scenario(&self, arguments: &Arguments, point: &PlannedPoint) -> Result<Loaded, Failure> {
        let mut sets = settings(arguments, &point.sets);
        sets.extend(point.seed.map(|seed| format!("run.seed={seed}")));
        let mut loaded = self.source.load(&sets)?;
        // A file of sizes that changes before the point begins is refused.
        loaded.scenario.readout.sizes_digest = point.sizes_digest;
        Ok(loaded)
    }
}

/// Returns the swept settings of a point: the combination of this number, where the last option changes first.
fn swept_settings(arguments: &Arguments, combination: usize) -> Vec<String> {
    let mut rest = combination;
    let mut sets: Vec<String> = Vec::new();
    for sweep in arguments.sweep.iter().rev() {
        sets.push(format!("{}={}", sweep.key, sweep.values[rest % sweep.values.len()]));
        rest /= sweep.values.len();
    }
    sets.reverse();
    sets
}
