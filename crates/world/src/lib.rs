//! The live system in a simulated world with faults.
//!
//! [`run`] plays one world: the processes of a whole system with their main loops, connections, journals and files.
//! They run on simulated machines, in one thread and in simulated time, and the launcher's rule starts them again. A
//! seed decides the system's size, its settings and its faults. Equal seeds give equal worlds. Afterwards these must
//! hold:
//!
//! - every assigned event is exactly once rejected, stored or in the debug stream, as the audit shows;
//! - an event that was reported as stored can be read after any loss of power;
//! - the counts of each state machine agree with each other, credits among them;
//! - queues, buffers and sockets stay below limits, and a process that ends has nothing left in its tables;
//! - the system is complete again and finishes events within a stated time after the last fault, and stops in order.
//!
//! Not in the world: the processes of processors, TLS, io_uring, the kernel's TCP, and a launcher that dies.

mod campaign;
mod disk;
mod faults;
mod held;
mod launcher;
mod logs;
mod machine;
mod net;
mod plan;
mod rivals;
mod shared;
#[cfg(test)]
mod tests;
mod verdict;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use campaign::{Campaign, CampaignProgress, FailedSeed, campaign};
pub use logs::print as print_logs;
pub use verdict::WorldFailure;
pub use world::WorldReport;

/// Plays the world of a seed.
///
/// # Errors
/// The first promise that did not hold.
pub fn run(seed: u64) -> Result<WorldReport, WorldFailure> {
    let played = catch_unwind(AssertUnwindSafe(|| world::World::new(seed).run()));
    played.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(WorldFailure::Panic(text.unwrap_or("without a text").to_owned()))
    })
}

/// Plays the world of a seed. Returns the lines of its journals about one event, and the result.
pub fn story(seed: u64, event: u64) -> (Vec<String>, Result<WorldReport, WorldFailure>) {
    let mut world = world::World::new(seed);
    let result = world.run();
    (world.story(event), result)
}

/// Returns the system and the faults of a seed, as text.
pub fn describe(seed: u64) -> String {
    plan::WorldPlan::draw(&mut fanin_dataflow::Random::new(seed)).to_string()
}
