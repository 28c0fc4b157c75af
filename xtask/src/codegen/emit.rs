//! Writes the rows as Rust constants, and as a page of documentation.

use std::{collections::BTreeMap, fmt::Write};

use super::{
    schema::{Argument, Modifier, Schema, Type},
    table::Row,
};

const HEAD: &str = "Written by `cargo xtask codegen` from `ltc-ir/ops.toml`; do not edit.";

/// `AddTensor` for `add.Tensor`, `UnderscoreSoftmax` for `_softmax`.
pub(crate) fn variant(schema: &Schema) -> String {
    let mut out = String::new();
    let hidden = schema.name.base.len() - schema.name.base.trim_start_matches('_').len();
    out += &"Underscore".repeat(hidden.min(1));
    for part in schema.name.base.split('_').chain(schema.name.overload.split('_')) {
        let mut letters = part.chars();
        out.extend(letters.next().map(|c| c.to_ascii_uppercase()));
        out += letters.as_str();
    }
    out + if schema.name.is_in_place() { "InPlace" } else { "" }
}

fn kind(ty: &Type) -> &'static str {
    let inner_optional = ty.modifiers.first() == Some(&Modifier::Optional) && ty.is_list();
    match (ty.base.as_str(), ty.is_list()) {
        ("Tensor", true) if inner_optional => "OptionalTensors",
        ("Tensor", true) => "Tensors",
        ("Tensor", false) => "Tensor",
        ("Scalar", true) => "Scalars",
        ("Scalar", false) => "Scalar",
        ("int" | "SymInt" | "DeviceIndex", true) => "Ints",
        ("int" | "SymInt" | "DeviceIndex", false) => "Int",
        ("bool" | "SymBool", true) => "Bools",
        ("bool" | "SymBool", false) => "Bool",
        ("float", true) => "Floats",
        ("float", false) => "Float",
        ("str", _) => "Str",
        ("ScalarType", _) => "DType",
        ("Layout", _) => "Layout",
        ("Device", _) => "Device",
        ("MemoryFormat", _) => "MemoryFormat",
        ("Generator", _) => "Generator",
        _ => "Other",
    }
}

fn argument(a: &Argument) -> String {
    // A number for a sized list stands for all its entries.
    let default = a.default.as_ref().map(|d| match a.ty.modifiers.first() {
        Some(Modifier::List(Some(n))) if !d.starts_with('[') && d != "None" => {
            format!("[{}]", vec![d.as_str(); *n as usize].join(","))
        }
        _ => d.clone(),
    });
    let default = default.map_or("None".to_owned(), |d| format!("Some({d:?})"));
    format!("a({:?}, K::{}, {}, {}, {default})", a.name, kind(&a.ty), a.ty.is_optional(), a.ty.is_written())
}

/// `ltc-ir/src/table/generated.rs`.
pub(crate) fn rows(rows: &[Row]) -> String {
    let mut out = format!(
        "//! The operator table. {HEAD}\n\nuse super::{{ArgKind as K, Compute, Over, Reduce, Row, arg as a}};\n"
    );
    out += "use crate::{\n    props::{OpClass as C, Props as P},\n    rules as r,\n};\n\n";
    out += "/// Operators with a row, for matching.\n";
    out += "#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]\n#[repr(u16)]\npub enum OpCode {\n";
    for row in rows {
        let _ = writeln!(out, "    /// `{}`\n    {},", row.schema.name, variant(&row.schema));
    }
    out += "}\n\n/// Rows, sorted by name.\n#[rustfmt::skip]\npub(super) static ROWS: &[Row] = &[\n";
    for row in rows {
        let props = row
            .props
            .iter()
            .fold("P::NONE".to_owned(), |p, name| format!("{p}.and(P::{})", name.to_uppercase().replace('-', "_")));
        let arguments: Vec<_> = row.schema.arguments.iter().map(argument).collect();
        let arguments = format!("&[{}]", arguments.join(", "));
        let pairs = |map: &BTreeMap<String, String>| {
            let pairs: Vec<_> = map.iter().map(|(a, e)| format!("({a:?}, {e:?})")).collect();
            pairs.join(", ")
        };
        let tensors = row.schema.returns.iter().filter(|r| r.ty.base == "Tensor").count();
        let _ = writeln!(
            out,
            "    Row {{ name: \"aten::{}\", code: OpCode::{}, class: C::{}, props: {props}, rule: r::{}, \
             numbers: {}, overrides: {}, expr: {:?}, compute: {}, no_fuse: {:?}, inexact: {:?}, reduce: {}, \
             gradients: &[{}], gradients_without: &[{}], \
             arguments: {arguments}, results: {tensors}, schema: {:?} }},",
            row.schema.name,
            variant(&row.schema),
            row.class,
            row.rule,
            row.numbers.as_ref().map_or("None".to_owned(), |n| format!("Some(r::numbers::{n})")),
            row.overrides,
            row.expr,
            row.compute.map_or("None".to_owned(), |c| format!("Some(Compute::{c})")),
            row.no_fuse,
            row.inexact,
            row.reduce.as_ref().map_or("None".to_owned(), |r| format!("Some({r})")),
            pairs(&row.grad),
            pairs(&row.grad_without),
            row.schema.to_string(),
        );
    }
    out += "];\n\n/// In-place and out variants, sorted by name, with the code of their functional operator.\n";
    out += "#[rustfmt::skip]\npub(super) static VARIANTS: &[(&str, OpCode)] = &[\n";
    let mut variants: Vec<_> =
        rows.iter().flat_map(|r| r.variants.iter().map(move |v| (v.name.to_string(), variant(&r.schema)))).collect();
    variants.sort();
    for (name, code) in variants {
        let _ = writeln!(out, "    (\"aten::{name}\", OpCode::{code}),");
    }
    out + "];\n"
}

/// `docs/ops.md`.
pub(crate) fn docs(rows: &[Row]) -> String {
    let mut out = format!(
        "# Operators\n\n<!-- {HEAD} -->\n\n{} operators have a row in `ltc-ir/ops.toml`; every other ATen operator is \
         recorded from its dispatcher schema. *Gradient* says whether native tensors differentiate it by the table; \
         others have a rule in `ltc-core/src/autodiff`, or none.\n",
        rows.len()
    );
    let mut sections: Vec<&str> = rows.iter().map(|r| r.section).collect();
    sections.sort_unstable();
    sections.dedup();
    for section in sections {
        let _ = write!(
            out,
            "\n## {section}\n\n| operator | native method | rule | computes | gradient |\n|---|---|---|---|---|\n"
        );
        for row in rows.iter().filter(|r| r.section == section) {
            let code =
                |text: &str| if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|")) };
            let _ = writeln!(
                out,
                "| `{}` | {} | `{}` | {} | {} |",
                row.schema.name,
                code(row.method.as_deref().unwrap_or_default()),
                row.rule,
                code(row.expr.as_deref().unwrap_or_default()),
                row.grad.keys().cloned().collect::<Vec<_>>().join(", "),
            );
        }
    }
    out
}
