//! DIATCP: each receiver divides a global window among the senders that owe it answers ([`WindowShares`]).
//!
//! Senders without open requests have a window of zero, which the next request opens. A larger share is sent as a window
//! update, an acknowledgement like any other. Linux sends none for `TCP_WINDOW_CLAMP`: with `linux-6` the next one carries it,
//! unless the connection was closed.

use std::collections::BTreeMap;

use fanin_dataflow::WindowShares;
use fanin_scenario::{CongestionControl, Profile, Transport};
use fanin_tcp::Config;
use fanin_units::{Duration, Instant};
use serde_json::{Value, json};

use super::hooks::{ActsAt, Installed, MessageKind, RunView, Setup, TechniqueFunctions, TechniqueHooks};
use crate::Error;
use crate::engine::Engine;
use crate::index::EndIndex;

/// Counters of all receiving hosts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct DiatcpCounters {
    /// Window updates sent.
    window_updates: u64,
    /// Acknowledgements sent because a window was used up.
    acks_at_once: u64,
}

/// The receiving hosts.
#[derive(Debug)]
struct DiatcpTechnique {
    /// Segments that all senders to one host may have in flight together.
    global_window: u32,
    /// The shares of a host that has received nothing yet.
    fresh: WindowShares,
    mss: u32,
    /// Windows are those of the kernel (`TCP_WINDOW_CLAMP`).
    is_linux: bool,
    hosts: BTreeMap<u32, WindowShares>,
    /// Hosts whose windows have to be shared out again.
    changed: Vec<u32>,
    counters: DiatcpCounters,
}

pub(super) const TECHNIQUE: TechniqueFunctions =
    TechniqueFunctions { build, configure, ..TechniqueFunctions::NONE };

/// Keeps the profile's sender (ICC'15 §IV.D.1). Shares are whole segments, which a window scale would round up; a share may
/// shrink.
fn configure(transport: &Transport, config: &mut Config) {
    if transport.congestion_control == CongestionControl::Diatcp {
        let most = transport.diatcp.global_window.get().saturating_mul(config.mss.into());
        config.receive_window = config.receive_window.min(u32::try_from(most).unwrap_or(u32::MAX));
        (config.window_scale, config.shrink_window) = (0, true);
    }
}

fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    let Setup { scenario, engine, .. } = setup;
    if scenario.transport.congestion_control != CongestionControl::Diatcp {
        return Ok(None);
    }
    let (transport, deadline) = (&scenario.transport, scenario.workload.deadline);
    Ok(Some(Installed::technique(DiatcpTechnique::new(transport, engine.config().mss, deadline))))
}

impl DiatcpTechnique {
    /// Makes the technique without hosts.
    fn new(transport: &Transport, mss: u16, deadline: Duration) -> Self {
        let global_window = u32::try_from(transport.diatcp.global_window.get()).unwrap_or(u32::MAX);
        Self {
            global_window,
            fresh: WindowShares::new(global_window, deadline, transport.diatcp.deadline_aware),
            mss: u32::from(mss),
            is_linux: transport.profile == Profile::Linux6,
            hosts: BTreeMap::new(),
            changed: Vec::new(),
            counters: DiatcpCounters::default(),
        }
    }

    /// Notes that a host has asked for an answer over the connection of `end`.
    fn open(&mut self, now: Instant, host: u32, end: EndIndex) {
        if self.hosts.entry(host).or_insert_with(|| self.fresh.clone()).open(now, end) {
            self.change(host);
        }
    }

    /// Notes a complete answer. Returns true if the connection owes no other answer; the caller then closes its window.
    fn close(&mut self, now: Instant, host: u32, end: EndIndex) -> bool {
        let Some(shares) = self.hosts.get_mut(&host) else { return false };
        let was_last = shares.close(now, end);
        if shares.has_changed() {
            self.change(host);
        }
        was_last
    }

    fn change(&mut self, host: u32) {
        if !self.changed.contains(&host) {
            self.changed.push(host);
        }
    }

    /// Returns true if a connection owes an answer.
    fn is_debtor(&self, host: u32, end: EndIndex) -> bool {
        self.hosts.get(&host).is_some_and(|shares| shares.is_debtor(end))
    }

    /// Shares the windows of changed hosts out again. Calls `changed` with each changed end, its window in bytes, and true if
    /// the window grew.
    fn share_out(&mut self, now: Instant, mut changed: impl FnMut(EndIndex, u32, bool)) {
        while let Some(host) = self.changed.pop() {
            if let Some(shares) = self.hosts.get_mut(&host) {
                shares.share_out(now, |end, share, grew| changed(end, share * self.mss, grew));
            }
        }
    }

    /// Asserts that the senders of each host together hold its whole global window, each connection its share. `clamp`
    /// gives the window of an end in bytes.
    fn assert_granted(&self, clamp: impl Fn(EndIndex) -> u32) {
        assert!(self.changed.is_empty(), "the windows of a host are not shared out");
        for (host, shares) in &self.hosts {
            let mut granted = 0;
            for (end, share) in shares.shares() {
                let share = share.expect("it is shared out");
                granted += share;
                assert_eq!(clamp(end), share * self.mss, "end {end} of host {host} holds another share");
            }
            let is_owed = shares.shares().next().is_some();
            let expected = if is_owed { self.global_window } else { 0 };
            assert_eq!(granted, expected, "shares of host {host} are unaccounted for");
        }
    }
}

impl TechniqueHooks for DiatcpTechnique {
    fn key(&self) -> &'static str {
        "diatcp"
    }

    fn acts_at(&self) -> ActsAt {
        ActsAt::Hosts
    }

    /// Opens the windows of requests. The windows are shared out before the messages are sent, so that these carry them; other
    /// ends with a larger window send a window update.
    fn on_messages(&mut self, engine: &mut Engine, messages: &[(EndIndex, MessageKind)]) {
        let now = engine.time();
        for &(index, kind) in messages {
            if kind == MessageKind::Request {
                self.open(now, engine.end(index).host, index);
            }
        }
        let (mut larger, announces) = (Vec::new(), !self.is_linux);
        self.share_out(now, |index, bytes, grew| {
            let endpoint = &mut engine.end(index).endpoint;
            // No acknowledgement comes on a closed connection; the kernel's least clamp is above zero.
            let is_closed = endpoint.window_clamp() == 0;
            endpoint.set_window_clamp(bytes);
            if grew && (announces || is_closed) {
                larger.push(index);
            }
        });
        larger.retain(|index| !messages.iter().any(|(sender, _)| sender == index));
        self.counters.window_updates += larger.len() as u64;
        for index in larger {
            engine.end(index).endpoint.update_peer_window();
            engine.wake(index);
        }
    }

    /// Closes the window with the acknowledgement of the last byte: TCP ignores a window that shrinks in any other segment.
    fn on_received(&mut self, engine: &mut Engine, index: EndIndex, kind: MessageKind) {
        let (now, end) = (engine.time(), engine.end(index));
        if kind == MessageKind::Answer && self.close(now, end.host, index) {
            end.endpoint.set_window_clamp(0);
        }
    }

    /// Renews a used-up window at once: a delayed acknowledgement would stop the sender. Linux renews one that doubles.
    fn on_segment(&mut self, engine: &mut Engine, index: EndIndex, _payload: u32, _wire_bytes: u32) {
        let end = engine.end(index);
        let doubles = self.is_linux && 2 * end.endpoint.offered() <= u64::from(end.endpoint.window_clamp());
        if (doubles || end.endpoint.offered() < u64::from(self.mss)) && self.is_debtor(end.host, index) {
            end.endpoint.update_peer_window();
            self.counters.acks_at_once += 1;
        }
    }

    fn assert_conserved(&self, engine: &Engine) {
        let clamp = |end: EndIndex| engine.ends()[end as usize].endpoint.window_clamp();
        self.assert_granted(clamp);
    }

    fn figures(&self, _: &RunView<'_>) -> Option<Value> {
        let DiatcpCounters { window_updates, acks_at_once } = self.counters;
        let hosts = || self.hosts.values().map(|shares| shares.counters);
        Some(json!({
            "window_updates": window_updates,
            "acks_at_once": acks_at_once,
            "granted_segments_max": hosts().map(|counters| counters.granted_max).max().unwrap_or_default(),
            "senders_max": hosts().map(|counters| counters.senders_max).max().unwrap_or_default(),
            "answers_late": hosts().map(|counters| counters.late).sum::<u64>(),
        }))
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/diatcp.rs"]
mod tests;
