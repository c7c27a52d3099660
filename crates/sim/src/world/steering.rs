//! Receivers that steer their senders by the windows they offer: DIATCP and ICTCP.

use fanin_units::{Instant, Rate};

use super::{Workload, World};
use crate::diatcp::{Awaits, Diatcp};
use crate::ictcp::Ictcp;
use crate::index::{EndIndex, NIL};
use fanin_network::PortIndex;

impl<W: Workload> World<W> {
    /// Shares receive windows out anew before `messages` are sent, which tell their own peers; others are told by a
    /// window update.
    #[cold]
    pub(super) fn share_windows(&mut self, messages: &[(EndIndex, u64, W::Message)]) {
        let Some(mut diatcp) = self.diatcp.take() else { return };
        let now = Instant::new(self.now);
        for (index, _, message) in messages {
            if self.workload.awaits(message) == Awaits::Opens {
                diatcp.open(now, self.ends[*index as usize].host, *index);
            }
        }
        let mut told = Vec::new();
        let ends = &mut self.ends;
        diatcp.share_out(now, |index, bytes, grew| {
            ends[index as usize].endpoint.set_window_clamp(bytes);
            if grew {
                told.push(index);
            }
        });
        told.retain(|index| !messages.iter().any(|(to, ..)| to == index));
        diatcp.counters.updates += told.len() as u64;
        self.diatcp = Some(diatcp);
        for index in told {
            self.ends[index as usize].endpoint.update_peer_window();
            self.pump(index);
        }
    }

    /// From now on receivers share their windows out.
    pub(crate) fn share_receive_windows(&mut self, diatcp: Diatcp) {
        self.diatcp = Some(Box::new(diatcp));
        self.steers = true;
    }

    /// What receivers did that share their windows out.
    pub(crate) fn diatcp(&self) -> Option<&Diatcp> {
        self.diatcp.as_deref()
    }

    /// From now on the receivers of the first so many connections, which are their first ends, adjust their windows by
    /// throughput; `rate` is that of their links.
    pub(crate) fn adjust_windows(
        &mut self,
        mut ictcp: Box<Ictcp>,
        connections: u32,
        rate: impl Fn(PortIndex) -> Rate,
    ) {
        for index in (0..2 * connections).step_by(2) {
            let end = &mut self.ends[index as usize];
            if end.route.port == NIL {
                // A host that is both asks nothing of itself.
                continue;
            }
            let window = ictcp.add(end.host, index, rate(end.route.port));
            end.endpoint.set_window_clamp(window);
        }
        self.ictcp = Some(ictcp);
        self.steers = true;
    }

    /// Data have come: the window of their connection may change, which the next acknowledgement says.
    #[cold]
    pub(super) fn adjust_window(&mut self, index: EndIndex, bytes: u32, wire_bytes: u32) {
        let Some(ictcp) = &mut self.ictcp else { return };
        let end = &mut self.ends[index as usize];
        let rtt = end.endpoint.stats(&self.stacks[usize::from(end.stack)]).srtt.get();
        if let Some(window) = ictcp.handle_data(self.now, [end.host, index], bytes, wire_bytes, rtt) {
            end.endpoint.set_window_clamp(window);
        }
    }

    /// A window of which nothing is left is renewed at once: a delayed acknowledgement would stop the sender.
    #[cold]
    pub(super) fn tell_used_up(&mut self, index: EndIndex) {
        let Some(diatcp) = &mut self.diatcp else { return };
        let end = &mut self.ends[index as usize];
        if end.endpoint.offered() < u64::from(diatcp.mss) && diatcp.is_debtor(end.host, index) {
            end.endpoint.update_peer_window();
            diatcp.counters.used_up += 1;
        }
    }
}
