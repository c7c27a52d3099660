//! The table of all requests. The server and the OpenAPI description use it.

use hyper::Method;
use schemars::{Schema, SchemaGenerator};

use crate::capture::{BYTES_DEFAULT, BYTES_MAX, SECONDS_DEFAULT, SECONDS_MAX, SNAP_MAX};
use crate::config::{Config, RingSpec, RuleSpec, StationSpec};
use crate::control::answer::{Answer, Refusal};
use crate::control::handlers::{
    self as handle, Health, PortItem, PortPatch, RingItem, RingPatch, RuleItem, Version,
};
use crate::control::operation::Operation;
use crate::control::query::{Parameter, ParameterKind, Query, decode};
use crate::snapshot::{Snapshot, Station};

/// A request after its checks: name, parameters and body.
#[derive(Debug)]
pub(crate) struct Call {
    /// The variable part of the path, decoded; empty where it has none.
    pub(crate) name: String,
    pub(crate) query: Query,
    pub(crate) body: Vec<u8>,
}

/// A request of the interface.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// The path; a part in braces stands for a name.
    pub(crate) path: &'static str,
    /// The route's operation ID in the OpenAPI description.
    pub(crate) id: &'static str,
    pub(crate) about: &'static str,
    pub(crate) query: &'static [Parameter],
    pub(crate) body: Option<fn(&mut SchemaGenerator) -> Schema>,
    pub(crate) answer: Content,
    /// The status of a successful answer.
    pub(crate) status: u16,
    /// Statuses of refusals, in addition to the common ones.
    pub(crate) refusals: &'static [u16],
    /// True if it needs no token.
    pub(crate) is_open: bool,
    pub(crate) handle: fn(&Operation, &Call) -> Result<Answer, Refusal>,
}

/// The content of an answer.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    Nothing,
    Json(fn(&mut SchemaGenerator) -> Schema),
    Text(&'static str),
}

/// Media type of a capture.
pub(crate) const PCAPNG: &str = "application/x-pcapng";
/// Media type of metrics (OpenMetrics 1.0).
pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const VLAN: Parameter = Parameter {
    name: "vlan",
    about: "The station's VLAN, if the switch separates VLANs.",
    kind: ParameterKind::Number { min: 0, max: 4094, default: 0 },
};
const OF_PORT: Parameter =
    Parameter { name: "port", about: "Only those of this port.", kind: ParameterKind::Text };

const CAPTURE: &[Parameter] = &[
    Parameter {
        name: "port",
        about: "The port to capture, both directions; this or `ring`.",
        kind: ParameterKind::Text,
    },
    Parameter {
        name: "ring",
        about: "The ring to capture, frames that it accepts; this or `port`.",
        kind: ParameterKind::Text,
    },
    Parameter {
        name: "seconds",
        about: "The longest duration of the capture, in seconds.",
        kind: ParameterKind::Number { min: 1, max: SECONDS_MAX, default: SECONDS_DEFAULT },
    },
    Parameter {
        name: "bytes",
        about: "The largest size of the capture, in bytes.",
        kind: ParameterKind::Number { min: 1024, max: BYTES_MAX, default: BYTES_DEFAULT },
    },
    Parameter {
        name: "snap",
        about: "Bytes of each frame that are kept.",
        kind: ParameterKind::Number { min: 14, max: SNAP_MAX, default: SNAP_MAX },
    },
];

/// Makes the route of a GET request with defaults.
fn get(path: &'static str, id: &'static str, about: &'static str, answer: Content, handle: Handler) -> Route {
    Route {
        method: Method::GET,
        path,
        id,
        about,
        query: &[],
        body: None,
        answer,
        status: 200,
        refusals: &[],
        is_open: false,
        handle,
    }
}

type Handler = fn(&Operation, &Call) -> Result<Answer, Refusal>;

/// Returns the table of all requests.
pub(crate) fn routes() -> Vec<Route> {
    use Content::{Json, Nothing, Text};
    vec![
        Route {
            is_open: true,
            ..get(
                "/healthz",
                "health",
                "Health: the data path answers.",
                Json(schema::<Health>),
                handle::health,
            )
        },
        Route {
            is_open: true,
            ..get(
                "/readyz",
                "ready",
                "Readiness: every port has a link. Otherwise 503 and the names of the ports without one.",
                Json(schema::<Health>),
                handle::ready,
            )
        },
        get(
            "/metrics",
            "metrics",
            "Metrics in the text format of OpenMetrics.",
            Text(OPENMETRICS),
            handle::metrics,
        ),
        get("/v1/openapi.json", "openapi", "This description.", Json(object), handle::openapi),
        get("/v1/version", "version", "Name and version.", Json(schema::<Version>), handle::version),
        get("/v1/config", "config", "The current configuration.", Json(schema::<Config>), handle::config),
        get(
            "/v1/snapshot",
            "snapshot",
            "All counters and high-water marks.",
            Json(schema::<Snapshot>),
            handle::snapshot,
        ),
        get("/v1/ports", "ports", "All ports.", Json(schema::<Vec<PortItem>>), handle::ports),
        Route {
            refusals: &[404],
            ..get("/v1/ports/{name}", "port", "One port.", Json(schema::<PortItem>), handle::port)
        },
        Route {
            method: Method::PATCH,
            body: Some(schema::<PortPatch>),
            refusals: &[404, 409, 422],
            ..get(
                "/v1/ports/{name}",
                "change_port",
                "Changes a port. Absent settings stay.",
                Json(schema::<PortItem>),
                handle::change_port,
            )
        },
        get("/v1/rings", "rings", "All rings.", Json(schema::<Vec<RingItem>>), handle::rings),
        Route {
            method: Method::POST,
            body: Some(schema::<RingSpec>),
            status: 201,
            refusals: &[404, 409, 422],
            ..get("/v1/rings", "add_ring", "Adds a ring.", Json(schema::<RingItem>), handle::add_ring)
        },
        Route {
            refusals: &[404],
            ..get("/v1/rings/{name}", "ring", "One ring.", Json(schema::<RingItem>), handle::ring)
        },
        Route {
            method: Method::PATCH,
            body: Some(schema::<RingPatch>),
            refusals: &[404, 409, 422],
            ..get(
                "/v1/rings/{name}",
                "change_ring",
                "Changes a ring. Absent settings stay, null removes a limit. Queued frames stay.",
                Json(schema::<RingItem>),
                handle::change_ring,
            )
        },
        Route {
            method: Method::DELETE,
            status: 204,
            refusals: &[404, 409],
            ..get(
                "/v1/rings/{name}",
                "remove_ring",
                "Removes a ring that no rule names, once it has drained.",
                Nothing,
                handle::remove_ring,
            )
        },
        get(
            "/v1/rules",
            "rules",
            "All rules, in the order in which they were written.",
            Json(schema::<Vec<RuleItem>>),
            handle::rules,
        ),
        Route {
            method: Method::POST,
            body: Some(schema::<RuleSpec>),
            status: 201,
            refusals: &[404, 409, 422],
            ..get(
                "/v1/rules",
                "add_rule",
                "Adds a rule, after those of its priority.",
                Json(schema::<RuleItem>),
                handle::add_rule,
            )
        },
        Route {
            refusals: &[404],
            ..get("/v1/rules/{name}", "rule", "One rule.", Json(schema::<RuleItem>), handle::rule)
        },
        Route {
            method: Method::DELETE,
            status: 204,
            refusals: &[404, 409],
            ..get("/v1/rules/{name}", "remove_rule", "Removes a rule.", Nothing, handle::remove_rule)
        },
        Route {
            query: &[OF_PORT],
            refusals: &[404],
            ..get(
                "/v1/stations",
                "stations",
                "The known stations.",
                Json(schema::<Vec<Station>>),
                handle::stations,
            )
        },
        Route {
            method: Method::POST,
            body: Some(schema::<StationSpec>),
            status: 204,
            refusals: &[404, 409, 422],
            ..get(
                "/v1/stations",
                "add_station",
                "Adds a station that is neither learned nor forgotten.",
                Nothing,
                handle::add_station,
            )
        },
        Route {
            method: Method::DELETE,
            query: &[OF_PORT],
            status: 204,
            refusals: &[404],
            ..get(
                "/v1/stations",
                "flush_stations",
                "Forgets learned stations.",
                Nothing,
                handle::flush_stations,
            )
        },
        Route {
            method: Method::DELETE,
            query: &[VLAN],
            status: 204,
            refusals: &[404, 422],
            ..get(
                "/v1/stations/{name}",
                "remove_station",
                "Forgets a station, named by its address.",
                Nothing,
                handle::remove_station,
            )
        },
        Route {
            method: Method::POST,
            status: 204,
            ..get(
                "/v1/marks/reset",
                "reset_marks",
                "Resets all high-water marks.",
                Nothing,
                handle::reset_marks,
            )
        },
        Route {
            query: CAPTURE,
            refusals: &[404, 429],
            ..get(
                "/v1/capture",
                "capture",
                "Captures a port or a ring as pcapng. The data path never waits: copies without room are dropped and counted in the capture's statistics.",
                Text(PCAPNG),
                handle::capture,
            )
        },
    ]
}

fn schema<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn object(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({"type": "object"})
}

/// The result of a look-up.
pub(crate) enum Found<'a> {
    /// A route, and the name in its path.
    Route(&'a Route, String),
    /// The path exists with these methods only.
    Methods(Vec<&'a Method>),
    /// No route has the path.
    Nothing,
}

/// Finds the route of a request.
///
/// # Errors
/// If a name in the path is not percent-encoded.
pub(crate) fn find<'a>(routes: &'a [Route], method: &Method, path: &str) -> Result<Found<'a>, Refusal> {
    let mut methods = Vec::new();
    for route in routes {
        let name = match route.path.strip_suffix("{name}") {
            // A name is one part of the path, and not empty.
            Some(prefix) => match path.strip_prefix(prefix) {
                Some(name) if !name.is_empty() && !name.contains('/') => name,
                _ => continue,
            },
            None if route.path == path => "",
            None => continue,
        };
        if route.method == method || (*method == Method::HEAD && route.method == Method::GET) {
            return Ok(Found::Route(route, decode(name, false)?));
        }
        methods.push(&route.method);
    }
    Ok(if methods.is_empty() { Found::Nothing } else { Found::Methods(methods) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capture::Captures;
    use crate::command::Control;

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z0-9-]{0,8}",
            "[ -~]{0,80}",
            Just("%41".to_owned()),
            Just("%f".to_owned()),
            Just("02:00:00:00:00:01".to_owned())
        ]
    }

    fn query() -> impl Strategy<Value = String> {
        let key = prop_oneof![
            Just("port"),
            Just("ring"),
            Just("seconds"),
            Just("bytes"),
            Just("snap"),
            Just("vlan"),
            Just("x")
        ];
        let value = prop_oneof!["[0-9]{0,22}", "[a-z%+&=]{0,6}", "[ -~]{0,70}"];
        proptest::collection::vec((key, value), 0..4).prop_map(|pairs| {
            pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("&")
        })
    }

    /// Valid bodies, and mutations of them.
    fn body() -> impl Strategy<Value = Vec<u8>> {
        let right = prop_oneof![
            Just(
                r#"{"name":"a","port":"p","bytes":"1 MiB","rate":"1 Gb/s","alarm":0.5,"ecn":{"mode":"threshold","threshold":"9 packets"}}"#
            ),
            Just(
                r#"{"name":"a","ring":"r","source_mac":"02:00:00:00:00:00/16","protocol":"tcp","source_port":"5-9"}"#
            ),
            Just(
                r#"{"rate":null,"frames":null,"priority":3,"impair":{"delay":"1 ms"},"storm":{"unknown":"1 Mb/s"}}"#
            ),
            Just(r#"{"mac":"02:00:00:00:00:01","port":"p","vlan":5}"#),
        ];
        let change = (
            any::<proptest::sample::Index>(),
            any::<proptest::sample::Index>(),
            "[ -~\\PC]{0,6}",
            any::<u8>(),
        );
        (right, proptest::option::of(change)).prop_map(|(text, change)| {
            let mut bytes = text.as_bytes().to_vec();
            if let Some((from, to, put, byte)) = change {
                let (a, b) = (from.index(bytes.len()), to.index(bytes.len()));
                bytes.splice(a.min(b)..a.max(b), put.bytes());
                if byte < 64 && !bytes.is_empty() {
                    let place = from.index(bytes.len());
                    bytes[place] = byte;
                }
            }
            bytes
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

        /// A stopped switch reads a whole request, but has no data path to ask.
        #[test]
        fn whatever_is_asked_gets_an_answer_that_the_table_promises(
            index in any::<proptest::sample::Index>(),
            name in name(),
            query in query(),
            body in body(),
        ) {
            let (control, _) = Control::new(Vec::new());
            let operation = Operation::new(control, Captures::new(0, 0));
            let routes = routes();
            let asked = index.get(&routes);
            let path = asked.path.replace("{name}", &name);
            let path = path.split(['?', '#']).next().unwrap_or_default();
            let refused = |refusal: Refusal| refusal.status().as_u16();
            let answered = match find(&routes, &asked.method, path) {
                Err(refusal) => refused(refusal),
                Ok(Found::Nothing) => 404,
                Ok(Found::Methods(_)) => 405,
                Ok(Found::Route(route, name)) => match Query::parse(Some(&query), route.query) {
                    Err(refusal) => refused(refusal),
                    Ok(query) => match (route.handle)(&operation, &Call { name, query, body }) {
                        Ok(_) => route.status,
                        Err(refusal) => refused(refusal),
                    },
                },
            };
            let promised = [400, 404, 405, 503, asked.status].contains(&answered) || asked.refusals.contains(&answered);
            prop_assert!(promised, "{} {path}?{query}: {answered}", asked.method);
        }
    }
}
