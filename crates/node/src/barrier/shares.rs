//! DIATCP on the kernel's TCP: the aggregator divides one window among the senders with outstanding answers (ICC'15 §IV.D).

use std::io;
use std::net::TcpStream;

use fanin_dataflow::WindowShares;
use fanin_message::clamp_window;
use fanin_scenario::{CongestionControl, Scenario};
use fanin_units::Instant;

/// Smallest window with a scale factor, bytes. Without a scale factor, the kernel never reduces an advertised window.
const SCALED_MIN: u32 = 1 << 16;

/// Windows that an aggregator advertises to its senders.
#[derive(Debug)]
pub(super) struct AdvertisedWindows {
    windows: WindowShares,
    segment_bytes: u32,
    global_window: u32,
    /// Window of each connection, bytes.
    clamps: Vec<u32>,
    /// Copy of `clamps` from before the shares of the last requests were set.
    requested_with: Vec<u32>,
}

impl AdvertisedWindows {
    /// Creates the windows of a scenario's senders; `None` unless the scenario uses DIATCP.
    pub(super) fn new(scenario: &Scenario) -> Option<Self> {
        let transport = &scenario.transport;
        (transport.congestion_control == CongestionControl::Diatcp).then(|| {
            let diatcp = &transport.diatcp;
            let saturated = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let global_window = saturated(diatcp.global_window.get());
            let windows = WindowShares::new(global_window, scenario.workload.deadline, diatcp.deadline_aware);
            // No share is set yet: any first share counts as a smaller window.
            let clamps = vec![u32::MAX; scenario.workload.senders as usize];
            let segment_bytes = saturated(transport.segment_payload().get());
            Self { windows, segment_bytes, global_window, requested_with: clamps.clone(), clamps }
        })
    }

    /// Returns the largest window that a connection may ever advertise, bytes.
    pub(super) fn largest(&self) -> u32 {
        self.global_window.saturating_mul(self.segment_bytes).max(SCALED_MIN)
    }

    /// Sets the window of a new connection to one segment.
    pub(super) fn handle_connected(&self, stream: &TcpStream) -> io::Result<()> {
        clamp_window(stream, self.segment_bytes).map_err(io::Error::other)
    }

    /// Divides the window anew, before requests are sent to these senders.
    pub(super) fn handle_requests(
        &mut self,
        now: Instant,
        senders: impl Iterator<Item = u16>,
        streams: &[TcpStream],
    ) -> io::Result<()> {
        self.requested_with.clone_from(&self.clamps);
        senders.for_each(|sender| {
            self.windows.open(now, sender.into());
        });
        self.share_out(now, streams)
    }

    /// Returns true if this sender's window is smaller than before the last [`Self::handle_requests`].
    pub(super) fn is_smaller(&self, sender: u16) -> bool {
        self.clamps[usize::from(sender)] < self.requested_with[usize::from(sender)]
    }

    /// Sets the sender's window again after bytes of this sender were read. With `is_last`, they complete its answer, and
    /// the window is divided anew among the other senders.
    pub(super) fn handle_bytes(
        &mut self,
        now: Instant,
        sender: u16,
        is_last: bool,
        streams: &[TcpStream],
    ) -> io::Result<()> {
        if is_last {
            self.windows.close(now, sender.into());
            self.share_out(now, streams)?;
        }
        // The kernel raises the window when data arrive: set the clamp again.
        let sender = usize::from(sender);
        clamp_window(&streams[sender], self.clamps[sender]).map_err(io::Error::other)
    }

    /// Sets the windows that have changed. The kernel cannot clamp a window to zero: a share of zero becomes one segment.
    fn share_out(&mut self, now: Instant, streams: &[TcpStream]) -> io::Result<()> {
        let (clamps, segment_bytes) = (&mut self.clamps, self.segment_bytes);
        let mut outcome = Ok(());
        self.windows.share_out(now, |sender, segments, _| {
            let bytes = segments.max(1).saturating_mul(segment_bytes);
            clamps[sender as usize] = bytes;
            if let Err(error) = clamp_window(&streams[sender as usize], bytes) {
                outcome = Err(io::Error::other(error));
            }
        });
        outcome
    }
}
