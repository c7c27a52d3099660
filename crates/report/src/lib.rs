//! Result records in one schema, their files, packet captures, and the page that shows them.
//!
//! A plan, a simulation and a run of one scenario end in the same records, so that a prediction can be compared
//! with a measurement. These are a [`Summary`] (`summary.json`), tables of rows, and one self-contained page.

#![forbid(unsafe_code)]

#[cfg(feature = "arrow")]
mod arrow;
mod capture;
mod causes;
#[cfg(feature = "parquet")]
mod columns;
mod compare;
mod figures;
mod files;
mod late;
mod named;
mod overload;
mod page;
mod picture;
mod plan;
mod result;
mod rows;
mod seeds;
mod several;
#[cfg(test)]
#[path = "../../../tests/skip.rs"]
mod skip;
mod statistics;
mod summary;
mod sweep;
#[cfg(feature = "parquet")]
mod tables;
mod trace;

#[cfg(feature = "arrow")]
pub use arrow::{RowBatches, TableName};
pub use capture::{Capture, InterfaceId};
pub use causes::{
    ConnectionFigures, LateSummary, Overload, PortFigures, SourceDrops, WarmupLosses, worst_connections,
};
pub use compare::{
    Agreement, ComparedFigure, Comparison, Fact, GOALS, Goals, INCAST_SLOWDOWN, Subject, compare, is_incast,
};
pub use figures::{Span, events, goodput, ports_of_queues, queue_bytes_max, rate_hz, slowdown, tcp, times};
#[cfg(feature = "arrow")]
pub use files::read_rows;
pub use files::{
    CLAIMS_FILE, CLAIMS_SCHEMA, PAGE_FILE, PICTURE_FILE, ReadError, SCENARIO_FILE, SUMMARY_FILE, WriteError,
    is_stored, read, read_all, read_claims, read_head, write, write_once,
};
pub use late::late_text;
pub use named::{FigureUnit, NAMED_FIGURES, NamedFigure, named_figure};
pub use overload::WantedEvents;
pub use page::{
    ADVICE_PARTS, Headline, JudgedClaim, PageWords, SWEEP_PAGE, advice_page, headline, page, page_of,
};
pub use picture::{
    LateCause, LateEvent, LateSource, LateStall, LinkGroup, NetworkGroups, NodeGroup, PICTURE_SCHEMA,
    PortTimeline, RingTimeline, RunPicture, RunTimeline,
};
pub use plan::{
    PlanBracket, PlanComparison, PlanCost, PlanLink, PlanQueue, PlanRow, PlanSummary, PlanVerdict,
};
pub use result::{RunResult, SAMPLES_OF_P99, cautions_of};
pub use rows::{
    EventOutcome, EventRow, FlowRow, IoRow, LevelRow, QueueRow, Records, SystemLevels, WindowRow,
};
pub use seeds::{SeedFigure, least, seed_figures, seed_values};
pub use several::{
    ADVICE_SCHEMA, COMPARED_FILE, COMPARED_SCHEMA, compared_words, read_advice_page, read_compared,
    read_tuned, tuned_words,
};
pub use statistics::{Interval, Moments, deviation, interval, moments, quantile};
pub use summary::{
    BackgroundFigures, Bound, EventCounts, Goodput, IdealFigures, Load, MachineFigures, MeanP99,
    MeasuredPeriod, NetworkFigures, NotFinite, RequestCounts, ResultKind, SCHEMA, ScenarioName,
    ScheduleTimes, ShapingFigures, Slowdown, Speed, Summary, TcpFigures, Times,
};
pub use sweep::{
    SEEDS_CSV, SWEEP_CSV, SWEEP_FILE, SWEEP_SCHEMA, SWEEP_TABLE, SweepPoint, sweep_value, write_sweep,
};
#[cfg(feature = "parquet")]
pub use tables::{TableReadError, TableWriteError};
pub use trace::write_trace;
