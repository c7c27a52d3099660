//! Checks of a `config_db.json`: tables, rows and keys that the reader does not take are named.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::draft::Draft;
use super::error::{ImportError, list};
use crate::de::nearest;

/// Keys of one table.
struct TableKeys {
    table: &'static str,
    /// Keys that are read, or refused with a reason of their own.
    read: &'static [&'static str],
    /// Keys of SONiC that are not read, because they do not affect the imported settings.
    unread: &'static [&'static str],
    /// The reason for which `unread` keys are not read; empty if these keys need no mention.
    why: &'static str,
    /// True if the name of a row is `PORT|QUEUE`.
    is_by_queue: bool,
}

const TABLE_KEYS: [TableKeys; 8] = [
    TableKeys {
        table: "DEVICE_METADATA",
        read: &["hostname"],
        unread: &[],
        why: "not about buffers, PFC, ECN or rates of ports; only hostname is read",
        is_by_queue: false,
    },
    TableKeys {
        table: "BUFFER_POOL",
        read: &["size", "xoff"],
        unread: &["type", "mode"],
        why: "",
        is_by_queue: false,
    },
    TableKeys {
        table: "BUFFER_PROFILE",
        read: &["pool", "size", "dynamic_th", "static_th", "xoff", "xon", "xon_offset"],
        unread: &[],
        why: "",
        is_by_queue: false,
    },
    TableKeys { table: "BUFFER_PG", read: &["profile"], unread: &[], why: "", is_by_queue: true },
    TableKeys { table: "BUFFER_QUEUE", read: &["profile"], unread: &[], why: "", is_by_queue: true },
    TableKeys {
        table: "PORT_QOS_MAP",
        read: &["pfc_enable"],
        unread: &[
            "dot1p_to_tc_map",
            "dscp_to_fc_map",
            "dscp_to_tc_map",
            "exp_to_fc_map",
            "mpls_tc_to_tc_map",
            "pfc_to_pg_map",
            "pfc_to_queue_map",
            "pfcwd_sw_enable",
            "scheduler",
            "tc_to_dot1p_map",
            "tc_to_dscp_map",
            "tc_to_pg_map",
            "tc_to_queue_map",
        ],
        why: "the traffic of a scenario has one class; only pfc_enable is read",
        is_by_queue: false,
    },
    TableKeys {
        table: "WRED_PROFILE",
        read: &[
            "ecn",
            "wred_green_enable",
            "green_min_threshold",
            "green_max_threshold",
            "green_drop_probability",
            "wred_yellow_enable",
            "yellow_min_threshold",
            "yellow_max_threshold",
            "yellow_drop_probability",
            "wred_red_enable",
            "red_min_threshold",
            "red_max_threshold",
            "red_drop_probability",
        ],
        unread: &[],
        why: "",
        is_by_queue: false,
    },
    TableKeys {
        table: "QUEUE",
        read: &["wred_profile"],
        unread: &["scheduler"],
        why: "a port of a scenario serves one queue; only wred_profile is read",
        is_by_queue: true,
    },
];

/// Refuses a table or a row of another shape, which the reader would take for an empty one.
pub(super) fn assert_shape(tree: &Map<String, Value>) -> Result<(), ImportError> {
    for table in super::sonic::TABLES {
        let Some(rows) = tree.get(table) else { continue };
        let rows = rows.as_object().ok_or_else(|| {
            ImportError::Key(table.to_owned(), "an object of rows, such as {\"NAME\": {…}}")
        })?;
        for (row, fields) in rows {
            if !fields.is_object() {
                return Err(ImportError::Key(format!("{table}|{row}"), "an object of keys"));
            }
        }
    }
    Ok(())
}

/// Notes each key, and each row without a queue, that the reader does not take.
pub(super) fn name_unread(tree: &Map<String, Value>, draft: &mut Draft) {
    for keys in &TABLE_KEYS {
        let Some(rows) = tree.get(keys.table).and_then(Value::as_object) else { continue };
        if keys.is_by_queue {
            name_rows_without_queue(keys.table, rows, draft);
        }
        // Rows by key: a key of many ports is one line.
        let mut unknown: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut unread: BTreeSet<&str> = BTreeSet::new();
        for (row, fields) in rows {
            for key in fields.as_object().into_iter().flat_map(Map::keys).map(String::as_str) {
                if keys.read.contains(&key) {
                    continue;
                }
                // All keys of this table are about other subjects.
                if keys.unread.contains(&key) || keys.table == "DEVICE_METADATA" {
                    unread.insert(key);
                } else {
                    unknown.entry(key).or_default().push(row.clone());
                }
            }
        }
        if !unread.is_empty() && !keys.why.is_empty() {
            let unread: Vec<&str> = unread.into_iter().collect();
            draft.refuse(format!("{}.*: {}", keys.table, unread.join(", ")), keys.why);
        }
        for (key, rows) in unknown {
            let meant = nearest(key, keys.read.iter().copied());
            let meant = meant.map_or_else(String::new, |name| format!("Did you mean `{name}`? "));
            let verb = if keys.read.len() == 1 { "Only this key is read" } else { "These keys are read" };
            let read = format!("{verb}: {}", keys.read.join(", "));
            let [row] = rows.as_slice() else {
                let why = format!("unknown key, in the rows {}. {meant}{read}", list(&rows));
                draft.refuse(format!("{}.*.{key}", keys.table), why);
                continue;
            };
            draft.refuse(format!("{}|{row}|{key}", keys.table), format!("unknown key. {meant}{read}"));
        }
    }
}

/// Notes the rows with names that do not end in a queue or a range of queues.
fn name_rows_without_queue(table: &str, rows: &Map<String, Value>, draft: &mut Draft) {
    let is_range =
        |row: &str| row.rsplit_once('|').is_some_and(|(_, range)| super::sonic::ends(range).is_some());
    for row in rows.keys().filter(|row| !is_range(row)) {
        let why = "not read: the name of a row is PORT|QUEUE or PORT|FIRST-LAST, such as Ethernet0|3-4";
        draft.refuse(format!("{table}|{row}"), why);
    }
}
