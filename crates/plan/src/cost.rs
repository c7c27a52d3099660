//! Cost and floor area: parallel leaf-spine planes of software switches against chassis routers (multi-host §III).

use crate::catalogue::Catalogue;
use crate::derived::{Area, Count, Derived, Factor, Money, brief};

/// A network of parallel leaf-spine planes, counted in switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafSpineFabric {
    /// Ports for hosts.
    pub ports: u64,
    /// Ports of every switch.
    pub switch_ports: u64,
    /// Spines of every plane.
    pub spines: u64,
    /// Planes with as many leaves as a spine has ports.
    pub planes_full: u64,
    /// Host ports that do not fit into the full planes.
    pub ports_rest: u64,
    /// Leaves of the last, partly filled plane.
    pub leaves_rest: u64,
}

/// Errors of a network that cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeafSpineError {
    /// A leaf has no port left for a host.
    #[error("{spines} spines leave no port of a leaf with {switch_ports} ports for a host")]
    TooManySpines {
        /// Number of spines requested.
        spines: u64,
        /// Ports of a leaf.
        switch_ports: u64,
    },
    /// Without a spine, the leaves of a plane would not be connected.
    #[error("at least one spine is needed")]
    NoSpine,
}

impl LeafSpineFabric {
    /// Makes the network with `ports` ports for hosts: multi-host eqs (2) to (4).
    ///
    /// Leaves are added one by one. A plane is full if it has as many leaves as a spine has ports.
    ///
    /// # Errors
    /// If there is no spine, or spines take all ports of a leaf.
    ///
    /// # Panics
    /// If the ports of one plane overflow.
    pub fn new(ports: u64, switch_ports: u64, spines: u64) -> Result<Self, LeafSpineError> {
        if spines == 0 {
            return Err(LeafSpineError::NoSpine);
        }
        if spines >= switch_ports {
            return Err(LeafSpineError::TooManySpines { spines, switch_ports });
        }
        let ports_per_leaf = switch_ports - spines;
        let ports_per_plane =
            switch_ports.checked_mul(ports_per_leaf).expect("the ports of a plane overflow");
        let planes_full = ports / ports_per_plane;
        let ports_rest = ports % ports_per_plane;
        let leaves_rest = ports_rest.div_ceil(ports_per_leaf);
        Ok(Self { ports, switch_ports, spines, planes_full, ports_rest, leaves_rest })
    }

    /// Counts all switches, spines and leaves: multi-host eq. (5), corrected.
    ///
    /// The paper counts spines of the last plane even if the plane has no leaf. In the equation's last line, the leaves of full
    /// planes lack the factor of the number of planes.
    pub fn switches(&self) -> Derived<Count> {
        let spines_rest = if self.ports_rest > 0 { self.spines } else { 0 };
        let (leaves, planes, per_plane) =
            (self.leaves_rest, self.planes_full, self.switch_ports + self.spines);
        Derived::new(
            "switches",
            Count(leaves + spines_rest + planes * per_plane),
            "leaves of the last plane + its spines + full planes × (ports a switch + spines)",
            format!("{leaves} + {spines_rest} + {planes} × ({} + {})", self.switch_ports, self.spines),
            "multi-host §III.A eq. (5), corrected",
        )
    }

    /// Computes the ratio of a leaf's ports towards hosts to its ports towards spines.
    pub fn oversubscription(&self) -> Derived<Factor> {
        let down = self.switch_ports - self.spines;
        Derived::new(
            "oversubscription",
            Factor::of(down, self.spines),
            "host ports of a leaf / spines",
            format!("{down} / {}", self.spines),
            "multi-host §III.A",
        )
    }
}

/// Chassis routers with as many modules as the ports need (multi-host §III.A.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routers {
    /// The number of chassis.
    pub chassis: u64,
    /// Modules of ports.
    pub modules: u64,
}

impl Routers {
    /// Computes the routers for `ports` ports; at least one chassis, as the paper assumes.
    pub fn new(ports: u64, catalogue: &Catalogue) -> Self {
        let modules = ports.div_ceil(catalogue.router.module_ports);
        Self { chassis: modules.div_ceil(catalogue.router.module_slots).max(1), modules }
    }

    /// Computes the price of the routers. Every chassis has all its fabric modules.
    pub fn price(&self, catalogue: &Catalogue) -> Derived<Money> {
        let router = &catalogue.router;
        let chassis = router.chassis_price.0 + router.fabric_modules * router.fabric_price.0;
        Derived::new(
            "router_price",
            catalogue.money(self.chassis * chassis + self.modules * router.module_price.0),
            "chassis × (chassis + fabric modules) + modules × module",
            format!(
                "{} × ({} + {} × {}) + {} × {}",
                self.chassis,
                router.chassis_price,
                router.fabric_modules,
                router.fabric_price,
                self.modules,
                router.module_price
            ),
            "multi-host §III.A.1",
        )
    }

    /// Computes the floor area of the routers.
    pub fn area(&self, catalogue: &Catalogue) -> Derived<Area> {
        let area = catalogue.router.area();
        Derived::new(
            "router_area",
            Area(self.chassis * area.0),
            "chassis × width × depth",
            format!("{} × {} mm × {} mm", self.chassis, catalogue.router.width, catalogue.router.depth),
            "multi-host §III.B",
        )
    }
}

/// Computes the price of `switches` servers.
pub fn servers_price(switches: u64, catalogue: &Catalogue) -> Derived<Money> {
    Derived::new(
        "server_price",
        catalogue.money(switches * catalogue.server.price.0),
        "switches × server",
        format!("{switches} × {}", catalogue.server.price),
        "multi-host §III.A",
    )
}

/// Computes the floor area of the cabinets that hold `switches` devices of `rack_units` each.
///
/// # Panics
/// If a device is higher than a cabinet, which [`Catalogue::parse`] refuses.
pub fn racks_area(switches: u64, rack_units: u64, catalogue: &Catalogue) -> Derived<Area> {
    let per_rack = catalogue.rack.rack_units / rack_units;
    let racks = switches.div_ceil(per_rack);
    Derived::new(
        "rack_area",
        Area(racks * catalogue.rack.area().0),
        "⌈switches / switches a cabinet⌉ × width × depth",
        format!("⌈{switches} / {per_rack}⌉ × {} mm × {} mm", catalogue.rack.width, catalogue.rack.depth),
        "multi-host §III.B",
    )
}

/// Computes the ports in a rack unit of the multi-host device, over those of the server with adapters.
pub fn density_gain(catalogue: &Catalogue) -> Derived<Factor> {
    let (device, server) = (&catalogue.multi_host, &catalogue.server);
    Derived::new(
        "density_gain",
        Factor::of(device.ports * server.rack_units, device.rack_units * server.ports),
        "(ports / height) of the multi-host device / (ports / height) of the server",
        format!("({} / {}) / ({} / {})", device.ports, device.rack_units, server.ports, server.rack_units),
        "multi-host §II.C",
    )
}

/// A network of software switches and one of routers, with their costs.
#[derive(Clone, Debug, PartialEq)]
pub struct CostComparison {
    /// The planes of software switches.
    pub fabric: LeafSpineFabric,
    /// The routers to compare with.
    pub routers: Routers,
    /// Switches of the planes.
    pub switches: Derived<Count>,
    /// Host ports of a leaf over spines.
    pub oversubscription: Derived<Factor>,
    /// Price of the planes.
    pub fabric_price: Derived<Money>,
    /// Price of the routers.
    pub routers_price: Derived<Money>,
    /// Price of the routers over that of the planes: above 1 software switches are cheaper.
    pub price_ratio: Derived<Factor>,
    /// Floor of the planes.
    pub fabric_area: Derived<Area>,
    /// Floor of the planes if they are built of multi-host devices; `None` if these have too few ports.
    pub multi_host_area: Option<Derived<Area>>,
    /// Floor of the routers.
    pub routers_area: Derived<Area>,
    /// Floor of the planes over that of the routers: above 1 software switches take more room.
    pub area_ratio: Derived<Factor>,
}

/// Compares the two ways to provide `ports` ports for hosts.
///
/// # Errors
/// As for [`LeafSpineFabric::new`].
///
/// # Panics
/// If `ports` is zero.
pub fn compare(ports: u64, spines: u64, catalogue: &Catalogue) -> Result<CostComparison, LeafSpineError> {
    assert!(ports > 0, "a network without ports");
    let fabric = LeafSpineFabric::new(ports, catalogue.server.ports, spines)?;
    let routers = Routers::new(ports, catalogue);
    let switches = fabric.switches();
    let fabric_price = servers_price(switches.value.0, catalogue);
    let routers_price = routers.price(catalogue);
    let fabric_area = racks_area(switches.value.0, catalogue.server.rack_units, catalogue);
    let routers_area = routers.area(catalogue);
    // The number of spines is the same. A multi-host leaf cannot be built if its ports do not exceed the spines.
    let multi_host_area =
        LeafSpineFabric::new(ports, catalogue.multi_host.ports, spines).ok().map(|fabric| {
            racks_area(fabric.switches().value.0, catalogue.multi_host.rack_units, catalogue)
                .named("multi_host_area")
        });
    let price_ratio = Derived::new(
        "price_ratio",
        Factor::of(routers_price.value.hundredths, fabric_price.value.hundredths),
        "router price / server price",
        format!("{} / {}", brief(routers_price.value.clone()), brief(fabric_price.value.clone())),
        "multi-host §III.A.2",
    );
    let area_ratio = Derived::new(
        "area_ratio",
        Factor::of(fabric_area.value.0, routers_area.value.0),
        "rack area / router area",
        format!("{} / {}", brief(fabric_area.value), brief(routers_area.value)),
        "multi-host §III.B",
    );
    Ok(CostComparison {
        oversubscription: fabric.oversubscription(),
        fabric,
        routers,
        switches,
        fabric_price,
        routers_price,
        price_ratio,
        fabric_area,
        multi_host_area,
        routers_area,
        area_ratio,
    })
}

/// Compares every combination of port count and spines, with port counts in the outer loop. Combinations that cannot be built
/// are left out.
///
/// # Panics
/// If a port count is zero.
pub fn sweep(ports: &[u64], spines: &[u64], catalogue: &Catalogue) -> Vec<CostComparison> {
    let pairs = ports.iter().flat_map(|ports| spines.iter().map(move |spines| (*ports, *spines)));
    pairs.filter_map(|(ports, spines)| compare(ports, spines, catalogue).ok()).collect()
}

/// Writes the table of a sweep: a line for each combination, with aligned columns.
pub fn sweep_table(sweep: &[CostComparison]) -> String {
    use std::fmt::Write;

    let columns = [
        ("ports", ""),
        ("spines", ""),
        ("oversub", "scribed"),
        ("switches", ""),
        ("servers", "price"),
        ("routers", "price"),
        ("price", "ratio"),
        ("servers", "m2"),
        ("routers", "m2"),
        ("area", "ratio"),
    ];
    let mut table = String::new();
    let mut row = |cells: [&str; 10]| {
        let [a, b, c, d, e, f, g, h, i, j] = cells;
        writeln!(table, "{a:>6} {b:>6} {c:>8} {d:>8} {e:>15} {f:>15} {g:>6} {h:>8} {i:>8} {j:>6}")
            .expect("writing to a string");
    };
    row(columns.map(|(first, _)| first));
    row(columns.map(|(_, second)| second));
    for line in sweep {
        let factor = |factor: Factor| format!("{:.2}", factor.0.as_f64());
        let square_metres = |area: Area| format!("{:.2}", area.0 as f64 / 1e6);
        row([
            &line.fabric.ports.to_string(),
            &line.fabric.spines.to_string(),
            &format!("{}:1", factor(line.oversubscription.value)),
            &line.switches.value.0.to_string(),
            &brief(line.fabric_price.value.clone()),
            &brief(line.routers_price.value.clone()),
            &factor(line.price_ratio.value),
            &square_metres(line.fabric_area.value),
            &square_metres(line.routers_area.value),
            &factor(line.area_ratio.value),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_what_drawing_the_planes_gives() {
        for switch_ports in 2..12 {
            for spines in 1..switch_ports {
                let mut drawn = 0;
                let mut leaves = 0;
                for ports in 1..400 {
                    // Each port that does not fit needs a leaf, and the first leaf of a plane its spines.
                    if (ports - 1) % (switch_ports - spines) == 0 {
                        if leaves % switch_ports == 0 {
                            drawn += spines;
                        }
                        leaves += 1;
                        drawn += 1;
                    }
                    let fabric = LeafSpineFabric::new(ports, switch_ports, spines).unwrap();
                    assert_eq!(fabric.switches().value, Count(drawn), "{ports} {switch_ports} {spines}");
                }
            }
        }
    }

    #[test]
    fn impossible_planes_are_refused() {
        assert_eq!(LeafSpineFabric::new(10, 40, 0), Err(LeafSpineError::NoSpine));
        assert_eq!(
            LeafSpineFabric::new(10, 40, 40),
            Err(LeafSpineError::TooManySpines { spines: 40, switch_ports: 40 })
        );
    }

    #[test]
    fn the_table_of_a_sweep_is_aligned() {
        let catalogue = Catalogue::shipped();
        let table = sweep_table(&sweep(&[100, 800], &[6, 20, 40], &catalogue));
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 6, "{table}");
        assert!(
            lines.iter().all(|line| line.chars().count() == lines[2].len() && line.len() < 100),
            "{table}"
        );
    }
}
