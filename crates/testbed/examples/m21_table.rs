//! Prints the table of M21TCP's parts in docs/testbed.md: needs root.
//!
//! `cargo run -p fanin-testbed --features bpf --example m21_table`
#![expect(clippy::print_stdout, reason = "it prints a table")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::row;
use fanin_switch::config::M21Spec;
use fanin_testbed::bpf::M21Parts;
use fanin_units::Bytes;

fn main() {
    let all = M21Parts::default();
    let spec = M21Spec::default();
    let rows: [(&str, bool, Option<M21Spec>, Option<M21Parts>); 7] = [
        ("CUBIC alone", true, None, None),
        ("M21TCP", true, Some(spec), Some(all)),
        ("without the option in SYN and SYN-ACK", true, Some(spec), Some(M21Parts { opening: false, ..all })),
        (
            "without a bound of the first burst",
            true,
            Some(spec),
            Some(M21Parts { first_window: false, ..all }),
        ),
        ("without a fresh echo", true, Some(spec), Some(M21Parts { fresh_echo: false, ..all })),
        ("headers not counted", true, Some(M21Spec { header: Bytes::ZERO, ..spec }), Some(all)),
        ("delayed acknowledgements", false, Some(spec), Some(all)),
    ];
    for senders in [8, 24, 40] {
        for (name, quickack, spec, parts) in rows {
            let (outcome, figures) = row(senders, 40, quickack, spec, parts);
            println!(
                "| {senders} | {name} | {:.0} | {} | {} | {} |",
                outcome.goodput_mbps, outcome.drops, outcome.queue_bytes_max, figures.changes
            );
        }
    }
}
