//! The OpenAPI description (3.1), made from the table of routes and the types of request bodies.

use hyper::StatusCode;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::control::answer::Refusal;
use crate::control::query::ParameterKind;
use crate::control::routes::{Content, Route, routes};

/// Makes the description of all requests.
pub fn description() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
        let operation = operation(&route, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Fanin switch",
            "description": "Control of a running `fanin switch`: the same over its local socket and over HTTP.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {
                "type": "http",
                "scheme": "bearer",
                "description": "Needed over HTTP where the configuration names a token; never over the local socket.",
            }},
        },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    if route.path.contains("{name}") {
        parameters.push(
            json!({"name": "name", "in": "path", "required": true, "schema": ParameterKind::Text.schema()}),
        );
    }
    for parameter in route.query {
        parameters.push(json!({
            "name": parameter.name, "in": "query", "description": parameter.about, "schema": parameter.kind.schema(),
        }));
    }
    let mut responses = Map::new();
    let mut good = json!({"description": describe(route.status)});
    match route.answer {
        Content::Nothing => {}
        Content::Json(schema) => good["content"] = json!({"application/json": {"schema": schema(generator)}}),
        Content::Text(kind) => {
            let kind = kind.split(';').next().unwrap_or(kind);
            good["content"] = json!({kind: {"schema": {"type": "string"}}});
        }
    }
    responses.insert(route.status.to_string(), good);
    let problem: Schema = generator.subschema_for::<Refusal>();
    // Any request may fail with these: a wrong parameter, a missing token, a foreign origin, a stopped switch.
    let mut refusals = vec![400, 401, 403, 503];
    if route.body.is_some() {
        refusals.extend([408, 413, 415]);
    }
    refusals.extend(route.refusals);
    refusals.sort_unstable();
    for status in refusals {
        let content = json!({"application/problem+json": {"schema": problem}});
        responses.insert(status.to_string(), json!({"description": describe(status), "content": content}));
    }
    let mut operation = json!({"operationId": route.id, "summary": route.about, "responses": responses});
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = route.body {
        let content = json!({"application/json": {"schema": body(generator)}});
        operation["requestBody"] = json!({"required": true, "content": content});
    }
    if route.is_open {
        operation["security"] = json!([]);
    }
    operation
}

fn describe(status: u16) -> &'static str {
    StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("An answer")
}
