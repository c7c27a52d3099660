//! The faults of a world: how each begins and ends.

use std::path::PathBuf;

use fanin_node::config::Role;
use fanin_node::node::SuccessionState;
use fanin_node::succession::Witness;

use crate::logs;
use crate::plan::InjectedFault;
use crate::shared::{Host, WorldStep};
use crate::verdict;
use crate::world::{MS, RESUME_MAX, World};

/// A planned loss of a leader while it pairs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairingLoss {
    /// Nanoseconds after the pairing is on the follower's disk.
    after: u64,
    paired_at: Option<u64>,
}

/// A planned loss of a leader with its disk, after its follower has lost its power.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairLoss {
    /// Nanoseconds from the follower's loss of power.
    after: u64,
    due_at: Option<u64>,
}

impl World {
    pub(crate) fn begin_fault(&mut self, number: usize, now: u64) {
        let fault = self.plan.faults[number];
        if let InjectedFault::Restart(host) = fault.kind {
            return self.restart(number, host, now);
        }
        self.faults += 1;
        self.active += 1;
        logs::world(&fault.kind, fault.until);
        match fault.kind {
            InjectedFault::Restart(_) => {}
            InjectedFault::Kill(host) => {
                if self.children[host].process.is_some() {
                    self.kill(host, true);
                    self.plan_restart(host);
                }
            }
            InjectedFault::LoseForGood(host, has_power) => self.lose_for_good(number, host, has_power, now),
            InjectedFault::LoseWhilePairing(after) => {
                self.pairing_loss = Some(PairingLoss { after, paired_at: None });
            }
            InjectedFault::LosePair { changes, after } => {
                self.pair_loss = Some(PairLoss { after, due_at: None });
                let standby = self.children.len() - 1;
                self.shared.lock().disks.of[standby].changes_left = changes;
            }
            InjectedFault::LoseVote(host) => {
                self.kill(host, true);
                if (1..=3).all(|other| other == host || self.votes(other)) {
                    let vote = self.vote_of(host);
                    self.shared.lock().lose_file(host, &vote);
                }
                self.plan_restart(host);
            }
            InjectedFault::PowerLoss(host) => self.lose_power(host),
            InjectedFault::PowerLossAtChange(host, changes) => {
                self.shared.lock().disks.of[host].changes_left = changes;
            }
            InjectedFault::Pause(host) => {
                let mut core = self.shared.lock();
                core.hosts[host].paused_until = fault.until;
                let turn_at = core.hosts[host].turn_at;
                if turn_at != u64::MAX {
                    core.hosts[host].turn_at = u64::MAX;
                    core.call(host, fault.until);
                }
            }
            InjectedFault::Slow(host, factor) => self.shared.lock().hosts[host].slowness = factor,
            InjectedFault::CutOneWay(from, to) => self.cut(&[(from, to)], fault.until),
            InjectedFault::Cut(a, b) => self.cut(&[(a, b), (b, a)], fault.until),
            InjectedFault::Isolate(host) => {
                let others = (0..self.children.len()).filter(|&other| other != host);
                let links: Vec<_> = others.flat_map(|other| [(host, other), (other, host)]).collect();
                self.cut(&links, fault.until);
            }
            InjectedFault::SlowLink(a, b, extra) => {
                let mut core = self.shared.lock();
                core.net.slow(a, b, extra);
                core.net.slow(b, a, extra);
            }
            InjectedFault::Reset(a, b) => self.shared.lock().reset_between(a, b),
            InjectedFault::DiskFull(host) => self.shared.lock().disks.of[host].is_full = true,
            InjectedFault::DiskErrors(host, errors) => {
                self.shared.lock().disks.of[host].errors_per_mille = errors;
            }
            InjectedFault::SlowDisk(host, most) => self.shared.lock().disks.of[host].delay_max_ns = most,
        }
    }

    /// Asks a process to stop, once the system is complete, a standby paired, and the restart before has ended.
    fn restart(&mut self, number: usize, host: Host, now: u64) {
        let is_next = self.faults as usize == number && self.active == 0;
        let is_paired = self
            .running()
            .all(|(_, process)| process.succession().is_none_or(|state| state.is_paired || state.leads));
        if !is_next || !is_paired || !self.is_complete() {
            return self.shared.lock().at(now + 50 * MS, WorldStep::InjectedFault(number));
        }
        self.faults += 1;
        self.active += 1;
        logs::world(&self.plan.faults[number].kind, now);
        self.children[host].restarts = true;
        self.ask(host, now);
    }

    /// Loses a supervisor's machine with its disk if the other supervisor can continue alone; otherwise kills its
    /// process.
    fn lose_for_good(&mut self, number: usize, host: Host, has_power: bool, now: u64) {
        let other = if host == 0 { self.children.len() - 1 } else { 0 };
        let state =
            |host: Host| self.children[host].process.as_ref().and_then(|process| process.succession());
        // A supervisor that was replaced leads no more, even if it does not know its successor yet. A leader may have
        // had a term without its partner decided, and lost that line of its journal. Its partner must not take over
        // then.
        let newest = self.newest_term();
        let leads = |left: SuccessionState| left.leads && left.term >= newest;
        let can = match (state(host), state(other)) {
            // The partner may take over only where it knows of the pairing.
            (Some(lost), Some(left)) => {
                leads(left)
                    || lost.leads
                        && lost.is_paired
                        && left.is_paired
                        && lost.term == left.term
                        && left.term >= newest
            }
            (None, Some(left)) => leads(left),
            _ => false,
        };
        if !can || !self.is_working() {
            if self.children[host].process.is_some() {
                self.kill(host, true);
                self.plan_restart(host);
            }
            return;
        }
        let alone = |(other, fault): (usize, &crate::plan::PlannedFault)| {
            other == number || fault.until + RESUME_MAX < now || fault.at > now + RESUME_MAX
        };
        let is_only = self.plan.faults.iter().enumerate().all(alone);
        if is_only && self.is_complete() {
            self.resumes = Some((now + RESUME_MAX, verdict::progress(self).assigned));
        }
        logs::world(&"lost for good", now);
        if has_power {
            self.kill(host, true);
        } else {
            self.lose_power(host);
        }
        self.lose(host);
    }

    /// Returns the file with the vote of a readout.
    fn vote_of(&self, host: Host) -> PathBuf {
        self.folder(host).join(format!("readout-{}.witness", self.children[host].place.index))
    }

    /// Returns a readout's record of its votes; `None` if the file is missing or invalid.
    fn witness(&self, host: Host) -> Option<Witness> {
        let bytes = self.audit_machine().read(&self.vote_of(host)).ok()?;
        Witness::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Returns true if a lost supervisor costs nothing: both are there and a pair, and each of three readouts votes. A
    /// system that has lost a supervisor for good, or has no standby, has nothing to restore.
    pub(crate) fn is_secured(&self) -> bool {
        let is_pair = self
            .running()
            .filter_map(|(_, process)| process.succession())
            .all(|state| state.is_paired || self.children.iter().any(|child| child.is_lost));
        let readouts: Vec<Host> = (0..self.children.len())
            .filter(|&host| self.children[host].place.role == Role::Readout)
            .collect();
        let has_standby = self.plan.has_standby();
        !has_standby || is_pair && (readouts.len() < 3 || readouts.iter().all(|&host| self.votes(host)))
    }

    /// Returns true if a readout knows a decided term, and votes in all later ones.
    fn votes(&self, host: Host) -> bool {
        self.witness(host).is_some_and(|witness| witness.is_voter())
    }

    /// Returns the newest term for which a readout has accepted a leader, decided or not.
    fn newest_term(&self) -> u64 {
        let readouts =
            (0..self.children.len()).filter(|&host| self.children[host].place.role == Role::Readout);
        readouts.filter_map(|host| self.witness(host)).map(|witness| witness.newest_term()).max().unwrap_or(0)
    }

    /// Loses the machine of a leader while it pairs, if that is planned.
    pub(crate) fn lose_while_pairing(&mut self, now: u64) {
        let Some(loss) = self.pairing_loss.filter(|_| self.is_working()) else { return };
        let standby = self.children.len() - 1;
        let state =
            |host: Host| self.children[host].process.as_ref().and_then(|process| process.succession());
        let (Some(leader), Some(follower)) = (state(0), state(standby)) else { return };
        if loss.paired_at.is_none() && follower.is_pairing {
            self.pairing_loss = Some(PairingLoss { paired_at: Some(now), ..loss });
        }
        // A leader that leads alone again has events unknown to its follower.
        let is_pair = leader.term == follower.term || leader.is_paired;
        let is_due =
            self.pairing_loss.and_then(|loss| loss.paired_at).is_some_and(|at| at + loss.after <= now);
        if is_due && leader.leads && is_pair && (follower.is_pairing || follower.is_paired) {
            self.pairing_loss = None;
            if self.is_complete() {
                self.resumes = Some((now + RESUME_MAX, verdict::progress(self).assigned));
            }
            logs::world(&"lost for good while it pairs", now);
            self.lose_power(0);
            self.lose(0);
        }
    }

    /// Plans the loss of the leader if the machine that lost its power is its paired follower's. Call this before the
    /// follower's process is gone.
    pub(crate) fn note_power_failure(&mut self, host: Host, now: u64) {
        let standby = self.children.len() - 1;
        let state =
            |host: Host| self.children[host].process.as_ref().and_then(|process| process.succession());
        let Some(loss) = self.pair_loss.filter(|_| host == standby && self.is_working()) else { return };
        let due_at = match (state(0), state(standby)) {
            (Some(leader), Some(follower))
                if leader.leads && leader.is_paired && follower.is_paired && leader.term == follower.term =>
            {
                Some(now + loss.after)
            }
            _ => None,
        };
        self.pair_loss = due_at.map(|_| PairLoss { due_at, ..loss });
        if let Some(at) = due_at {
            // The loss is checked after each step. A turn of a machine without power is a step at that time.
            self.shared.lock().at(at, WorldStep::Turn(standby));
        }
    }

    /// Loses the machine of a leader whose follower has lost its power, if that is due. Every record that the leader
    /// acted upon is on the follower's disk, unless the leader has asked for a term without it.
    pub(crate) fn lose_pair(&mut self, now: u64) {
        let Some(PairLoss { due_at: Some(due_at), .. }) = self.pair_loss else { return };
        if due_at > now {
            return;
        }
        self.pair_loss = None;
        let leader = self.children[0].process.as_ref().and_then(|process| process.succession());
        let newest = self.newest_term();
        if leader.is_some_and(|leader| leader.leads && leader.is_paired && leader.term >= newest)
            && self.is_working()
        {
            logs::world(&"lost for good with the power of its follower", now);
            self.lose_power(0);
            self.lose(0);
        }
    }

    /// Fails the power of a machine: its process ends, its connections end silently, and files are torn.
    pub(crate) fn lose_power(&mut self, host: Host) {
        self.kill(host, false);
        let mut core = self.shared.lock();
        core.hosts[host].is_up = false;
        // Segments on connections of an ended process are lost, too.
        core.close_all(host, false);
        core.lose_power(host);
    }

    fn cut(&mut self, links: &[(Host, Host)], until: u64) {
        let mut core = self.shared.lock();
        for &(from, to) in links {
            let resend = core.between(0, 200 * MS);
            core.net.cut(from, to, until, resend);
        }
    }

    pub(crate) fn end_fault(&mut self, number: usize, now: u64) {
        self.active -= 1;
        let mut core = self.shared.lock();
        match self.plan.faults[number].kind {
            InjectedFault::PowerLossAtChange(host, _) if core.hosts[host].is_up => {
                core.disks.of[host].changes_left = 0;
            }
            InjectedFault::PowerLoss(host) | InjectedFault::PowerLossAtChange(host, _) => {
                core.disks.of[host].changes_left = 0;
                core.hosts[host].is_up = true;
                core.at(now + 50 * MS, WorldStep::Start(host));
            }
            InjectedFault::Slow(host, _) => {
                (core.hosts[host].slowness, core.hosts[host].paused_until) = (1, 0);
                core.call(host, now);
            }
            InjectedFault::SlowLink(a, b, _) => {
                core.net.slow(a, b, 0);
                core.net.slow(b, a, 0);
            }
            InjectedFault::DiskFull(host) => core.disks.of[host].is_full = false,
            InjectedFault::DiskErrors(host, _) => core.disks.of[host].errors_per_mille = 0,
            InjectedFault::SlowDisk(host, _) => core.disks.of[host].delay_max_ns = 3 * MS,
            InjectedFault::LosePair { .. } => {
                let standby = self.children.len() - 1;
                core.disks.of[standby].changes_left = 0;
                if !core.hosts[standby].is_up {
                    core.hosts[standby].is_up = true;
                    core.at(now + 50 * MS, WorldStep::Start(standby));
                }
                drop(core);
                self.pair_loss = None;
            }
            InjectedFault::LoseWhilePairing(_) => {
                drop(core);
                self.pairing_loss = None;
            }
            InjectedFault::Kill(_)
            | InjectedFault::Restart(_)
            | InjectedFault::LoseVote(_)
            | InjectedFault::LoseForGood(..)
            | InjectedFault::Pause(_)
            | InjectedFault::CutOneWay(..)
            | InjectedFault::Cut(..)
            | InjectedFault::Isolate(_)
            | InjectedFault::Reset(..) => {}
        }
    }
}
