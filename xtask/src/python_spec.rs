//! `cargo xtask python-spec`: the specs of models as Python classes, from the schema of the Rust ones.

use crate::checks::root;
use anyhow::{Context, Result, ensure};
use convgp::ModelSpec;
use serde_json::{Map, Value};
use std::fmt::Write;

/// The file that is generated and checked in.
const FILE: &str = "python/convgp/_spec_types.py";
const HEAD: &str = "\"\"\"The parts of a model's spec: views, kernels, likelihoods, components.\n\n\
    Generated from the Rust specs by ``cargo xtask python-spec``; changes here are lost.\n\"\"\"\n\n\
    from __future__ import annotations\n\n\
    from dataclasses import KW_ONLY, dataclass\n\
    from typing import Any, Literal, Mapping, Sequence\n\n\
    from ._spec import Kernel, Spec\n";
/// Enums of parts, and the class that their variants are.
const PARTS: [(&str, &str); 3] = [("ViewSpec", "Spec"), ("KernelSpec", "Kernel"), ("LikelihoodSpec", "Spec")];
/// Structs under their Python names.
const STRUCTS: [(&str, &str); 7] = [
    ("TargetUnits", "TargetUnits"),
    ("Dims", "Dims"),
    ("Contrast", "Contrast"),
    ("PatchTransform", "PatchTransform"),
    ("Pooling", "Pooling"),
    ("ComponentSpec", "Component"),
    ("ModelSpec", "ModelSpec"),
];
/// Classes for fields that several parts have: name, what is said of it, and the first of these parts.
const BASES: [(&str, &str, &str); 2] = [
    ("Radial", "A kernel of the distance between views.", "rbf"),
    ("Combined", "A kernel made of others.", "sum"),
];
/// A struct, a table in it whose fields stand beside those of the struct, and those of them that Python calls otherwise.
type Table = (&'static str, &'static str, &'static [(&'static str, &'static str)]);
const TABLES: [Table; 2] =
    [("ComponentSpec", "inducing", &[("count", "inducing")]), ("ModelSpec", "posterior", &[])];

/// Writes the file anew.
pub fn write() -> Result<()> {
    Ok(std::fs::write(root()?.join(FILE), generate()?)?)
}

/// Fails if the file is not what the code says.
pub fn check() -> Result<()> {
    let kept = std::fs::read_to_string(root()?.join(FILE)).with_context(|| FILE.to_string())?;
    ensure!(generate()? == kept, "{FILE} is not what the code says; run `cargo xtask python-spec`");
    Ok(())
}

fn generate() -> Result<String> {
    let schema = schemars::schema_for!(ModelSpec).to_value();
    let mut types = schema["$defs"].as_object().context("a schema with definitions")?.clone();
    types.insert("ModelSpec".into(), schema);
    let schema = Schema { types };
    let mut out = HEAD.to_string();
    let (small, large) = STRUCTS.split_at(STRUCTS.len() - 2);
    small.iter().try_for_each(|(rust, python)| schema.struct_class(&mut out, rust, python))?;
    for (name, base) in PARTS {
        for variant in schema.variants(name) {
            schema.variant_class(&mut out, variant, base, name)?;
        }
    }
    large.iter().try_for_each(|(rust, python)| schema.struct_class(&mut out, rust, python))?;
    Ok(out)
}

/// All types by name.
struct Schema {
    types: Map<String, Value>,
}

/// A field of a Python class.
#[derive(PartialEq)]
struct Field {
    name: String,
    of_type: String,
    /// `None` for one that must be given.
    default: Option<String>,
    /// Its place among those that must be given.
    place: Option<usize>,
    about: String,
}

impl Schema {
    fn variants(&self, name: &str) -> &[Value] {
        self.types.get(name).and_then(|t| t["oneOf"].as_array()).map_or(&[], Vec::as_slice)
    }

    fn target(&self, node: &Value) -> Option<(&str, &Value)> {
        let name = node["$ref"].as_str()?.rsplit('/').next()?;
        self.types.get_key_value(name).map(|(name, node)| (name.as_str(), node))
    }

    fn struct_class(&self, out: &mut String, rust: &str, python: &str) -> Result<()> {
        let node = self.types.get(rust).with_context(|| format!("no type {rust}"))?;
        let mut fields = Vec::new();
        let mut tables = Vec::new();
        for field in self.fields(node) {
            let Some((_, table, names)) =
                TABLES.iter().find(|(r, t, _)| (*r, *t) == (rust, field.name.as_str()))
            else {
                fields.push(field);
                continue;
            };
            let (_, inner) = self.target(&node["properties"][table]).context("a table is a type")?;
            let mut members = Vec::new();
            for inner in self.fields(inner) {
                let here = names.iter().find(|(there, _)| *there == inner.name).map(|(_, here)| *here);
                let here = here.unwrap_or(&inner.name).to_string();
                members.push(format!("\"{here}\": \"{}\"", inner.name));
                fields.push(Field { name: here, place: field.place, ..inner });
            }
            tables.push(format!("\"{table}\": {{{}}}", members.join(", ")));
        }
        let attribute = if tables.is_empty() {
            String::new()
        } else {
            format!("    _tables = {{{}}}\n", tables.join(", "))
        };
        class(out, python, "Spec", &about(node), &attribute, fields)
    }

    fn variant_class(&self, out: &mut String, variant: &Value, base: &str, part: &str) -> Result<()> {
        let kind = tag(variant).context("a variant has a type")?;
        let fields_of = |variant: &Value| {
            let inner = self.target(variant).into_iter().flat_map(|(_, payload)| self.fields(payload));
            self.fields(variant).into_iter().chain(inner).collect::<Vec<_>>()
        };
        let first = |kind: &str| self.variants(part).iter().find(|v| tag(v) == Some(kind));
        let attribute = format!("    _type = \"{kind}\"\n");
        let shared =
            BASES.iter().find(|(.., of)| first(of).is_some_and(|v| fields_of(v) == fields_of(variant)));
        let Some((shared, what, of)) = shared else {
            return class(out, &class_name(kind), base, &about(variant), &attribute, fields_of(variant));
        };
        if *of == kind {
            class(out, shared, base, what, "", fields_of(variant))?;
        }
        let about = format!("{} Fields are those of ``{shared}``.", about(variant));
        class(out, &class_name(kind), shared, &about, &attribute, Vec::new())
    }

    fn fields(&self, node: &Value) -> Vec<Field> {
        let required = node["required"].as_array().map_or(&[][..], Vec::as_slice);
        let field = |(name, property): (&String, &Value)| {
            let place = required.iter().position(|n| n == name);
            let (name, of_type) = match name.as_str() {
                "image" => ("image_shape", "tuple[int, ...]".into()),
                "jitter" => ("jitter", "float | Mapping[str, float]".into()),
                name => (name, self.python_type(property)),
            };
            let default = property.get("default").map_or("None".into(), literal);
            let default = place.is_none().then_some(default);
            Field { name: name.into(), of_type, default, place, about: about(property) }
        };
        let properties = node["properties"].as_object();
        properties.into_iter().flatten().filter(|(name, _)| *name != "type").map(field).collect()
    }

    /// The type of a value, as Python writes it.
    fn python_type(&self, node: &Value) -> String {
        let mut names = Vec::new();
        self.collect(node, &mut names);
        let (constants, mut names): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|n| n.starts_with('"'));
        if !constants.is_empty() {
            names.insert(0, format!("Literal[{}]", constants.join(", ")));
        }
        let mut seen = Vec::new();
        names.retain(|name| {
            !seen.contains(name) && {
                seen.push(name.clone());
                true
            }
        });
        names.join(" | ")
    }

    fn collect(&self, node: &Value, into: &mut Vec<String>) {
        if let Some((name, target)) = self.target(node) {
            match name {
                "KernelSpec" => into.push("Kernel".into()),
                _ if PARTS.iter().any(|(part, _)| *part == name) => {
                    into.extend(self.variants(name).iter().filter_map(tag).map(class_name));
                }
                _ => match STRUCTS.iter().find(|(rust, _)| *rust == name) {
                    Some((_, python)) => into.extend([python.to_string(), "Mapping[str, Any]".into()]),
                    None => self.collect(target, into),
                },
            }
            return;
        }
        for word in ["anyOf", "oneOf", "enum"] {
            for choice in node[word].as_array().into_iter().flatten() {
                match choice {
                    Value::String(constant) => into.push(format!("\"{constant}\"")),
                    choice => self.collect(choice, into),
                }
            }
        }
        if let Some(constant) = node["const"].as_str() {
            into.push(format!("\"{constant}\""));
            return;
        }
        let kinds = match &node["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            kind => kind.as_str().into_iter().collect::<Vec<_>>(),
        };
        for kind in kinds.into_iter().filter(|kind| *kind != "string" || node["enum"].is_null()) {
            into.push(match kind {
                "number" => "float".into(),
                "integer" => "int".into(),
                "boolean" => "bool".into(),
                "string" => "str".into(),
                "null" => "None".into(),
                "array" => match &node["items"] {
                    Value::Object(_) => format!("Sequence[{}]", self.python_type(&node["items"])),
                    _ => "Sequence[Any]".into(),
                },
                _ => "Mapping[str, Any]".into(),
            });
        }
    }
}

/// Appends a class: fields that must be given first.
fn class(
    out: &mut String,
    name: &str,
    base: &str,
    about: &str,
    attribute: &str,
    fields: Vec<Field>,
) -> Result<()> {
    write!(out, "\n\n@dataclass(frozen=True)\nclass {name}({base}):\n    \"\"\"{about}")?;
    let (mut given, optional): (Vec<Field>, Vec<Field>) =
        fields.into_iter().partition(|f| f.default.is_none());
    given.sort_by_key(|field| field.place);
    // An only field need not be named either.
    let unnamed = if given.len() + optional.len() == 1 { 1 } else { given.len() };
    let fields: Vec<Field> = given.into_iter().chain(optional).collect();
    for (i, field) in fields.iter().enumerate() {
        let gap = if i == 0 { "\n" } else { "" };
        write!(out, "\n{gap}    - ``{}``: {}", field.name, field.about)?;
    }
    writeln!(out, "{}\"\"\"\n", if fields.is_empty() { "" } else { "\n    " })?;
    out.push_str(attribute);
    for (i, Field { name, of_type, default, .. }) in fields.into_iter().enumerate() {
        if i == unnamed {
            out.push_str("    _: KW_ONLY\n");
        }
        match default {
            None => writeln!(out, "    {name}: {of_type}")?,
            Some(default) if default == "None" && !of_type.contains("None") => {
                writeln!(out, "    {name}: {of_type} | None = None")?
            }
            Some(default) => writeln!(out, "    {name}: {of_type} = {default}")?,
        }
    }
    Ok(())
}

fn tag(variant: &Value) -> Option<&str> {
    variant["properties"]["type"]["const"].as_str()
}

/// `robust-max` is `RobustMax`.
fn class_name(tag: &str) -> String {
    let word = |word: &str| match word {
        "rbf" => "RBF".to_string(),
        _ => word[..1].to_uppercase() + &word[1..],
    };
    tag.split('-').map(word).collect()
}

/// The first paragraph of a documentation comment, without links.
fn about(node: &Value) -> String {
    let text = node["description"].as_str().unwrap_or_default();
    let text = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((name, after)) = after.split_once("`]") else { break };
        write!(out, "{before}`{name}`").expect("memory can be written to");
        rest = match after.strip_prefix('(').and_then(|link| link.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    (out + rest).replace('`', "``").replace('\\', "\\\\")
}

/// A value as Python writes it.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Array(list) => {
            format!("({})", list.iter().map(|v| literal(v) + ", ").collect::<String>().trim_end())
        }
        Value::Object(_) => "None".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_specs_are_what_the_code_says() {
        check().unwrap();
    }

    #[test]
    fn names_and_texts_are_pythons() {
        assert_eq!([class_name("rbf"), class_name("robust-max")], ["RBF", "RobustMax"]);
        let node = serde_json::json!({ "description": "See [`a`](b::c), [`d`]\nand `e`.\n\nMore." });
        assert_eq!(about(&node), "See ``a``, ``d`` and ``e``.");
        assert_eq!(literal(&serde_json::json!(["a", true])), "(\"a\", True,)");
    }
}
