//! One world: the machines of a system, their processes, and the launcher that starts them again.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use fanin_dataflow::Random;
use fanin_node::clock::std_duration;
use fanin_node::config::{Role, System};
use fanin_node::launch::{ActivityWatch, ProcessStop, RestartPlan, hang_limit};
use fanin_node::machine::HostMachine;
use fanin_node::node::ProcessError;
use fanin_node::process::{self, Signals, Turns};

use crate::faults::{PairLoss, PairingLoss};
use crate::logs;
use crate::machine::{AuditMachine, ProcessLife, ProcessMachine};
use crate::plan::{InjectedFault, ProcessPlace, WorldPlan};
use crate::shared::{Core, Host, SharedCore, WorldStep, instant, nanoseconds};
use crate::verdict::{self, EventProgress, WorldFailure};

pub(crate) const MS: u64 = 1_000_000;
/// The interval of the check of progress.
const LOOK_EVERY: u64 = 20 * MS;
/// A system without faults is complete again, and finishes an event, within this time. The pause before a start is 2 s
/// at most. The pause before an attempt to connect is 5 s at most, and an attempt without an answer takes 5 s.
pub(crate) const RECOVERY_MAX: u64 = 30_000 * MS;
/// Events are assigned again within this time after the loss of a supervisor for good, in a system without other faults.
pub(crate) const RESUME_MAX: u64 = 3_000 * MS;
/// A system without faults stops in order within this time.
pub(crate) const STOP_MAX: u64 = 60_000 * MS;
/// Time after the completion of the system within which the effects of earlier faults end.
const QUIET_AFTER: u64 = 3_000 * MS;
/// Time for which a quiet system is watched, longer than any `silence_max` of a plan.
const QUIET_FOR: u64 = 2_500 * MS;
/// The most steps of one world.
const HAPPENINGS_MAX: u64 = 3_000_000;

/// A process as the launcher sees it.
pub(crate) struct Child {
    pub(crate) place: ProcessPlace,
    pub(crate) process: Option<Box<dyn Turns>>,
    signals: Signals,
    pub(crate) plan: RestartPlan,
    pub(crate) activity: ActivityWatch,
    /// True if it has ended in order, and is not to be started again.
    pub(crate) has_ended: bool,
    /// True if its machine is lost for good.
    pub(crate) is_lost: bool,
    /// State of the process's stop, once the stop of its role has begun.
    pub(crate) stop: Option<ProcessStop>,
    /// True if it was asked to stop in this life.
    is_asked: bool,
    /// True if it is started again when it has ended in order.
    pub(crate) restarts: bool,
    turns: u64,
    /// Checks of the launcher that found it running.
    pub(crate) runs: u64,
}

/// The phases of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorldPhase {
    /// The system works, and meets its faults.
    Work,
    /// The faults are over; the system has to be complete again, and to finish an event after the first `assigned`
    /// ones.
    Recover {
        since: u64,
        assigned: u64,
    },
    /// The system is complete. After [`QUIET_AFTER`], `since` restarts, and `lost` holds the number of connections lost
    /// so far. Then no further one may be lost.
    Quiet {
        since: u64,
        lost: Option<u64>,
    },
    /// The roles are asked to stop, one after the other; `step` is the place in `STOP_ORDER`.
    Stop {
        since: u64,
        step: usize,
    },
    Over,
}

/// The results of one world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldReport {
    /// Simulated time, nanoseconds.
    pub simulated_ns: u64,
    /// Events that were assigned.
    pub assigned: u64,
    /// Faults that happened.
    pub faults: u64,
    /// Steps of the world.
    pub steps: u64,
    /// Turns of processes.
    pub turns: u64,
    /// Checksum of all steps: equal for equal seeds.
    pub trace: u64,
}

/// A system in its world.
pub(crate) struct World {
    pub(crate) shared: SharedCore,
    pub(crate) plan: WorldPlan,
    systems: Vec<System>,
    pub(crate) children: Vec<Child>,
    pub(crate) phase: WorldPhase,
    pub(crate) faults: u64,
    /// After the loss of a supervisor: the time until which a further event has to be assigned, and the number of
    /// events before.
    pub(crate) resumes: Option<(u64, u64)>,
    /// Faults that are going on.
    pub(crate) active: usize,
    pub(crate) pairing_loss: Option<PairingLoss>,
    pub(crate) pair_loss: Option<PairLoss>,
    /// True if the system was complete after its faults.
    has_recovered: bool,
    /// Progress by journals, also by those that are deleted meanwhile (`note_progress`).
    pub(crate) seen: EventProgress,
    /// Turns of processes after which a peer waited for its part of the memory.
    pub(crate) peer_stops: u64,
    /// Number of the launcher's last check.
    pub(crate) checks: u64,
    /// Processes that the launcher killed because they hung.
    pub(crate) hangs: u64,
    /// Supervisors that the launcher replaced because they did not stop in time.
    pub(crate) replaced: u64,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let plan = WorldPlan::draw(&mut random);
        let hosts = plan.places.len();
        let mut core = Core::new(random.bits(), hosts);
        core.net.limits = (0..hosts).map(|host| plan.limits_of(host)).collect();
        core.net.shape(plan.capacity, plan.pieces_max, || {
            crate::shared::between(&mut random, 10_000, plan.latency_max_ns)
        });
        let loaded = fanin_scenario::load_text("world.toml", &plan.scenario, &[])
            .unwrap_or_else(|errors| panic!("the scenario of a world: {errors}\n{}", plan.scenario));
        let shared = SharedCore::new(core);
        let systems = (0..hosts).map(|host| plan.system(&loaded, host)).collect();
        let children = plan.places.iter().map(|&place| Child {
            place,
            process: None,
            signals: Signals::default(),
            plan: RestartPlan::new(instant(0)),
            activity: ActivityWatch::new(instant(0)),
            has_ended: false,
            is_lost: false,
            stop: None,
            is_asked: false,
            restarts: false,
            turns: 0,
            runs: 0,
        });
        let children = children.collect();
        Self {
            shared,
            plan,
            systems,
            children,
            phase: WorldPhase::Work,
            faults: 0,
            resumes: None,
            active: 0,
            pairing_loss: None,
            pair_loss: None,
            has_recovered: false,
            seen: EventProgress::default(),
            peer_stops: 0,
            checks: 0,
            hangs: 0,
            replaced: 0,
        }
    }

    /// Plays the world to its end. Returns its report, or the first broken promise.
    pub(crate) fn run(&mut self) -> Result<WorldReport, WorldFailure> {
        {
            let mut core = self.shared.lock();
            for host in 0..self.children.len() {
                let at = core.between(0, 20 * MS);
                core.at(at, WorldStep::Start(host));
            }
            for (number, fault) in self.plan.faults.iter().enumerate() {
                core.at(fault.at, WorldStep::InjectedFault(number));
                if !matches!(fault.kind, InjectedFault::Restart(_)) {
                    core.at(fault.until, WorldStep::Heal(number));
                }
            }
            core.at(LOOK_EVERY, WorldStep::Look);
        }
        let mut count = 0;
        while self.phase != WorldPhase::Over {
            let next = self.shared.lock().next();
            let Some(step) = next else { return Err(WorldFailure::Livelock { count }) };
            self.handle(step)?;
            let failed = self.shared.lock().power_failed.take();
            let now = self.shared.lock().now;
            if let Some(host) = failed {
                self.note_power_failure(host, now);
                self.lose_power(host);
            }
            self.lose_pair(now);
            if self.pairing_loss.is_some() {
                self.lose_while_pairing(now);
            }
            count += 1;
            if count > HAPPENINGS_MAX {
                return Err(WorldFailure::Livelock { count });
            }
        }
        self.note_progress();
        verdict::check_finished(&self.seen)?;
        let assigned = verdict::audit(self)?;
        let core = self.shared.lock();
        Ok(WorldReport {
            simulated_ns: core.now,
            assigned,
            faults: self.faults,
            steps: count,
            turns: self.children.iter().map(|child| child.turns).sum(),
            trace: core.trace,
        })
    }

    fn handle(&mut self, step: WorldStep) -> Result<(), WorldFailure> {
        let now = self.shared.lock().now;
        logs::set_time(now);
        match step {
            WorldStep::Turn(host) => {
                let mut core = self.shared.lock();
                let state = &mut core.hosts[host];
                if state.turn_at != now || !state.is_running {
                    return Ok(());
                }
                state.turn_at = u64::MAX;
                let paused_until = state.paused_until;
                if paused_until > now {
                    core.call(host, paused_until);
                    return Ok(());
                }
                core.note(host as u64 | 1 << 56);
                drop(core);
                self.turn(host)
            }
            WorldStep::Store(host) => {
                self.store_turn(host, now);
                Ok(())
            }
            WorldStep::Start(host) => {
                self.start(host, now);
                Ok(())
            }
            WorldStep::Connect(request) => {
                self.shared.lock().handle_connect(request);
                Ok(())
            }
            WorldStep::Arrive(segment) => {
                self.shared.lock().handle_segment(segment);
                Ok(())
            }
            WorldStep::Room(socket) => {
                self.shared.lock().handle_room(socket);
                Ok(())
            }
            WorldStep::InjectedFault(number) => {
                self.begin_fault(number, now);
                Ok(())
            }
            WorldStep::Heal(number) => {
                self.end_fault(number, now);
                Ok(())
            }
            WorldStep::Look => self.look(now),
        }
    }

    pub(crate) fn start(&mut self, host: Host, now: u64) {
        let child = &mut self.children[host];
        let mut core = self.shared.lock();
        if child.process.is_some() || child.has_ended || !core.hosts[host].is_up {
            return;
        }
        let state = &mut core.hosts[host];
        state.life += 1;
        (state.is_running, state.paused_until, state.turn_at) = (true, 0, u64::MAX);
        let life = ProcessLife { host, number: state.life };
        core.note(host as u64 | 2 << 56);
        drop(core);
        child.signals = Signals::default();
        child.is_asked = false;
        child.plan.handle_started(instant(now));
        child.activity = ActivityWatch::new(instant(now));
        let machine = ProcessMachine { shared: self.shared.clone(), life };
        let system =
            System { machine: HostMachine::Simulated(Arc::new(machine)), ..self.systems[host].clone() };
        logs::set_process(child.place);
        let started = process::start(&system, child.place.role, child.place.index, &child.signals);
        if self.shared.lock().power_failed.is_some() {
            return;
        }
        match started {
            Ok(process) => {
                child.process = Some(process);
                self.shared.lock().call(host, now);
            }
            Err(error) => self.ended(host, Some(&error)),
        }
    }

    /// Ends a process, in order or with an error: its machine closes its open handles, and the launcher is informed.
    fn ended(&mut self, host: Host, error: Option<&ProcessError>) {
        let child = &mut self.children[host];
        let process = child.process.take();
        // A process that ended in order may still change files when it is dropped. A failed one must not.
        if error.is_none() {
            drop(process);
        } else {
            self.shared.lock().hosts[host].life += 1;
            drop(process);
        }
        let mut core = self.shared.lock();
        let state = &mut core.hosts[host];
        (state.is_running, state.turn_at, state.store, state.store_at) = (false, u64::MAX, None, u64::MAX);
        core.close_all(host, true);
        match error {
            None if std::mem::take(&mut child.restarts) => {
                self.active -= 1;
                let now = core.now;
                core.at(now, WorldStep::Start(host));
                if let Some(versions) = self.plan.versions_restarted {
                    self.systems[host].versions = versions;
                }
            }
            None => child.has_ended = true,
            Some(error) => {
                tracing::warn!(%error, "the process ended");
                drop(core);
                self.plan_restart(host);
            }
        }
    }

    pub(crate) fn plan_restart(&mut self, host: Host) {
        let child = &mut self.children[host];
        let mut core = self.shared.lock();
        child.plan.handle_ended(instant(core.now));
        if let Some(at) = child.plan.next() {
            core.at(nanoseconds(at), WorldStep::Start(host));
        }
    }

    /// Kills a process. With `has_power` its kernel closes its connections; otherwise they end silently.
    pub(crate) fn kill(&mut self, host: Host, has_power: bool) {
        {
            let mut core = self.shared.lock();
            let state = &mut core.hosts[host];
            if self.children[host].process.is_none() {
                return;
            }
            state.life += 1;
            (state.is_running, state.turn_at, state.store, state.store_at) =
                (false, u64::MAX, None, u64::MAX);
            core.close_all(host, has_power);
        }
        // The life of the process has ended: its values reach neither files nor connections when they are dropped.
        self.children[host].process = None;
    }

    fn turn(&mut self, host: Host) -> Result<(), WorldFailure> {
        let child = &mut self.children[host];
        logs::set_process(child.place);
        let Some(process) = &mut child.process else { return Ok(()) };
        child.turns += 1;
        let went_on = process.turn();
        if self.shared.lock().power_failed.is_some() {
            return Ok(());
        }
        match went_on {
            Ok(true) => {
                verdict::check_turn(child.place, &**process, child.turns)?;
                let next = process.next_turn().map(nanoseconds);
                let waits = next.is_none_or(|next| next > self.shared.lock().now);
                let limits = self.plan.limits_of(host);
                let is_stopped = verdict::check_memory(child.place, &**process, limits, waits)?;
                self.peer_stops += u64::from(is_stopped);
                let mut core = self.shared.lock();
                if waits && core.net.forgets_input(host) {
                    return Err(verdict::forgotten_input(child.place));
                }
                let cost = core.between(1_000, 20_000) * core.hosts[host].slowness;
                let now = core.now;
                if let Some(next) = next {
                    core.call(host, next.max(now + cost));
                }
                // Input that arrives while the process works waits for its next turn.
                if core.hosts[host].slowness > 1 {
                    core.hosts[host].paused_until = now + cost;
                }
                if core.hosts[host].store.is_some() && core.hosts[host].store_at == u64::MAX {
                    let most = core.disks.of[host].delay_max_ns;
                    let at = now + core.between(50_000, most);
                    core.hosts[host].store_at = at;
                    core.at(at, WorldStep::Store(host));
                }
            }
            Ok(false) => {
                // A supervisor that was killed at the stop may have owed readouts the clears of finished events.
                let is_clean = self.has_recovered && self.replaced == 0;
                verdict::check_end(child.place, &**process, is_clean)?;
                self.ended(host, None);
            }
            Err(error) => self.ended(host, Some(&error)),
        }
        Ok(())
    }

    fn store_turn(&mut self, host: Host, now: u64) {
        let mut core = self.shared.lock();
        let state = &mut core.hosts[host];
        if state.store_at != now || !state.is_running {
            return;
        }
        if state.paused_until > now && state.slowness == 1 {
            state.store_at = state.paused_until;
            let at = state.store_at;
            return core.at(at, WorldStep::Store(host));
        }
        state.store_at = u64::MAX;
        let Some(task) = state.store.clone() else { return };
        drop(core);
        logs::set_process(self.children[host].place);
        task.lock().unwrap_or_else(PoisonError::into_inner).turn(std::time::Duration::ZERO);
        self.shared.lock().call(host, now);
    }

    /// Returns the number of connections of a process when the system is complete.
    pub(crate) fn connections(&self, place: ProcessPlace) -> usize {
        let left = || self.children.iter().filter(|child| !child.is_lost);
        let count = |role| left().filter(|child| child.place.role == role).count();
        let supervisors = count(Role::Supervisor);
        match place.role {
            Role::Supervisor => supervisors - 1 + count(Role::Readout) + count(Role::Collector),
            Role::Readout => supervisors + count(Role::Collector),
            Role::Collector => supervisors + count(Role::Readout) + count(Role::Logger),
            Role::Logger | Role::Processor => count(Role::Collector),
        }
    }

    /// Returns true if every process runs, with all its connections.
    pub(crate) fn is_complete(&self) -> bool {
        self.children.iter().filter(|child| !child.is_lost).all(|child| {
            let connected = child.process.as_ref().map(|process| process.held().connected);
            connected == Some(self.connections(child.place))
        })
    }

    /// Returns true until the system is asked to stop.
    pub(crate) fn is_working(&self) -> bool {
        !matches!(self.phase, WorldPhase::Stop { .. } | WorldPhase::Over)
    }

    /// Marks a machine as lost for good.
    pub(crate) fn lose(&mut self, host: Host) {
        let child = &mut self.children[host];
        (child.has_ended, child.is_lost) = (true, true);
    }

    /// Returns the number of connections that the running processes have lost.
    fn connections_lost(&self) -> u64 {
        self.running().map(|(_, process)| process.held().connections_lost).sum()
    }

    fn look(&mut self, now: u64) -> Result<(), WorldFailure> {
        verdict::check_sockets(self)?;
        self.check_activity(now);
        self.note_progress();
        if let Some((until, assigned)) = self.resumes.filter(|_| self.is_working()) {
            if verdict::progress(self).assigned > assigned {
                self.resumes = None;
            } else if now > until {
                return Err(verdict::not_resumed(self, assigned));
            }
        }
        match self.phase {
            WorldPhase::Work => {
                let no_faults = self.active == 0 && self.faults as usize == self.plan.faults.len();
                if now >= self.plan.stop_at && !no_faults {
                    self.phase = WorldPhase::Stop { since: now, step: 0 };
                } else if now >= self.plan.stop_at.max(500 * MS).max(self.shared.lock().net.resent_at())
                    && no_faults
                {
                    let assigned = verdict::progress(self).assigned;
                    self.phase = WorldPhase::Recover { since: now, assigned };
                }
            }
            WorldPhase::Recover { since, assigned } => {
                if now - since > RECOVERY_MAX {
                    return Err(verdict::not_recovered(self));
                }
                let is_whole = self.is_complete() && self.is_secured();
                if is_whole && verdict::progress(self).completed_after(assigned) {
                    self.has_recovered = true;
                    let is_long = self.plan.is_long;
                    self.phase = if is_long {
                        WorldPhase::Quiet { since: now, lost: None }
                    } else {
                        WorldPhase::Stop { since: now, step: 0 }
                    };
                }
            }
            WorldPhase::Quiet { since, lost: None } if now - since >= QUIET_AFTER => {
                let lost = Some(self.connections_lost());
                self.phase = WorldPhase::Quiet { since: now, lost };
            }
            WorldPhase::Quiet { since, lost: Some(lost) } => {
                if self.connections_lost() > lost {
                    return Err(verdict::lost_connection(self));
                }
                if now - since >= QUIET_FOR {
                    self.phase = WorldPhase::Stop { since: now, step: 0 };
                }
            }
            WorldPhase::Quiet { .. } => {}
            WorldPhase::Stop { since, step } => self.stop(now, since, step)?,
            WorldPhase::Over => {}
        }
        self.shared.lock().at(now + LOOK_EVERY, WorldStep::Look);
        Ok(())
    }

    /// Asks a process to stop.
    pub(crate) fn ask(&mut self, host: Host, now: u64) {
        let child = &mut self.children[host];
        if child.process.is_some() && !std::mem::replace(&mut child.is_asked, true) {
            child.signals.stop.store(true, Ordering::Relaxed);
            self.shared.lock().call(host, now);
        }
    }

    /// Returns the processes that run, each with its place.
    pub(crate) fn running(&self) -> impl Iterator<Item = (ProcessPlace, &dyn Turns)> {
        self.children.iter().filter_map(|child| Some((child.place, &**child.process.as_ref()?)))
    }

    /// Returns the system as the process of a machine reads it, on this real machine.
    #[cfg(test)]
    pub(crate) fn system(&self, host: Host) -> &System {
        &self.systems[host]
    }

    /// Returns the scenario of a machine.
    pub(crate) fn scenario(&self, host: Host) -> &fanin_scenario::Scenario {
        self.systems[host].scenario()
    }

    /// Returns the time after which a process hangs.
    pub(crate) fn hang_limit(&self, host: Host) -> std::time::Duration {
        hang_limit(std_duration(self.scenario(host).live.silence_max))
    }

    /// Changes the live settings of all processes.
    #[cfg(test)]
    pub(crate) fn set_live(&mut self, set: impl Fn(&mut fanin_scenario::Live)) {
        self.systems.iter_mut().for_each(|system| set(&mut system.loaded.scenario.live));
    }

    /// Returns the folder of a machine's journals.
    pub(crate) fn folder(&self, host: Host) -> &Path {
        &self.systems[host].folder
    }

    /// Returns the folders of journals and of stored events of all machines that are not lost, with their processes.
    pub(crate) fn folders(&self) -> Vec<(ProcessPlace, PathBuf, PathBuf)> {
        let left = self.systems.iter().zip(&self.children).filter(|(_, child)| !child.is_lost);
        left.map(|(system, child)| (child.place, system.folder.clone(), system.data.clone())).collect()
    }

    /// Returns the lines of all journals about one event, with their processes, in the order of time.
    pub(crate) fn story(&self, event: u64) -> Vec<String> {
        verdict::story(self, event)
    }

    /// Returns a read-only machine with all disks.
    pub(crate) fn audit_machine(&self) -> HostMachine {
        HostMachine::Simulated(Arc::new(AuditMachine { shared: self.shared.clone() }))
    }
}
