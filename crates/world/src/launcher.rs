//! The launcher of a world, by the rules of the real one: it kills processes that hang, and stops the system in order.

use std::time::Duration;

use fanin_node::clock::std_duration;
use fanin_node::config::Role;
use fanin_node::launch::{
    ActivitySample, CHECK_INTERVAL, ProcessActivity, ProcessStop, STOP_ORDER, StopAction, StoppingProcess,
    stop_limit,
};

use crate::shared::{Host, instant};
use crate::verdict::{self, WorldFailure};
use crate::world::{STOP_MAX, World, WorldPhase};

impl World {
    /// Kills the processes that hang, at the interval of the launcher's checks.
    pub(crate) fn check_activity(&mut self, now: u64) {
        let check = now / CHECK_INTERVAL.as_nanos() as u64;
        if check == self.checks {
            return;
        }
        self.checks = check;
        // While supervisors stop, the launcher watches the other roles; after that, none.
        let watched = |role| match self.phase {
            WorldPhase::Stop { step: 0, .. } => role != Role::Supervisor,
            WorldPhase::Stop { .. } | WorldPhase::Over => false,
            _ => true,
        };
        let hosts = (0..self.children.len()).filter(|&host| watched(self.children[host].place.role));
        for host in hosts.collect::<Vec<Host>>() {
            let limit = self.hang_limit(host);
            let is_paused = self.shared.lock().hosts[host].paused_until > now;
            let child = &mut self.children[host];
            if child.process.is_none() {
                continue;
            }
            // The main thread of a process that is not stopped runs between two checks.
            child.runs += u64::from(!is_paused);
            let sample = ActivitySample { switches: child.runs, is_uninterruptible: false };
            let activity = child.activity.handle_sample(instant(now), sample, limit);
            if activity == ProcessActivity::Hangs {
                self.hangs += 1;
                self.kill(host, true);
                self.plan_restart(host);
            }
        }
    }

    /// Takes the next step of an orderly stop. A system that takes [`STOP_MAX`] without faults has failed.
    pub(crate) fn stop(&mut self, now: u64, since: u64, step: usize) -> Result<(), WorldFailure> {
        let faults_end = self.plan.faults.iter().map(|fault| fault.until).max().unwrap_or(0);
        if now.saturating_sub(since.max(faults_end)) > STOP_MAX {
            return Err(verdict::not_stopped(self));
        }
        let Some(&role) = STOP_ORDER.get(step) else {
            self.phase = WorldPhase::Over;
            return Ok(());
        };
        let mut is_over = true;
        for host in 0..self.children.len() {
            let limit = stop_limit(std_duration(self.scenario(host).live.drain));
            let child = &mut self.children[host];
            if child.place.role != role {
                continue;
            }
            let hasty = self.plan.hasty_stop.filter(|_| role == Role::Supervisor);
            let stop = child.stop.get_or_insert_with(|| {
                ProcessStop::new(instant(now), hasty.map_or(limit, Duration::from_nanos))
            });
            let process = StoppingProcess {
                role,
                has_ended: child.has_ended,
                is_running: child.process.is_some(),
                // A process of a world takes its order from its first turn on.
                is_settled: true,
                is_restarted: true,
            };
            match stop.next(instant(now), process, limit) {
                StopAction::Done => continue,
                StopAction::Ask => self.ask(host, now),
                StopAction::Wait => {}
                StopAction::Replace => {
                    self.replaced += 1;
                    self.kill(host, true);
                    self.plan_restart(host);
                }
                StopAction::Kill => {
                    child.has_ended = true;
                    self.kill(host, true);
                    continue;
                }
            }
            is_over = false;
        }
        if is_over {
            for child in self.children.iter_mut().filter(|child| child.place.role == role) {
                child.has_ended = true;
            }
            self.phase = WorldPhase::Stop { since, step: step + 1 };
        }
        Ok(())
    }
}
