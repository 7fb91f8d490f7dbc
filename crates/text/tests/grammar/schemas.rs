//! JSON schemas, regular expressions and Lark.

use serde_json::{Value, json};
use turbospark_text::{Constraints, Grammar, GrammarError};

use crate::{accepts, allowed, bytes::tokenizer};

const CONTROL: [&str; 1] = ["<|im_end|>"];

fn constraints() -> Constraints {
    Constraints::new(&tokenizer(&CONTROL)).unwrap()
}

fn schema(schema: &Value) -> Grammar {
    Grammar::json_schema(schema).unwrap()
}

#[test]
fn a_schema_allows_what_satisfies_it_and_nothing_else() {
    let c = constraints();
    let g = schema(&json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 4},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "kind": {"enum": ["cat", "dog"]},
            "next": {"$ref": "#/$defs/next"}
        },
        "required": ["name", "kind"], "additionalProperties": false,
        "$defs": {"next": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "boolean"}}]}}
    }));
    for good in [
        r#"{"name": "é1", "age": 150, "kind": "cat", "next": [true, false]}"#,
        r#"{"name":"","kind":"dog"}"#,
        "{\n  \"name\": \"a\\n\",\n  \"kind\": \"dog\",\n  \"next\": null\n}",
    ] {
        assert!(accepts(&c, &CONTROL, &g, good), "{good}");
    }
    for bad in [
        r#"{"name": "a", "age": 151, "kind": "cat"}"#,
        r#"{"name": "abcde", "kind": "cat"}"#,
        r#"{"name": "a", "kind": "cow"}"#,
        r#"{"kind": "cat"}"#,
        r#"{"name": "a", "kind": "cat", "x": 1}"#,
        r#"{"name": "a""#,
        "text",
    ] {
        assert!(!accepts(&c, &CONTROL, &g, bad), "{bad}");
    }
    assert!(accepts(&c, &CONTROL, &Grammar::json_object(), r#"{"a": [1, {"b": null}]}"#));
    assert!(!accepts(&c, &CONTROL, &Grammar::json_object(), "[1]"));
}

#[test]
fn stop_tokens_are_allowed_exactly_where_the_text_may_end() {
    let c = constraints();
    let mut m = c.start(&Grammar::regex("ab?").unwrap()).unwrap();
    assert_eq!(allowed(&mut m), [u32::from(b'a')]);
    assert_eq!(m.forced_bytes(), b"a");
    assert!(!m.is_accepting());
    m.accept(u32::from(b'a')).unwrap();
    assert!(m.is_accepting());
    assert_eq!(allowed(&mut m), [u32::from(b'b'), 256]);
    assert_eq!(m.accept(u32::from(b'c')), Err(GrammarError::Rejected { token: u32::from(b'c') }));
    m.accept(u32::from(b'b')).unwrap();
    assert_eq!(allowed(&mut m), [256]);
    m.accept(256).unwrap();
    assert!(m.is_finished());
    assert_eq!(allowed(&mut m), [256]);
    assert_eq!(m.accept(5), Err(GrammarError::Rejected { token: 5 }));
    assert_eq!(m.accept(u32::MAX), Err(GrammarError::Rejected { token: u32::MAX }));
}

#[test]
fn white_space_in_json_is_what_printers_write() {
    let c = constraints();
    let g = schema(&json!({"type": "array"}));
    for fine in ["[1,2]", "[1, 2]", "[\n  1,\n  2\n]", "[\n\t1,\n\t2\n]", "[\n                1\n]"] {
        assert!(accepts(&c, &CONTROL, &g, fine), "{fine:?}");
    }
    for endless in ["[1,  2]", "[1,\n\n2]", "[1,\n                 2]"] {
        assert!(!accepts(&c, &CONTROL, &g, endless), "{endless:?}");
    }
}

#[test]
fn lark_grammars_work() {
    let c = constraints();
    let g = Grammar::lark("start: item (\",\" item)*\nitem: /[0-9]+/ | \"x\" %json {\"type\": \"boolean\"}")
        .unwrap();
    assert!(accepts(&c, &CONTROL, &g, "12,xtrue,3"));
    assert!(!accepts(&c, &CONTROL, &g, "12,xnull"));
}

#[test]
fn errors_name_the_place() {
    let c = constraints();
    let fault = |s: &Value| c.start(&schema(s)).map(|_| ()).expect_err(&s.to_string());
    for (s, want) in [
        (json!({"properties": {"a": {"type": "array", "items": {"type": "strin"}}}}), "#/properties/a/items"),
        (json!({"properties": {"a": {"type": "string", "pattern": "["}}}), "#/properties/a"),
        (json!({"properties": {"a": {"$ref": "#/$defs/none"}}}), "#/properties/a"),
        (
            json!({"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 5, "maximum": 4}}),
            "#/items",
        ),
        (json!({"type": "object", "properties": {"a": false}, "required": ["a"]}), "#"),
    ] {
        match fault(&s) {
            GrammarError::Schema { place, reason } => {
                assert!(place.starts_with(want), "{s}: {place}: {reason}");
                assert!(!reason.is_empty());
            }
            other => panic!("{s}: {other}"),
        }
    }
    let error = c.start(&Grammar::regex("a(").unwrap()).unwrap_err();
    assert!(matches!(error, GrammarError::Syntax { kind: "regular expression", .. }), "{error}");
    let error = c.start(&Grammar::lark("start: foo").unwrap()).unwrap_err();
    assert!(
        matches!(error, GrammarError::Syntax { kind: "grammar", .. }) && error.to_string().contains("foo"),
        "{error}"
    );
    assert!(Grammar::json_schema(&json!("x")).is_err());
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({"type": "null"}), |inner, _| json!({"type": "array", "items": inner}))
}

#[test]
fn hostile_grammars_are_errors_and_never_hang() {
    let c = constraints();
    assert!(matches!(Grammar::json_schema(&nested(80)), Err(GrammarError::TooLarge { .. })));
    assert!(c.start(&schema(&nested(30))).is_ok());
    let many: Vec<String> = (0..5_000).map(|i| format!("w{i}")).collect();
    assert!(
        matches!(Grammar::json_schema(&json!({ "enum": many })), Err(GrammarError::TooLarge { place, .. }) if place == "#/enum")
    );
    let some: Vec<String> = (0..1_900).map(|i| format!("word {i}")).collect();
    assert!(accepts(&c, &CONTROL, &schema(&json!({ "enum": some })), "\"word 1899\""));
    let wide: serde_json::Map<String, Value> = (0..30_000).map(|i| (format!("k{i}"), json!({}))).collect();
    assert!(Grammar::json_schema(&json!({ "properties": wide })).is_err());
    let huge = json!({"type": "array", "maxItems": 1_000_000_000, "items": {}});
    assert!(matches!(Grammar::json_schema(&huge), Err(GrammarError::TooLarge { .. })));
    assert!(Grammar::regex(&"a".repeat(1 << 20)).is_err());
    let all = json!({"allOf": (0..300).map(|i| json!({"pattern": format!("a{i}")})).collect::<Vec<_>>()});
    assert!(
        matches!(Grammar::json_schema(&all), Err(GrammarError::TooLarge { place, .. }) if place == "#/allOf")
    );
    let endless = c.start(&schema(&json!({"$ref": "#"}))).unwrap_err();
    assert!(matches!(endless, GrammarError::Schema { .. }), "{endless}");

    let chain: serde_json::Map<String, Value> = (0..4_000)
        .map(|i| {
            (format!("d{i}"), json!({"type": "array", "items": {"$ref": format!("#/$defs/d{}", i + 1)}}))
        })
        .chain([("d4000".to_owned(), json!({}))])
        .collect();
    let mut tried = vec![
        schema(&json!({"$ref": "#/$defs/d0", "$defs": chain})),
        schema(&json!({"$ref": "#"})),
        schema(&json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"})),
        schema(
            &json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
        ),
        schema(&json!({"type": "string", "pattern": "^(a+)+(b|c){1,900}$"})),
        schema(&json!({"type": "string", "minLength": 9_999, "maxLength": 10_000})),
        schema(&json!({"type": "array", "minItems": 9_999, "items": {"type": "integer", "multipleOf": 7}})),
        schema(&json!({"allOf": (0..8).map(|i| json!({"pattern": format!("a{i}")})).collect::<Vec<_>>()})),
        schema(
            &json!({"oneOf": (0..30).map(|i| json!({"type": "string", "pattern": format!("[a-z]*x{i}")})).collect::<Vec<_>>()}),
        ),
    ];
    for pattern in [
        "(((a{1,100}){1,100}){1,100}){1,100}",
        "(a|aa|aaa)*b{5000}",
        "(.*a){40}",
        &"(".repeat(60_000),
        &"(a".repeat(2_000),
        &format!("{}{}", "(".repeat(5_000), ")*".repeat(5_000)),
        &"(a*)*".repeat(5_000),
        "[\u{0}-\u{10ffff}]{1000}",
    ] {
        tried.push(Grammar::regex(pattern).unwrap());
    }
    tried.push(Grammar::lark(&format!("start: {}", "(".repeat(60_000))).unwrap());
    tried.push(Grammar::lark(&format!("start: {} \"a\" {}", "(".repeat(8_000), ")?".repeat(8_000))).unwrap());
    tried.push(Grammar::lark("start: start start | \"a\" |").unwrap());
    tried.push(
        Grammar::lark(
            &(0..3_000)
                .map(|i| format!("r{i}: r{} r{}\n", i + 1, i + 1))
                .chain(["r3000: \"a\"\nstart: r0".into()])
                .collect::<String>(),
        )
        .unwrap(),
    );
    for grammar in &tried {
        let started = c.start(grammar);
        if let Ok(mut matcher) = started {
            for _ in 0..20 {
                let Ok(mask) = matcher.mask() else { break };
                let first = mask.iter().position(|word| *word != 0);
                let Some(word) = first else { break };
                let token = word as u32 * 32 + mask[word].trailing_zeros();
                if matcher.accept(token).is_err() {
                    break;
                }
            }
        }
    }
}
