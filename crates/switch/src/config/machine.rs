//! Checks that cores and network interfaces of a configuration exist on this machine.

use fanin_scenario::{Document, Problem};

use crate::sys;

use super::switch_spec::Config;

/// Problems for every core and interface that does not exist on this machine.
pub(super) fn problems(config: &Config, document: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    let cores = sys::usable_cores();
    for (index, core) in config.switch.cores.iter().enumerate() {
        if !cores.contains(core) {
            let problem = document
                .problem(&format!("switch.cores.{index}"), format!("this process cannot run on core {core}"))
                .advise(format!("the cores that it can run on: {}", list(&cores)));
            problems.push(problem);
        }
    }
    let interfaces = sys::interfaces();
    for (index, port) in config.port.iter().enumerate() {
        let Some(name) = &port.interface else { continue };
        if !interfaces.iter().any(|interface| interface == name) {
            let problem = document
                .problem(&format!("port.{index}.interface"), format!("there is no interface `{name}` here"))
                .advise(format!("the interfaces here: {}", interfaces.join(", ")));
            problems.push(problem);
        }
    }
    problems
}

fn list(cores: &[u16]) -> String {
    cores.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}
