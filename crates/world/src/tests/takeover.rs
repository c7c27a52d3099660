//! Time for which assignment stops when a supervisor is lost for good, in simulated time.

use fanin_dataflow::EventStep;
use fanin_node::config::Role;
use fanin_node::journal::read_on;
use fanin_units::Duration;

use crate::plan::{InjectedFault, PlannedFault, ProcessPlace};
use crate::world::{MS, RESUME_MAX, World};

/// Returns the longest time between two assignments in the standby's journal, in nanoseconds. The assignments of the
/// first supervisor are lines of it, too.
fn longest_stop(world: &World) -> u64 {
    let standby = world.plan.places.len() - 1;
    let path = world.folder(standby).join("standby.journal");
    let mut times = Vec::new();
    read_on(&world.audit_machine(), &path, |epoch_us, line| {
        if matches!(line.record.step, EventStep::Assigned { direct: false, .. }) {
            times.push(epoch_us * 1_000 + line.record.at.get() / 1_000);
        }
    })
    .unwrap();
    times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
}

/// Plays worlds whose only fault is the loss of the first supervisor's machine. `has_power`: its kernel closes the
/// connections. Returns the number of takeovers and the longest stop, in nanoseconds.
fn play(has_power: bool) -> (u32, u64) {
    let (mut takeovers, mut longest) = (0, 0);
    for seed in 0..200 {
        let mut world = World::new(seed);
        if !world.plan.has_standby() {
            continue;
        }
        let at = (2_000 + 7 * seed) * MS;
        let kind = InjectedFault::LoseForGood(0, has_power);
        world.plan.faults = vec![PlannedFault { at, until: at + MS, kind }];
        world.plan.stop_at = at + 2 * RESUME_MAX;
        // The default. The supervisors' own limit notices a dead host then, not a lost connection.
        world.set_silence_max(Duration::from_secs(5));
        (world.plan.is_rolling, world.plan.is_long) = (false, false);
        world.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        let is_first = |place: ProcessPlace| (place.role, place.index) == (Role::Supervisor, 0);
        if world.folders().iter().any(|(place, ..)| is_first(*place)) {
            // The two were not paired: the process was killed, and started again.
            continue;
        }
        let stop = longest_stop(&world);
        assert!(stop < RESUME_MAX, "seed {seed}: assignment stopped for {} ms", stop / MS);
        takeovers += 1;
        longest = longest.max(stop);
    }
    (takeovers, longest)
}

#[test]
fn a_takeover_stops_assignment_for_less_than_3_s() {
    let (takeovers, longest) = play(false);
    eprintln!("{takeovers} dead hosts: {} ms at most", longest / MS);
    assert!(takeovers > 50, "{takeovers}");
    // A dead host is noticed by its silence alone, a dead process at once.
    let (takeovers, longest_of_process) = play(true);
    eprintln!("{takeovers} dead processes: {} ms at most", longest_of_process / MS);
    assert!(takeovers > 50 && longest_of_process < longest, "{takeovers}, {longest_of_process} ns");
}
