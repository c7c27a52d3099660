//! DIATCP on the kernel's TCP: the aggregator divides one window among the senders with outstanding answers (ICC'15 §IV.D).

use std::io;
use std::net::TcpStream;

use fanin_dataflow::WindowShares;
use fanin_message::clamp_window;
use fanin_scenario::Scenario;
use fanin_units::Instant;

use super::GlobalWindow;

/// Windows that an aggregator advertises to its senders.
#[derive(Debug)]
pub(crate) struct AdvertisedWindows {
    windows: WindowShares,
    global: GlobalWindow,
    /// Window of each connection, bytes.
    clamps: Vec<u32>,
    /// Copy of `clamps` from before the shares of the last requests were set.
    requested_with: Vec<u32>,
}

impl AdvertisedWindows {
    /// Creates the windows of a scenario's senders; `None` unless the scenario uses DIATCP.
    pub(crate) fn new(scenario: &Scenario) -> Option<Self> {
        let global = GlobalWindow::of(scenario)?;
        // No share is set yet: any first share counts as a smaller window.
        let clamps = vec![u32::MAX; scenario.workload.senders as usize];
        Some(Self { windows: global.shares(scenario), global, requested_with: clamps.clone(), clamps })
    }

    /// Returns the largest window that a connection may ever advertise, bytes.
    pub(crate) fn largest(&self) -> u32 {
        u32::try_from(self.global.clamp_max()).unwrap_or(u32::MAX)
    }

    /// Sets the window of a new connection to one segment.
    pub(crate) fn handle_connected(&self, stream: &TcpStream) -> io::Result<()> {
        clamp_window(stream, self.global.segment).map_err(io::Error::other)
    }

    /// Divides the window anew, before requests are sent to these senders.
    pub(crate) fn handle_requests(
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
    pub(crate) fn is_smaller(&self, sender: u16) -> bool {
        self.clamps[usize::from(sender)] < self.requested_with[usize::from(sender)]
    }

    /// Sets the sender's window again after bytes of this sender were read. With `is_last`, they complete its answer, and
    /// the window is divided anew among the other senders.
    pub(crate) fn handle_bytes(
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
        let (clamps, segment_bytes) = (&mut self.clamps, self.global.segment);
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
