//! JSON Schemas of types that a configuration writes as text.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::address::{IpPrefix, Mac, MacPrefix, Vlan};
use crate::config::{PortRange, Protocol};

macro_rules! schemas {
    ($($name:ident: $schema:tt;)*) => {$(
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

schemas! {
    Mac: {
        "type": "string",
        "pattern": "^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}$",
        "examples": ["02:00:00:00:00:07"],
    };
    MacPrefix: {
        "type": "string",
        "pattern": "^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}(/[0-9]{1,2})?$",
        "examples": ["02:1b:00:00:00:00/16"],
    };
    IpPrefix: {
        "type": "string",
        "pattern": "^[0-9a-fA-F.:]+(/[0-9]{1,3})?$",
        "examples": ["10.0.7.0/24", "fd00::/8"],
    };
    Vlan: {"type": "integer", "minimum": 1, "maximum": 4094};
    Protocol: {
        "anyOf": [
            {"type": "string", "enum": ["tcp", "udp", "icmp", "icmpv6"]},
            {"type": "integer", "minimum": 0, "maximum": 255},
        ],
    };
    PortRange: {
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 65535},
            {"type": "string", "pattern": "^[0-9]{1,5}-[0-9]{1,5}$", "examples": ["5000-5063"]},
        ],
    };
}
