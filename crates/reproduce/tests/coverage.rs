//! Every result of the papers that a simulation can check is a row, or is named by a test.

use std::collections::BTreeSet;
use std::path::Path;

/// Where a result is checked.
enum Where {
    /// A row of `fanin reproduce`.
    Row,
    /// A test in this file, which names it.
    Test(&'static str),
    /// Another row says the same, or what is right.
    SameAs(&'static str),
    /// It is no result but a remark on others, which are rows.
    Remark(&'static str),
}

use Where::{Remark, Row, SameAs, Test};

const SCENARIO: &str = "crates/scenario/tests/presets.rs";
const BOUND: &str = "crates/sim/tests/bound.rs";

/// The results of the five papers that a simulation can check, with the numbers of the rows.
#[rustfmt::skip]
const RESULTS: &[(&str, Where)] = &[
    ("T004", Test(BOUND)), ("T009", Test(SCENARIO)), ("T010", Test(SCENARIO)), ("T011", Test(SCENARIO)),
    ("T012", Test(SCENARIO)), ("T014", Test(BOUND)),
    ("T018", Row), ("T019", Row), ("T020", Row), ("T021", Row), ("T022", Row), ("T023", Row), ("T024", Row),
    ("T025", Row), ("T026", Row), ("T027", Row), ("T028", Row), ("T029", Row), ("T030", Row), ("T031", Row),
    ("T032", Row), ("T034", Row), ("T036", Row), ("T037", Row), ("T038", Row), ("T039", Row), ("T040", Row),
    ("T042", Test(SCENARIO)), ("T043", Row),
    ("T044", Remark("the simulation agrees below the onset of incast and only in kind above it: T032 to T045")),
    ("T045", Row), ("T048", Test("crates/network/src/topology/mod.rs")),
    ("T049", Row), ("T050", Row), ("T051", Row), ("T052", Row), ("T053", Row), ("T054", Row), ("T055", Row),
    ("T056", Row), ("T057", Row), ("T058", Row), ("T059", Test("crates/sim/tests/unit/sizes.rs")),
    ("T060", Row), ("T061", Row), ("T062", Row), ("T063", Row), ("T065", Row), ("T066", Row), ("T067", Row),
    // The summary of §6.6 contradicts §6.3, where the measurements are.
    ("T068", SameAs("T067")),
    ("T069", Row), ("T070", Row), ("T071", Row), ("T072", Row), ("T073", Row), ("T074", Row), ("T075", Row),
    ("T076", Row), ("T077", Row), ("T078", Row),
    ("T080", Row), ("T081", Row), ("T084", Row),
    ("T085", Row),
    ("T086", Row), ("T087", Row), ("T088", Row), ("T089", Row), ("T090", Row), ("T091", Row), ("T093", Row),
    ("T095", Row), ("T096", Row),
    // The port's size is inferred from the onset of drops.
    ("I005", SameAs("I009")),
    ("I008", Row), ("I009", Row), ("I010", Row), ("I011", Row), ("I012", Row), ("I013", Row), ("I014", Row),
    ("I016", Row), ("I017", Row), ("I018", Row), ("I019", Row), ("I020", Row), ("I021", Row), ("I022", Row),
    ("I023", Row), ("I025", Row), ("I026", Row), ("I027", Row), ("I028", Row),
    ("L001", Row), ("L004", Row), ("L007", Row), ("L009", Row),
    ("H001", Remark("the scale of ATLAS, and a memory of 1.2 GB that another study found best")),
    ("H007", Row), ("H012", Row), ("H013", Row), ("H015", Row), ("H017", Row), ("H018", Row), ("H019", Row),
    ("M001", Test(SCENARIO)), ("M002", Row), ("M004", Row), ("M005", Row),
    ("M007", Test("crates/reproduce/src/m21tcp.rs")),
    ("M008", Row), ("M009", Row), ("M010", Row), ("M012", Row), ("M013", Row), ("M015", Row), ("M016", Row),
    ("M018", Row),
];

#[test]
fn every_result_is_checked_somewhere() {
    let rows: BTreeSet<&str> = fanin_reproduce::claims().iter().map(|claim| claim.id).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (id, place) in RESULTS {
        match place {
            Row => assert!(rows.contains(id), "{id} is no row"),
            SameAs(row) => assert!(rows.contains(row), "{id} is said to be {row}, which is no row"),
            Test(file) => {
                let text = std::fs::read_to_string(root.join(file))
                    .unwrap_or_else(|error| panic!("{file}: {error}"));
                assert!(text.contains(id), "{file} does not name {id}");
            }
            Remark(remark) => assert!(!rows.contains(id), "{id} is a row, and not only a remark: {remark}"),
        }
    }
    let listed: BTreeSet<&str> = RESULTS.iter().map(|&(id, _)| id).collect();
    assert_eq!(listed.len(), RESULTS.len(), "a result is listed twice");
    let unlisted: Vec<_> = rows.iter().filter(|id| !listed.contains(*id)).collect();
    assert_eq!(unlisted, [] as [&&str; 0], "rows that the list lacks");
}
