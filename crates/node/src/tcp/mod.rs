//! TCP's counters of each connection of a process, in a file that outlives the process.
//!
//! `PROCESS.tcp` is replaced as a whole once a second and at the end. A killed process leaves counters that are about a
//! second old. The file has a part for each incarnation of the process. A part has a line `# fanin tcp 1 PROCESS`, and one line
//! for each peer with the sums over all connections to it. A line `# diatcp GRANTED SENDERS LATE` follows if a receiver
//! shares its window, and `# end` if the incarnation ended in order. Without `# end`, the sums lack the counts after the last
//! sample.

mod accounts;
mod counted;
mod format;
mod sums;

pub use accounts::Accounts;
pub use counted::{Counted, CountedError, counted, counted_in};
pub use sums::Sums;

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
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
    fn counts_survive_connections_and_incarnations_and_a_cut_is_counted() {
        let folder = std::env::temp_dir().join(format!("fanin-tcp-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut first = Accounts::open(&crate::machine::HostMachine::Real, &folder, "readout-3");
        assert!(first.is_due(Instant::now()));
        first.handle_sample("collector-0", info(5, 1));
        first.handle_end("collector-0", Some(&info(9, 2)));
        first.handle_sample("collector-0", TcpInfo { cwnd: 40, ..info(3, 0) });
        first.handle_sample("collector-0", info(4, 1));
        first.commit(Instant::now(), false);
        assert!(!first.is_due(Instant::now()));
        assert_eq!((first.totals().segments, first.totals().timeouts), (13, Some(2)));
        // The first incarnation ends without `# end`, as if it were killed.
        drop(first);
        let mut second = Accounts::open(&crate::machine::HostMachine::Real, &folder, "readout-3");
        second.handle_sample("collector-0", info(1, 0));
        second.handle_end("collector-0", None);
        second.handle_sample("supervisor", TcpInfo { timeouts: None, ..info(2, 0) });
        second.commit(Instant::now(), true);
        let mut other = Accounts::open(&crate::machine::HostMachine::Real, &folder, "collector-0");
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
    fn a_file_that_cannot_be_written_ends_no_process() {
        let folder = std::env::temp_dir().join(format!("fanin-tcp-full-{}", std::process::id()));
        // A folder in the place of the new file: each write fails, as on a full disk.
        let obstacle = folder.join("supervisor.tcp-new");
        std::fs::create_dir_all(&obstacle).unwrap();
        let mut accounts = Accounts::open(&crate::machine::HostMachine::Real, &folder, "supervisor");
        accounts.handle_sample("readout-3", info(5, 1));
        accounts.commit(Instant::now(), false);
        assert_eq!((accounts.failures(), accounts.totals().segments), (2, 5));
        std::fs::remove_dir(&obstacle).unwrap();
        accounts.commit(Instant::now(), true);
        let counted = counted(&folder, &numbers()).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((accounts.failures(), counted.rows[0].segments, counted.cut), (2, 5, 0));
    }

    #[test]
    fn counts_of_two_hosts_are_numbered_without_a_scenario() {
        let base = std::env::temp_dir().join(format!("fanin-tcp-hosts-{}", std::process::id()));
        let folders = [base.join("a"), base.join("b")];
        for (folder, process, peer) in
            [(&folders[0], "readout-3", "collector-1"), (&folders[1], "collector-1", "logger-0")]
        {
            std::fs::create_dir_all(folder).unwrap();
            let mut accounts = Accounts::open(&crate::machine::HostMachine::Real, folder, process);
            accounts.handle_end(peer, Some(&info(7, 0)));
            accounts.commit(Instant::now(), true);
        }
        let folders = folders.each_ref().map(PathBuf::as_path);
        let counted = counted_in(&folders, None).unwrap();
        std::fs::remove_dir_all(&base).unwrap();
        let flows: Vec<(u64, &str)> = counted.rows.iter().map(|row| (row.flow, &*row.source)).collect();
        // Four readouts and two collectors, so eight connections carry fragments and six are the supervisor's.
        assert_eq!(flows, [(7, "readout-3"), (15, "collector-1")]);
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
