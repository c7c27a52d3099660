//! Background traffic: the transfers of other applications over the same ports, one source a connection.
//!
//! A transfer begins when it is due, whether or not the one before has arrived. So the mean load is as set, also behind a slow
//! link, as long as the connection can carry it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use fanin_units::{Bytes, Duration, Instant, Ratio};

use crate::random::{Delay, Random};
use crate::seeds::{Purpose, SeedOwner, stream_seed};
use crate::timers::later;

/// Bytes in front of each transfer, which are part of it: its length and the time at which it was due.
pub const TRANSFER_HEADER_BYTES: u64 = 16;
/// Bytes of the one transfer of a connection that always has data: more than any run carries.
pub const BULK_BYTES: u64 = 1 << 60;
/// Most transfers that wait at a source for their connection. Further ones are skipped.
const TRANSFERS_WAITING_MAX: usize = 1 << 16;

/// The traffic of one background connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackgroundTraffic {
    /// One transfer without end.
    Bulk,
    /// Transfers that begin at random times.
    Transfers {
        /// Mean time between two of them; exponentially distributed.
        interval: Duration,
        /// Mean size of a transfer.
        size: Bytes,
        /// Scale parameter σ of the log-normal sizes; zero: all have the mean size.
        sigma: Ratio,
    },
}

impl BackgroundTraffic {
    /// Returns true if its transfers end.
    pub const fn has_ends(self) -> bool {
        matches!(self, Self::Transfers { .. })
    }
}

/// One transfer of a background connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The time at which it was due.
    pub began: Instant,
    /// Length in bytes, [`TRANSFER_HEADER_BYTES`] included.
    pub bytes: Bytes,
}

/// The source of one background connection. The driver sends what [`Self::poll_transmit`] returns, in order.
#[derive(Debug)]
pub struct BackgroundSource {
    traffic: BackgroundTraffic,
    random: Random,
    /// Time of the next transfer; `None` before the connection is open, and for bulk data.
    next: Option<Instant>,
    waiting: VecDeque<Transfer>,
    skipped: u64,
}

/// Returns the seed of a source: connection `number` to a collector, from a readout.
pub const fn background_seed(run: u64, readout: u32, collector: u32, number: u32) -> u64 {
    let of_readout = stream_seed(run, SeedOwner::Readout, readout as u64, Purpose::Background);
    let place = (collector as u64) << 12 | number as u64;
    stream_seed(of_readout, SeedOwner::Collector, place, Purpose::Background)
}

impl BackgroundSource {
    /// Makes the source of a connection that is not open yet.
    pub fn new(traffic: BackgroundTraffic, seed: u64) -> Self {
        Self { traffic, random: Random::new(seed), next: None, waiting: VecDeque::new(), skipped: 0 }
    }

    /// Handles the opening of the connection.
    pub fn handle_connected(&mut self, now: Instant) {
        match self.traffic {
            BackgroundTraffic::Bulk => {
                self.waiting.push_back(Transfer { began: now, bytes: Bytes::new(BULK_BYTES) });
            }
            BackgroundTraffic::Transfers { interval, .. } => self.next = Some(self.after(now, interval)),
        }
    }

    /// Handles the deadline of [`Self::poll_deadline`]: begins the transfers that are due.
    pub fn handle_deadline(&mut self, now: Instant) {
        let BackgroundTraffic::Transfers { interval, size, sigma } = self.traffic else { return };
        while let Some(began) = self.next.filter(|&next| next <= now) {
            let bytes = self.size(size, sigma);
            if self.waiting.len() < TRANSFERS_WAITING_MAX {
                self.waiting.push_back(Transfer { began, bytes });
            } else {
                self.skipped += 1;
            }
            self.next = Some(self.after(began, interval));
        }
    }

    /// Returns the time of the next [`Self::handle_deadline`]; `None` if no transfer will begin.
    #[must_use]
    pub const fn poll_deadline(&self) -> Option<Instant> {
        self.next
    }

    /// Returns the next transfer to send.
    pub fn poll_transmit(&mut self) -> Option<Transfer> {
        self.waiting.pop_front()
    }

    /// Number of transfers that were not sent, because too many waited.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    fn after(&mut self, from: Instant, interval: Duration) -> Instant {
        // At least a picosecond, so that transfers of one instant end.
        let wait = Delay::Exponential { mean: interval }.draw(&mut self.random);
        later(from, wait.max(Duration::new(1)))
    }

    fn size(&mut self, mean: Bytes, sigma: Ratio) -> Bytes {
        let sigma = sigma.as_f64();
        let factor = if sigma == 0.0 { 1.0 } else { libm::exp(sigma * (self.random.normal() - sigma / 2.0)) };
        Bytes::new((mean.get() as f64 * factor).clamp(TRANSFER_HEADER_BYTES as f64, BULK_BYTES as f64) as u64)
    }
}

/// The sources on one host, each with the number of its connection.
#[derive(Debug, Default)]
pub struct BackgroundHost(Vec<(u32, BackgroundSource)>);

impl BackgroundHost {
    /// Adds the source of a connection.
    pub fn add(&mut self, connection: u32, source: BackgroundSource) {
        self.0.push((connection, source));
    }

    /// Handles the opening of all connections.
    pub fn handle_connected(&mut self, now: Instant) {
        self.0.iter_mut().for_each(|(_, source)| source.handle_connected(now));
    }

    /// Handles the deadline of [`Self::poll_deadline`].
    pub fn handle_deadline(&mut self, now: Instant) {
        self.0.iter_mut().for_each(|(_, source)| source.handle_deadline(now));
    }

    /// Returns the time of the next [`Self::handle_deadline`]; `None` if no transfer will begin.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Instant> {
        self.0.iter().filter_map(|(_, source)| source.poll_deadline()).min()
    }

    /// Returns the next transfer to send, with its connection.
    pub fn poll_transmit(&mut self) -> Option<(u32, Transfer)> {
        self.0.iter_mut().find_map(|(connection, source)| Some((*connection, source.poll_transmit()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: Duration = Duration::from_millis(1);

    fn transfers(sigma: u64, seed: u64) -> BackgroundSource {
        let (size, sigma) = (Bytes::new(100_000), Ratio::new(sigma));
        let mut source =
            BackgroundSource::new(BackgroundTraffic::Transfers { interval: EACH, size, sigma }, seed);
        source.handle_connected(Instant::START);
        source
    }

    /// The transfers that are due within ten seconds, each taken at its time.
    fn of_ten_seconds(mut source: BackgroundSource) -> Vec<Transfer> {
        let mut all = Vec::new();
        while let Some(due) = source.poll_deadline().filter(|&due| due < Instant::START + EACH * 10_000) {
            source.handle_deadline(due);
            all.extend(source.poll_transmit());
            assert_eq!(source.poll_transmit(), None);
        }
        all
    }

    #[test]
    fn transfers_have_their_mean_rate_and_size() {
        for sigma in [0, 1_000_000] {
            let all = of_ten_seconds(transfers(sigma, 7));
            let bytes: u64 = all.iter().map(|transfer| transfer.bytes.get()).sum();
            assert!((9_700..10_300).contains(&all.len()), "{}", all.len());
            assert!((95_000..105_000).contains(&(bytes / all.len() as u64)), "{sigma}: {bytes}");
            let is_constant = all.iter().all(|transfer| transfer.bytes == Bytes::new(100_000));
            assert_eq!(is_constant, sigma == 0);
        }
    }

    #[test]
    fn a_late_driver_gets_the_same_transfers() {
        let on_time = of_ten_seconds(transfers(500_000, 3));
        let mut late = transfers(500_000, 3);
        late.handle_deadline(Instant::START + EACH * 10_000);
        let all: Vec<Transfer> = std::iter::from_fn(|| late.poll_transmit()).collect();
        assert_eq!(all, on_time);
        assert_ne!(all, of_ten_seconds(transfers(500_000, 4)));
    }

    #[test]
    fn bulk_data_never_end() {
        let mut source = BackgroundSource::new(BackgroundTraffic::Bulk, 1);
        assert_eq!(source.poll_transmit(), None, "not connected");
        source.handle_connected(Instant::START);
        assert_eq!(source.poll_transmit().unwrap().bytes.get(), BULK_BYTES);
        source.handle_deadline(Instant::START + EACH);
        assert_eq!((source.poll_transmit(), source.poll_deadline()), (None, None));
    }

    #[test]
    fn a_source_keeps_a_limited_number_of_transfers() {
        let mut source = transfers(0, 5);
        source.handle_deadline(Instant::START + EACH * 100_000);
        let kept = std::iter::from_fn(|| source.poll_transmit()).count();
        assert_eq!(kept, TRANSFERS_WAITING_MAX);
        assert!(source.skipped() > 30_000, "{}", source.skipped());
    }

    #[test]
    fn each_connection_has_a_stream_of_its_own() {
        let seeds = [(1, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1), (2, 0, 0, 0)]
            .map(|(run, readout, collector, number)| background_seed(run, readout, collector, number));
        let unique: std::collections::BTreeSet<u64> = seeds.into_iter().collect();
        assert_eq!(unique.len(), seeds.len());
    }
}
