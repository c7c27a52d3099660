//! The check of a file that all fuzz targets share.

use fanin_events::{Events, FileSummary, Format, verify};

/// Reads, verifies and summarises; panics if a promise of the crate does not hold.
pub fn check(bytes: &[u8], format: Format) {
    let mut events = Events::with_format(bytes, format);
    let mut rounds = 0;
    loop {
        rounds += 1;
        assert!(rounds <= bytes.len() + 2, "the reader does not end");
        match events.next() {
            Some(Ok(event)) => {
                for fragment in &event.fragments {
                    let at = fragment.offset as usize;
                    assert_eq!(&bytes[at..at + fragment.bytes.len()], fragment.bytes);
                }
            }
            Some(Err(error)) => {
                assert!(error.offset <= bytes.len() as u64);
                if !events.resync() {
                    break;
                }
            }
            None => break,
        }
    }
    if let Ok(report) = verify(bytes) {
        assert_eq!(report.faults.is_empty(), report.fault_count == 0);
        let summary = FileSummary::read(bytes);
        assert!(summary.is_ok() || report.fault_count > 0);
    }
}
