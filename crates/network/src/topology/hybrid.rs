//! Racks behind one shallow switch, with a software switch on its host ports.

use super::builder::NetworkBuilder;
use super::racks;
use crate::SwitchRole;

/// Adds the racks, and a software switch on the host ports of the core (multi-host paper §IV.A).
pub(super) fn build(builder: &mut NetworkBuilder<'_>) {
    racks::build(builder);
    let settings = &builder.scenario.network.hybrid;
    if settings.host_ports == 0 {
        return;
    }
    let core = builder.network.node_named("core:0").expect("racks have a core");
    let software = builder.switch(SwitchRole::Software, 0);
    for _ in 0..settings.host_ports {
        builder.join(core, software, &settings.link);
    }
    builder.roles.software = Some(software);
}
