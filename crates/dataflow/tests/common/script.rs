//! Scripts of faults for a system, and the state that each must end in. They run on the state machines in memory
//! (`tests/conformance.rs` here), and on real processes with real sockets (`tests/conformance.rs` of the node).
#![allow(dead_code, unreachable_pub, reason = "each world uses its part")]

/// Collectors of the system; each has two units.
pub const COLLECTORS: u16 = 2;
/// Readouts of the system.
pub const READOUTS: u16 = 4;
/// Loggers of the system.
pub const LOGGERS: u16 = 2;
/// Events a second.
pub const RATE_HZ: u64 = 150;

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    Supervisor,
    Readout(u16),
    Collector(u16),
    Logger(u16),
}

/// One step of a script.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// The system runs for this many milliseconds.
    Run(u64),
    /// A process dies and is restarted within a second.
    Crash(Process),
    /// One of a collector's processing units dies.
    UnitLost(u16),
    /// The connections of a collector to a readout are cut.
    Cut { collector: u16, readout: u16 },
}

/// The expected end. In every case no event is lost, and none is stored twice without a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Every event was decided, and no fragment is missing.
    Clean,
    /// Some events went to the debug stream.
    Debug,
    /// Only the rule for every case holds.
    Sound,
}

/// A script.
#[derive(Debug)]
pub struct Script {
    pub name: &'static str,
    pub steps: &'static [Step],
    pub expect: Expect,
}

use Step::{Crash, Cut, Run, UnitLost};

/// All scripts. Each starts a system, lets it run, injects faults, and stops it in order.
pub const SCRIPTS: &[Script] = &[
    Script { name: "undisturbed", steps: &[Run(700)], expect: Expect::Clean },
    Script {
        name: "units",
        steps: &[Run(300), UnitLost(0), Run(200), UnitLost(1), Run(200), UnitLost(0), Run(600)],
        expect: Expect::Sound,
    },
    Script {
        name: "collector",
        steps: &[Run(400), Crash(Process::Collector(0)), Run(1500)],
        expect: Expect::Sound,
    },
    Script {
        name: "logger",
        steps: &[Run(400), Crash(Process::Logger(1)), Run(1500)],
        expect: Expect::Sound,
    },
    Script {
        name: "readout",
        steps: &[Run(400), Crash(Process::Readout(2)), Run(1500)],
        expect: Expect::Sound,
    },
    Script {
        name: "supervisor",
        steps: &[Run(400), Crash(Process::Supervisor), Run(1500), Crash(Process::Supervisor), Run(1500)],
        expect: Expect::Sound,
    },
    Script {
        name: "cut",
        steps: &[
            Run(400),
            Cut { collector: 1, readout: 3 },
            Run(300),
            Cut { collector: 0, readout: 0 },
            Run(800),
        ],
        expect: Expect::Sound,
    },
];
