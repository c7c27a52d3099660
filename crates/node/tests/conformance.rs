//! The conformance script on real processes and sockets: what the state machines go through in memory
//! (`crates/dataflow/tests/conformance.rs`), processes go through here.

mod common;
#[path = "../../dataflow/tests/common/script.rs"]
mod script;

use common::{System, send};
use fanin_node::config::Role;
use rustix::process::Signal;
use script::{COLLECTORS, Expect, LOGGERS, Process, RATE_HZ, READOUTS, SCRIPTS, Script, Step};

fn play(script: &Script) {
    let rate = format!("supervisor.rate={RATE_HZ} Hz");
    let hosts = [
        format!("collectors.hosts_per_rack={COLLECTORS}"),
        format!("readout.hosts={READOUTS}"),
        format!("logger.hosts={LOGGERS}"),
    ];
    let sets: Vec<&str> = hosts.iter().map(String::as_str).chain([rate.as_str()]).collect();
    let mut system = System::start(&format!("script-{}", script.name), &sets);
    for step in script.steps {
        match *step {
            Step::Run(ms) => system.work(ms),
            Step::Crash(Process::Supervisor) => system.signal(Role::Supervisor, 0, Signal::KILL),
            Step::Crash(Process::Readout(place)) => system.signal(Role::Readout, place, Signal::KILL),
            Step::Crash(Process::Collector(place)) => system.signal(Role::Collector, place, Signal::KILL),
            Step::Crash(Process::Logger(place)) => system.signal(Role::Logger, place, Signal::KILL),
            Step::UnitLost(collector) => {
                system.processors(collector).first().into_iter().for_each(|&pid| send(pid, Signal::KILL));
            }
            Step::Cut { collector, readout } => system.cut(collector, readout),
        }
    }
    let finished = system.finish();
    let totals = finished.audit.totals;
    assert!(totals.assigned > 20, "{}: {totals:?}", script.name);
    match script.expect {
        Expect::Clean => {
            assert_eq!(
                (totals.debug, totals.duplicates, finished.audit.missing),
                (0, 0, 0),
                "{}",
                script.name
            );
        }
        Expect::Debug => assert!(totals.debug > 0, "{}: {totals:?}", script.name),
        Expect::Sound => {}
    }
    finished.remove();
}

#[test]
fn every_script_ends_well() {
    SCRIPTS.iter().for_each(play);
}
