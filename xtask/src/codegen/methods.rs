//! Writes the methods of native tensors: libtorch's names, required arguments as parameters, defaults in an options
//! type.

use std::fmt::Write;

use anyhow::{Result, bail};

use super::{
    emit,
    schema::{Argument, Modifier},
    table::Row,
};

/// How a Rust method takes one schema argument.
struct Parameter {
    name: String,
    /// Type as a parameter, and as a field of the options.
    ty: String,
    /// Borrows, so that the options need a lifetime.
    borrows: bool,
    /// Records the argument; `{}` is the expression that names it.
    record: String,
    default: Option<String>,
}

/// Arguments native tensors decide themselves.
fn is_ours(a: &Argument) -> bool {
    matches!(a.ty.base.as_str(), "Layout" | "Device" | "MemoryFormat" | "Generator") || a.name == "pin_memory"
}

fn rust_name(name: &str) -> String {
    match name {
        "self" => "this".into(),
        "type" | "where" | "loop" | "move" | "ref" | "mod" | "in" | "use" => format!("{name}_"),
        _ => name.trim_end_matches('_').to_lowercase(),
    }
}

fn parameter(row: &Row, a: &Argument) -> Result<Parameter> {
    let optional = a.ty.is_optional();
    let element_optional = a.ty.modifiers.first() == Some(&Modifier::Optional) && a.ty.is_list();
    let (plain, borrows, call): (&str, bool, &str) = match (a.ty.base.as_str(), a.ty.is_list()) {
        ("Tensor", false) if row.section == "pointwise" && !optional => {
            ("impl Into<Operand<'o>>", false, "operand({}.into())")
        }
        ("Tensor", false) => ("&'a LazyTensor", true, "tensor({})"),
        ("Tensor", true) if element_optional => ("&'a [Option<&'a LazyTensor>]", true, "optional_tensors({})"),
        ("Tensor", true) => ("&'a [&'a LazyTensor]", true, "tensors({})"),
        ("Scalar", false) if optional || a.default.is_some() => ("Scalar", false, "number({})"),
        ("Scalar", false) => ("impl Into<Scalar>", false, "number({}.into())"),
        ("int" | "SymInt", false) => ("i64", false, "int({})"),
        ("int" | "SymInt", true) => ("&'a [i64]", true, "ints({})"),
        ("bool", false) => ("bool", false, "bool({})"),
        ("bool", true) => ("&'a [bool]", true, "bools({})"),
        ("float", false) => ("f64", false, "float({})"),
        ("float", true) => ("&'a [f64]", true, "floats({})"),
        ("str", _) => ("&'a str", true, "str({})"),
        ("ScalarType", _) => ("DType", false, "dtype({})"),
        (other, _) => {
            bail!("{}: native tensors have no type for `{other}`; give the row `method = \"\"`", row.schema.name)
        }
    };
    let whole_optional = optional && !element_optional;
    let ty = if whole_optional { format!("Option<{plain}>") } else { plain.to_owned() };
    let record = if whole_optional {
        let inner = call.replace("{}", "v");
        let inner = if let Some(kind) = inner.strip_suffix("(v)") { format!("{kind}(v)") } else { inner };
        format!("match {{}} {{ Some(v) => call.{inner}, None => call.none() }}")
    } else {
        format!("call.{call}")
    };
    let default = a.default.as_deref().map(|d| default(a, d, whole_optional)).transpose()?;
    Ok(Parameter { name: rust_name(&a.name), ty, borrows, record, default })
}

/// The Rust expression of a schema default.
fn default(a: &Argument, text: &str, optional: bool) -> Result<String> {
    if text == "None" {
        return Ok("None".into());
    }
    let inner = match (a.ty.base.as_str(), a.ty.is_list()) {
        ("Scalar", _) if text.contains(['.', 'e']) => format!("Scalar::Float({text})"),
        ("Scalar", _) => format!("Scalar::Int({text})"),
        ("float", false) if text.contains(['.', 'e']) => text.to_owned(),
        ("float", false) => format!("{text}.0"),
        ("int" | "SymInt", false) if text == "Mean" => "1".into(),
        ("int" | "SymInt", true) => match a.ty.modifiers.first() {
            Some(Modifier::List(Some(n))) if !text.starts_with('[') => {
                format!("&[{}]", vec![text; *n as usize].join(", "))
            }
            _ => format!("&{text}"),
        },
        ("bool", false) => text.to_lowercase(),
        ("str", _) => format!("{:?}", text.trim_matches(['"', '\''])),
        ("ScalarType", _) if text == "long" => "DType::I64".into(),
        ("int" | "SymInt", false) => text.to_owned(),
        (base, _) => bail!("argument `{}`: no Rust default for `{base}` = `{text}`", a.name),
    };
    Ok(if optional { format!("Some({inner})") } else { inner })
}

fn camel(method: &str) -> String {
    let word = |w: &str| {
        let mut letters = w.chars();
        letters.next().map_or(String::new(), |c| c.to_ascii_uppercase().to_string() + letters.as_str())
    };
    method.split('_').map(word).collect()
}

/// What a method returns, and how the recording ends.
fn results(row: &Row) -> (String, &'static str) {
    let masked = row.schema.arguments.iter().any(|a| a.name == "output_mask");
    match &row.schema.returns[..] {
        [one] if one.ty.is_list() => ("Vec<LazyTensor>".into(), "many"),
        [_] => ("LazyTensor".into(), "one"),
        _ if masked => ("Vec<Option<LazyTensor>>".into(), "masked"),
        several => (format!("({})", vec!["LazyTensor"; several.len()].join(", ")), "tuple"),
    }
}

struct Method<'a> {
    row: &'a Row,
    name: &'a str,
    /// An associated function over a list of tensors.
    is_list: bool,
    required: Vec<Parameter>,
    defaulted: Vec<Parameter>,
    /// How each argument is recorded, in schema order; `None` for those that are ours.
    order: Vec<Option<String>>,
}

impl<'a> Method<'a> {
    fn new(row: &'a Row, name: &'a str) -> Result<Self> {
        let mut m = Method {
            row,
            name,
            is_list: row.schema.arguments[0].ty.is_list(),
            required: Vec::new(),
            defaulted: Vec::new(),
            order: Vec::new(),
        };
        for (i, a) in row.schema.arguments.iter().enumerate() {
            if i == 0 && !m.is_list {
                m.order.push(Some("call.tensor(self)".into()));
                continue;
            }
            if is_ours(a) {
                m.order.push(None);
                continue;
            }
            let p = parameter(row, a)?;
            let place = if p.default.is_some() { format!("options.{}", p.name) } else { p.name.clone() };
            m.order.push(Some(p.record.replace("{}", &place)));
            if p.default.is_some() { m.defaulted.push(p) } else { m.required.push(p) }
        }
        Ok(m)
    }

    fn receiver(&self) -> &'static str {
        if self.is_list { "" } else { "&self, " }
    }

    fn parameters(&self) -> String {
        let elided = |ty: &str| ty.replace("'a ", "");
        self.required.iter().map(|p| format!("{}: {}, ", p.name, elided(&p.ty))).collect()
    }

    /// Lifetime of operands.
    fn generics(&self) -> &'static str {
        if self.required.iter().any(|p| p.ty.contains("'o")) { "<'o>" } else { "" }
    }

    fn names(&self) -> String {
        self.required.iter().map(|p| format!("{}, ", p.name)).collect()
    }

    fn lifetime(&self) -> &'static str {
        if self.defaulted.iter().any(|p| p.borrows) { "<'a>" } else { "" }
    }

    fn options(&self, out: &mut String) {
        let (name, life) = (format!("{}Options", camel(self.name)), self.lifetime());
        let _ = writeln!(
            out,
            "/// Defaults of [`LazyTensor::{}`].\n#[derive(Clone, Copy, Debug)]\npub struct {name}{life} {{",
            self.name
        );
        for p in &self.defaulted {
            let _ = writeln!(out, "    /// `{}`\n    pub {}: {},", p.name, p.name, p.ty);
        }
        let anonymous = if life.is_empty() { "" } else { "<'_>" };
        let _ = writeln!(
            out,
            "}}\n\nimpl Default for {name}{anonymous} {{\n    fn default() -> Self {{\n        {name} {{"
        );
        for p in &self.defaulted {
            let _ = writeln!(out, "            {}: {},", p.name, p.default.as_deref().unwrap_or_default());
        }
        let _ = writeln!(out, "        }}\n    }}\n}}\n");
    }

    /// When it fails; one line.
    fn errors(&self) -> &'static str {
        let is_tensor = |p: &Parameter| p.ty.contains("LazyTensor") || p.ty.contains("Operand");
        match self.required.iter().chain(&self.defaulted).any(is_tensor) {
            _ if self.is_list => {
                "Fails for arguments that libtorch refuses, in its words, for tensors of several devices, and for none."
            }
            true => "Fails for arguments that libtorch refuses, in its words, and for tensors of several devices.",
            false => "Fails for arguments that libtorch refuses, in its words.",
        }
    }

    fn emit(&self, out: &mut String) {
        let (ty, end) = results(self.row);
        let (name, schema) = (self.name, &self.row.schema);
        let generics = self.generics();
        let heading = "    ///\n    /// # Errors\n    ///";
        let errors = format!("{heading} {}", self.errors());
        let document = format!("    /// `{schema}`");
        if self.defaulted.is_empty() {
            let _ = writeln!(
                out,
                "{document}\n{errors}\n    pub fn {name}{generics}({}{}) -> Result<{ty}, Error> {{",
                self.receiver(),
                self.parameters()
            );
        } else {
            let life = if self.lifetime().is_empty() { "" } else { "<'_>" };
            let options = format!("{}Options", camel(name));
            let _ = writeln!(
                out,
                "{document}, with defaults\n{heading} As [`LazyTensor::{name}_with`].\n    \
                 pub fn {name}{generics}({}{}) -> Result<{ty}, Error> {{\n        \
                 {}{name}_with({}{options}::default())\n    }}\n",
                self.receiver(),
                self.parameters(),
                if self.is_list { "Self::" } else { "self." },
                self.names(),
            );
            let _ = writeln!(
                out,
                "{document}\n{errors}\n    pub fn {name}_with{generics}({}{}options: {options}{life}) -> \
                 Result<{ty}, Error> {{",
                self.receiver(),
                self.parameters()
            );
        }
        let _ = writeln!(out, "        let mut call = Recording::new(OpCode::{});", emit::variant(schema));
        for part in &self.order {
            let _ = writeln!(out, "        {};", part.as_deref().unwrap_or("call.ours()"));
        }
        let _ = writeln!(out, "        call.{end}()\n    }}\n");
        if end == "one" && !self.is_list && self.row.in_place {
            let _ = writeln!(
                out,
                "    /// [`LazyTensor::{name}`], written into this tensor\n{heading} As [`LazyTensor::{name}`]; \
                 also where the result has other sizes or a higher kind of number,\n    /// and as \
                 [`LazyTensor::assign`].\n    pub fn {name}_{generics}(&self, {}) -> Result<(), Error> {{\n        \
                 self.store(&self.{name}({})?)\n    }}\n",
                self.parameters(),
                self.names()
            );
        }
    }
}

/// `ltc-core/src/tensor/generated.rs`.
pub(crate) fn emit(rows: &[Row]) -> Result<String> {
    let mut out = String::from(
        "//! Methods of native tensors. Written by `cargo xtask codegen` from `ltc-ir/ops.toml`; do not edit.\n\n\
         use ltc_ir::{DType, OpCode, Scalar};\n\n\
         use super::{LazyTensor, Operand, record::Recording};\nuse crate::Error;\n\n",
    );
    let methods: Vec<Method<'_>> =
        rows.iter().filter_map(|r| r.method.as_deref().map(|name| Method::new(r, name))).collect::<Result<_>>()?;
    out += "/// Operators of the table, by libtorch's names.\nimpl LazyTensor {\n";
    methods.iter().for_each(|m| m.emit(&mut out));
    out.truncate(out.trim_end().len());
    out += "\n}\n\n";
    methods.iter().filter(|m| !m.defaulted.is_empty()).for_each(|m| m.options(&mut out));
    out.truncate(out.trim_end().len());
    Ok(out.replace(", )", ")") + "\n")
}
