//! Credits (thesis §5.3): their figures. Collectors request no more fragments than they have credits
//! (`dataflow/src/credit.rs`).

use fanin_dataflow::Collector;
use fanin_report::{ShapingFigures, Summary};
use fanin_scenario::ShapingMethod;
use fanin_units::Bytes;

use super::hooks::TechniqueFunctions;

pub(super) const TECHNIQUE: TechniqueFunctions = TechniqueFunctions {
    report_collectors: report,
    holds_requests: |setup| setup.scenario.shaping.method == ShapingMethod::Credits,
    ..TechniqueFunctions::NONE
};

fn report(collectors: &[Collector<Bytes>], summary: &mut Summary) {
    let Some(credits) = collectors.first().and_then(Collector::credits_total) else { return };
    let counters = collectors.iter().map(Collector::counters);
    let (waited, requests) = counters.fold((0.0, 0), |(time, requests), one| {
        (time + one.wait_time.as_millis_f64(), requests + one.requests)
    });
    summary.shaping = Some(ShapingFigures {
        credits: Some(u64::from(credits)),
        wait_ms_mean: (requests > 0).then(|| waited / requests as f64),
    });
}
