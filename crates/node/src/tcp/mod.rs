//! TCP's counters of each connection of a process, in a file that outlives the process.
//!
//! `PROCESS.tcp` is replaced as a whole once a second and at the end. A killed process leaves counters that are about a
//! second old. The file has a part for each life of the process. A part has a line `# fanin tcp 1 PROCESS`, and one line
//! for each peer with the sums over all connections to it. A line `# diatcp GRANTED SENDERS LATE` follows if a receiver
//! shares its window, and `# end` if the life ended in order. Without `# end`, the sums lack the counts after the last
//! sample.

mod accounts;
mod counted;
mod format;
mod sums;

pub use accounts::Accounts;
pub use counted::{Counted, CountedError, counted};
pub use sums::Sums;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use fanin_message::TcpInfo;

    use super::format::HEADER;
    use super::*;
    use crate::flows::Numbers;

    fn numbers() -> Numbers {
        Numbers::of(&fanin_scenario::load("replay", &[]).unwrap().scenario)
    }

    fn info(segments: u64, retransmits: u64) -> TcpInfo {
        TcpInfo {
            segments,
            retransmits,
            timeouts: Some(1),
            cwnd: 10,
            rtt: Duration::from_micros(70),
            rtt_min: Some(Duration::from_micros(40)),
            ..TcpInfo::default()
        }
    }

    #[test]
    fn counts_survive_connections_and_lives_and_a_cut_is_counted() {
        let folder = std::env::temp_dir().join(format!("fanin-tcp-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut first = Accounts::open(&crate::machine::HostMachine::Real, &folder, "readout-3").unwrap();
        assert!(first.is_due(Instant::now()));
        first.handle_sample("collector-0", info(5, 1));
        first.handle_end("collector-0", Some(&info(9, 2)));
        first.handle_sample("collector-0", TcpInfo { cwnd: 40, ..info(3, 0) });
        first.handle_sample("collector-0", info(4, 1));
        first.commit(Instant::now(), false);
        assert!(!first.is_due(Instant::now()));
        assert_eq!((first.totals().segments, first.totals().timeouts), (13, Some(2)));
        // The first life ends without `# end`, as if it were killed.
        drop(first);
        let mut second = Accounts::open(&crate::machine::HostMachine::Real, &folder, "readout-3").unwrap();
        second.handle_sample("collector-0", info(1, 0));
        second.handle_end("collector-0", None);
        second.handle_sample("supervisor", TcpInfo { timeouts: None, ..info(2, 0) });
        second.commit(Instant::now(), true);
        let mut other = Accounts::open(&crate::machine::HostMachine::Real, &folder, "collector-0").unwrap();
        other.handle_end("readout-3", Some(&info(7, 0)));
        other.commit(Instant::now(), true);

        let counted = counted(&folder, &numbers()).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((counted.rows.len(), counted.cut), (3, 1), "{counted:?}");
        let row =
            counted.rows.iter().find(|row| &*row.source == "readout-3" && row.timeouts.is_some()).unwrap();
        assert_eq!(
            (&*row.destination, row.segments, row.retransmits, row.timeouts),
            ("collector-0", 14, 3, Some(3))
        );
        assert_eq!((row.cwnd_packets_max, row.rtt_min_ps), (Some(40), Some(40_000_000)));
        let back = counted.rows.iter().find(|row| &*row.source == "collector-0").unwrap();
        assert_eq!(back.flow, row.flow, "two directions of one connection");
        let tcp = counted.summary().unwrap();
        assert_eq!((tcp.segments, tcp.retransmits, tcp.timeouts), (Some(23), Some(3), None));
        assert_eq!(tcp.fast_retransmits, None);
    }

    #[test]
    fn a_wrong_count_is_named_by_its_line() {
        let folder = std::env::temp_dir().join(format!("fanin-tcp-bad-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("logger-0.tcp"), format!("{HEADER} logger-0\ncollector-0 1 2 x\n"))
            .unwrap();
        let error = counted(&folder, &numbers()).unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(matches!(error, CountedError::Line { line: 2, .. }), "{error}");
    }
}
