//! Paced credits: their figures. Collectors request bytes at their link's rate, within a window
//! (`dataflow/src/paced_credits`).

use fanin_dataflow::Collector;
use fanin_report::Summary;
use fanin_scenario::ShapingMethod;
use fanin_units::Bytes;
use serde_json::json;

use super::hooks::TechniqueFunctions;

pub(super) const TECHNIQUE: TechniqueFunctions = TechniqueFunctions {
    report_collectors: report,
    holds_requests: |setup| setup.scenario.shaping.method == ShapingMethod::PacedCredits,
    ..TechniqueFunctions::NONE
};

/// Reports figures over all collectors: windows at the end, the most outstanding bytes, losses and reminders.
fn report(collectors: &[Collector<Bytes>], summary: &mut Summary) {
    let paced: Vec<_> = collectors.iter().filter_map(Collector::paced_credits).collect();
    let Some(outstanding) = paced.iter().map(|one| one.outstanding_max().get()).max() else { return };
    let windows: u64 = paced.iter().map(|one| one.window().get()).sum();
    let figures = json!({
        "window_bytes_mean": windows as f64 / paced.len() as f64,
        "outstanding_bytes_max": outstanding,
        "losses": paced.iter().map(|one| one.losses()).sum::<u64>(),
        "reminders": collectors.iter().map(|one| one.counters().reminders).sum::<u64>(),
    });
    summary.techniques.insert("paced_credits".to_owned(), figures);
}
