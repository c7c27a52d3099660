//! The columns of a row. Writing and reading both use this table.

use std::sync::Arc;

use crate::{EventOutcome, EventRow, FlowRow, IoRow, QueueRow, WindowRow};

/// The value of a table's cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Number(u64),
    Maybe(Option<u64>),
    Name(Arc<str>),
}

/// A type of value that a table's cell can hold.
pub(crate) trait Field: Sized {
    fn to_cell(&self) -> Cell;
    /// Converts a cell to the field's value; `None` if it does not fit.
    fn from_cell(cell: Cell) -> Option<Self>;
}

impl Field for u64 {
    fn to_cell(&self) -> Cell {
        Cell::Number(*self)
    }
    fn from_cell(cell: Cell) -> Option<Self> {
        if let Cell::Number(value) = cell { Some(value) } else { None }
    }
}

impl Field for u32 {
    fn to_cell(&self) -> Cell {
        Cell::Number(u64::from(*self))
    }
    fn from_cell(cell: Cell) -> Option<Self> {
        if let Cell::Number(value) = cell { value.try_into().ok() } else { None }
    }
}

impl Field for Option<u64> {
    fn to_cell(&self) -> Cell {
        Cell::Maybe(*self)
    }
    fn from_cell(cell: Cell) -> Option<Self> {
        if let Cell::Maybe(value) = cell { Some(value) } else { None }
    }
}

impl Field for Arc<str> {
    fn to_cell(&self) -> Cell {
        Cell::Name(self.clone())
    }
    fn from_cell(cell: Cell) -> Option<Self> {
        if let Cell::Name(value) = cell { Some(value) } else { None }
    }
}

impl Field for EventOutcome {
    fn to_cell(&self) -> Cell {
        Cell::Name(self.name().into())
    }
    fn from_cell(cell: Cell) -> Option<Self> {
        let Cell::Name(name) = cell else { return None };
        Self::ALL.into_iter().find(|outcome| outcome.name() == &*name)
    }
}

/// One column: its name, its unit (also in Arrow's metadata), and the functions that read and write its field of a row.
pub(crate) struct Column<R> {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) read: fn(&R) -> Cell,
    /// Writes a cell to the field. Returns false if the cell does not fit.
    pub(crate) write: fn(&mut R, Cell) -> bool,
}

/// A kind of row with its own file.
pub(crate) trait Table: Default + Clone + 'static {
    const FILE: &'static str;
    const SCHEMA: &'static str;
    const COLUMNS: &'static [Column<Self>];
}

/// The unit of identifiers, which are 64-bit patterns and not quantities. Such columns are unsigned in the file.
pub(crate) const ID: &str = "id";

macro_rules! table {
    ($row:ident, $file:literal, $schema:literal, [$($field:ident: $unit:expr,)*]) => {
        impl Table for $row {
            const FILE: &'static str = $file;
            const SCHEMA: &'static str = $schema;
            const COLUMNS: &'static [Column<Self>] = &[$(Column {
                name: stringify!($field),
                unit: $unit,
                read: |row| row.$field.to_cell(),
                write: |row, cell| Field::from_cell(cell).map(|value| row.$field = value).is_some(),
            },)*];
        }
    };
}

#[cfg(test)]
pub(crate) use table;

table!(EventRow, "events.parquet", "fanin.events/1", [
    id: ID,
    size_bytes: "bytes",
    assigned_ps: "ps",
    first_request_ps: "ps",
    last_byte_ps: "ps",
    collection_time_ps: "ps",
    ideal_ps: "ps",
    timeouts: "count",
    collector: "number",
    rack: "number",
    unit: "number",
    outcome: "name",
]);

table!(QueueRow, "queues.parquet", "fanin.queues/1", [
    queue: "name",
    time_ps: "ps",
    queue_bytes: "bytes",
    queue_frames: "frames",
    drops: "frames",
    ecn_marks: "frames",
    limit_bytes: "bytes",
]);

table!(FlowRow, "flows.parquet", "fanin.flows/1", [
    flow: ID,
    source: "name",
    destination: "name",
    acked_bytes: "bytes",
    segments: "count",
    retransmits: "count",
    timeouts: "count",
    fast_retransmits: "count",
    spurious_retransmits: "count",
    cwnd_packets_max: "packets",
    rtt_min_ps: "ps",
    rtt_smoothed_ps: "ps",
]);

table!(IoRow, "io.parquet", "fanin.io/1", [
    event: ID,
    since_request_ps: "ps",
    to_collector_bytes: "bytes",
    from_collector_bytes: "bytes",
]);

table!(WindowRow, "windows.parquet", "fanin.windows/1", [
    flow: ID,
    time_ps: "ps",
    cwnd_bytes: "bytes",
    rwnd_bytes: "bytes",
    in_flight_bytes: "bytes",
]);

#[cfg(test)]
mod tests {
    use super::*;

    fn units_stand_in_names<R: Table>() {
        for column in R::COLUMNS {
            let suffix = match column.unit {
                "ps" => "_ps",
                "bytes" => "_bytes",
                _ => continue,
            };
            assert!(column.name.ends_with(suffix), "{}: {}", R::FILE, column.name);
        }
    }

    #[test]
    fn a_unit_is_part_of_the_name() {
        units_stand_in_names::<EventRow>();
        units_stand_in_names::<QueueRow>();
        units_stand_in_names::<FlowRow>();
        units_stand_in_names::<IoRow>();
        units_stand_in_names::<WindowRow>();
    }

    #[test]
    fn a_cell_goes_back_into_its_field_or_is_refused() {
        let row = EventRow { id: 7, rack: 3, outcome: EventOutcome::Stored, ..EventRow::default() };
        let mut copy = EventRow::default();
        for column in EventRow::COLUMNS {
            assert!((column.write)(&mut copy, (column.read)(&row)));
        }
        assert_eq!(row, copy);
        let rack = EventRow::COLUMNS.iter().find(|column| column.name == "rack").unwrap();
        assert!(!(rack.write)(&mut copy, Cell::Number(1 << 32)));
        let outcome = EventRow::COLUMNS.iter().find(|column| column.name == "outcome").unwrap();
        assert!(!(outcome.write)(&mut copy, Cell::Name("vanished".into())));
    }
}
