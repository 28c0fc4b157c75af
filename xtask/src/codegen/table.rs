//! The operator table as written, checked against libtorch's list of operators.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{
    expr::Expr,
    native::{Native, Natives},
    schema::Schema,
};

/// A row as written.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Shape and dtype rule: a function of `ltc-ir/src/rules`, by default of the operator's name in the class's file.
    rule: Option<String>,
    /// Which numbers it refuses: a function of `ltc-ir/src/rules/numbers.rs`.
    numbers: Option<String>,
    /// What a pointwise operator computes for one element.
    expr: Option<String>,
    /// What the expression is computed in, where the rule does not say (`COMPUTE`).
    compute: Option<String>,
    /// Why fused kernels leave the operator out although they could compute its expression.
    no_fuse: Option<String>,
    /// Why fused kernels do not give libtorch's bits although each of their operations does.
    inexact: Option<String>,
    /// What an operator computes that reduces dimensions.
    reduce: Option<WrittenReduce>,
    /// Gradients by argument, as expressions that may also name `grad` and `result`.
    #[serde(default)]
    grad: BTreeMap<String, String>,
    /// Why these gradients do not depend on an argument that none of them names.
    #[serde(default)]
    grad_without: BTreeMap<String, String>,
    #[serde(default)]
    props: Vec<String>,
    /// Name of the native method; `""` for none.
    method: Option<String>,
    /// The recorder of libtorch's dispatcher uses the rule instead of libtorch's own meta functions.
    #[serde(default)]
    overrides: bool,
    /// The rest is for the operator matrix (`tests/`), which reads the table itself.
    dtypes: Option<String>,
    #[serde(default)]
    samples: Vec<String>,
    tolerance: Option<f64>,
    skip: Option<String>,
    unchecked: Option<String>,
}

/// See `ltc_ir::table::Reduce`.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
struct WrittenReduce {
    /// `all`, `channels`, the argument that names or lists dimensions, or `last` and the one that lists their sizes.
    over: String,
    when: Option<String>,
    #[serde(default)]
    writes: BTreeMap<String, String>,
    results: Vec<String>,
}

/// A row that fits libtorch.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) class: &'static str,
    pub(crate) section: &'static str,
    pub(crate) schema: Schema,
    pub(crate) rule: String,
    pub(crate) numbers: Option<String>,
    pub(crate) expr: Option<String>,
    /// A variant of `ltc_ir::table::Compute`.
    pub(crate) compute: Option<&'static str>,
    pub(crate) no_fuse: Option<String>,
    pub(crate) inexact: Option<String>,
    /// As the generated table has it.
    pub(crate) reduce: Option<String>,
    pub(crate) grad: BTreeMap<String, String>,
    pub(crate) grad_without: BTreeMap<String, String>,
    pub(crate) props: Vec<String>,
    /// `None` where there is no method.
    pub(crate) method: Option<String>,
    pub(crate) overrides: bool,
    /// Whether libtorch has an in-place variant.
    pub(crate) in_place: bool,
    /// In-place and out variants without rows of their own.
    pub(crate) variants: Vec<Schema>,
}

/// Sections of the table, their class, the file of their rules, and whether their operators cannot fail on values
/// unless a row says so.
const SECTIONS: [(&str, &str, &str, bool); 13] = [
    ("pointwise", "Pointwise", "pointwise", true),
    ("reduction", "Reduction", "reduction", true),
    ("matmul", "Matmul", "matmul", true),
    ("convolution", "Convolution", "conv", true),
    ("pooling", "Pooling", "pool", true),
    ("resampling", "Pooling", "resample", true),
    ("normalization", "Normalization", "norm", true),
    ("loss", "Loss", "loss", false),
    ("random", "Random", "random", false),
    ("factory", "Factory", "factory", true),
    ("movement", "Movement", "movement", true),
    ("view", "View", "view", true),
    ("linalg", "Linalg", "linalg", false),
];

pub(crate) const PROPS: [&str; 6] = ["overwrites", "commutative", "data-dependent", "channels-last", "raises", "total"];
const DTYPES: [&str; 10] =
    ["float", "real", "numeric", "integral", "all", "bool", "complex", "f32", "numeric+complex", "float+complex"];

/// What expressions are computed in: the word, the variant of `ltc_ir::table::Compute`, and the rules that mean it.
const COMPUTE: [(&str, &str, &[&str]); 6] = [
    (
        "promoted",
        "Promoted",
        &[
            "promoted",
            "promoted_numbers",
            "sub",
            "rsub",
            "rsub_tensor",
            "boolean",
            "logical",
            "clamp",
            "neg",
            "real",
            "bitwise",
            "integral",
            "square",
            "no_bool",
        ],
    ),
    ("tensors", "Tensors", &["relu", "threshold"]),
    ("float", "Float", &["float", "float_numbers"]),
    (
        "float-only",
        "FloatOnly",
        &[
            "float_only",
            "gradient",
            "gelu_backward",
            "gradient_of_one_dtype",
            "lerp",
            "log_sigmoid_forward",
            "div_mode",
            "heaviside",
        ],
    ),
    ("wide-float", "WideFloat", &[]),
    ("moved", "Moved", &["where_self", "masked_fill", "fill", "like_self", "clone", "copy", "to_copy"]),
];

/// `file::function` of every rule.
pub(crate) fn rules(folder: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let module = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
        let text = fs::read_to_string(&path)?;
        for line in text.lines() {
            let function = line
                .strip_prefix("pub fn ")
                .and_then(|l| l.split_once("(call: &Call<'_>)").or_else(|| l.split_once("(given: &Numbers<'_>)")));
            if let Some((name, _)) = function {
                found.insert(if module == "mod" { name.to_owned() } else { format!("{module}::{name}") });
            }
        }
    }
    Ok(found)
}

/// The rows in name order, or everything that is wrong with the table.
pub(crate) fn resolve(text: &str, natives: &Natives, rules: &BTreeSet<String>) -> Result<Vec<Row>, Vec<String>> {
    let sections: BTreeMap<String, BTreeMap<String, Written>> = match toml::from_str(text) {
        Ok(sections) => sections,
        Err(e) => return Err(vec![e.to_string()]),
    };
    let mut complaints = Vec::new();
    let mut rows = Vec::new();
    let names: BTreeSet<&str> = sections.values().flat_map(|s| s.keys().map(String::as_str)).collect();
    for (section, written) in &sections {
        let Some(&known) = SECTIONS.iter().find(|(name, ..)| name == section) else {
            let known: Vec<_> = SECTIONS.iter().map(|s| s.0).collect();
            complaints.push(format!("[{section}] is no class; there are {}", known.join(", ")));
            continue;
        };
        for (name, row) in written {
            let mut check = Check { name, natives, rules, names: &names, complaints: &mut complaints };
            rows.extend(check.row(known, row));
        }
    }
    rows.sort_by_key(|r| r.schema.name.to_string());
    for pair in rows.windows(2) {
        if pair[0].schema.name == pair[1].schema.name {
            complaints.push(format!("{}: stands in two sections", pair[0].schema.name));
        }
    }
    let mut methods: BTreeMap<&str, &Row> = BTreeMap::new();
    for row in &rows {
        if let Some(other) = row.method.as_deref().and_then(|m| methods.insert(m, row)) {
            let (name, method) = (&row.schema.name, row.method.as_deref().unwrap_or_default());
            complaints.push(format!(
                "{name}: method `{method}` is {}'s already; add `method = \"...\"` with another name, or \"\" for none",
                other.schema.name
            ));
        }
    }
    if complaints.is_empty() { Ok(rows) } else { Err(complaints) }
}

/// A row's properties, with whether it cannot fail said as the system asks for it.
fn properties(written: &[String], total: bool) -> Vec<String> {
    let says = |name: &str| written.iter().any(|p| p == name);
    let total = if total { !says("raises") } else { says("total") };
    let others = written.iter().filter(|p| !["raises", "total"].contains(&p.as_str())).cloned();
    others.chain(total.then(|| "total".to_owned())).collect()
}

struct Check<'a> {
    name: &'a str,
    natives: &'a Natives,
    rules: &'a BTreeSet<String>,
    names: &'a BTreeSet<&'a str>,
    complaints: &'a mut Vec<String>,
}

impl Check<'_> {
    fn complain(&mut self, what: impl std::fmt::Display) {
        self.complaints.push(format!("{}: {what}", self.name));
    }

    fn row(
        &mut self,
        (section, class, module, total): (&'static str, &'static str, &'static str, bool),
        w: &Written,
    ) -> Option<Row> {
        let Some(native) = self.natives.get(self.name) else {
            let nearest = self.natives.nearest(self.name).unwrap_or_default();
            self.complain(format!("libtorch has no such operator; `{nearest}` is nearest"));
            return None;
        };
        let schema = native.schema.clone();
        self.functional_is_there(native);
        let base = schema.name.base.as_str();
        let rule = match &w.rule {
            Some(path) if path.contains("::") || self.rules.contains(path) => path.clone(),
            named => self.rule(module, named.as_deref().unwrap_or(base.trim_start_matches('_'))),
        };
        if !self.rules.contains(&rule) {
            let (file, function) = rule.split_once("::").unwrap_or(("mod", &rule));
            self.complain(format!(
                "there is no shape rule `{rule}`; name another with `rule = \"...\"`, or add to \
                 ltc-ir/src/rules/{file}.rs\n        \
                 pub fn {function}(call: &Call<'_>) -> Result<NewResults, ShapeError>"
            ));
        }
        self.number_rule(w);
        self.expressions(section, w, &schema);
        let compute = self.compute(w, &rule);
        let reduce = w.reduce.as_ref().and_then(|r| self.reduce(r, &schema));
        for p in &w.props {
            if !PROPS.contains(&p.as_str()) {
                self.complain(format!("`{p}` is no property; there are {}", PROPS.join(", ")));
            }
        }
        if let Some(d) = &w.dtypes
            && !DTYPES.contains(&d.as_str())
        {
            self.complain(format!("`{d}` is no set of dtypes; there are {}", DTYPES.join(", ")));
        }
        if section != "pointwise" && w.samples.is_empty() && w.skip.is_none() {
            self.complain(
                "no samples: add `samples = [\"...\"]` with the positional arguments of a call each, or `skip` with \
                 a reason",
            );
        }
        let reasons = [&w.skip, &w.unchecked, &w.no_fuse, &w.inexact].into_iter().flatten();
        if reasons.chain(w.grad_without.values()).any(|reason| reason.trim().is_empty()) {
            self.complain("`skip`, `unchecked`, `no_fuse`, `inexact` and `grad_without` give a reason");
        }
        if w.tolerance.is_some_and(|t| !(0.0..1.0).contains(&t)) {
            self.complain("tolerance must lie in 0..1");
        }
        let variants = self.natives.variants(&schema);
        let in_place = variants.iter().any(|n| n.schema.name.is_in_place());
        let variants = variants
            .into_iter()
            .map(|n| n.schema.clone())
            .filter(|s| !self.names.contains(s.name.to_string().as_str()));
        Some(Row {
            class,
            section,
            rule,
            numbers: w.numbers.clone(),
            expr: w.expr.clone(),
            compute,
            no_fuse: w.no_fuse.clone(),
            inexact: w.inexact.clone(),
            reduce,
            grad: w.grad.clone(),
            grad_without: w.grad_without.clone(),
            props: properties(&w.props, total),
            method: method(&schema, w.method.as_deref()),
            overrides: w.overrides,
            in_place,
            variants: variants.collect(),
            schema,
        })
    }

    fn number_rule(&mut self, w: &Written) {
        if let Some(name) = &w.numbers
            && !self.rules.contains(&format!("numbers::{name}"))
        {
            self.complain(format!("there is no `{name}` in ltc-ir/src/rules/numbers.rs"));
        }
    }

    /// The rule of this name in the class's file, or in the only file that has one.
    fn rule(&self, module: &str, name: &str) -> String {
        let own = format!("{module}::{name}");
        let mut elsewhere = self.rules.iter().filter(|r| r.split_once("::").is_some_and(|(_, n)| n == name));
        match (elsewhere.next(), elsewhere.next()) {
            (Some(only), None) if !self.rules.contains(&own) => only.clone(),
            _ => own,
        }
    }

    /// What the row's expression is computed in: as it says, or as its rule does. A written operator is computed as its
    /// functional one.
    fn compute(&mut self, w: &Written, rule: &str) -> Option<&'static str> {
        w.expr.as_ref()?;
        let function = rule.rsplit("::").next().unwrap_or(rule);
        let found = match &w.compute {
            Some(word) => COMPUTE.iter().find(|c| c.0 == word),
            None if ["nothing_new", "positive"].contains(&function) => return None,
            None => COMPUTE.iter().find(|c| c.2.contains(&function)),
        };
        if found.is_none() {
            let known: Vec<_> = COMPUTE.iter().map(|c| c.0).collect();
            self.complain(format!(
                "the rule `{rule}` does not say what the expression is computed in; add `compute = \"...\"` with \
                 one of {}",
                known.join(", ")
            ));
        }
        found.map(|c| c.1)
    }

    /// What the row reduces, as the generated table has it.
    fn reduce(&mut self, w: &WrittenReduce, schema: &Schema) -> Option<String> {
        let arguments: Vec<&str> = schema.arguments.iter().map(|a| a.name.as_str()).collect();
        let results = schema.returns.iter().filter(|r| r.ty.base == "Tensor").count();
        if w.results.len() != results {
            self.complain(format!("reduce has {} expressions for {results} results", w.results.len()));
        }
        for text in w.results.iter().chain(w.writes.values()).chain(&w.when) {
            if let Err(e) = Expr::parse(text, &arguments) {
                self.complain(format!("reduce `{text}` {e}"));
            }
        }
        let mut at = |name: &str| {
            let found = arguments.iter().position(|a| *a == name);
            if found.is_none() {
                self.complain(format!(
                    "reduce names `{name}`, which is no argument; there are {}",
                    arguments.join(", ")
                ));
            }
            found
        };
        let over = match w.over.split_once(' ') {
            None if w.over == "all" => "All".to_owned(),
            None if w.over == "channels" => "Channels".to_owned(),
            Some(("last", sizes)) => format!("Last({})", at(sizes)?),
            _ => {
                let dim = at(&w.over)?;
                let one = schema.arguments[dim].ty.to_string() == "int";
                format!("{}({dim})", if one { "Dim" } else { "Dims" })
            }
        };
        let writes = w.writes.iter().map(|(name, text)| Some(format!("({}, {text:?})", at(name)?)));
        let writes = writes.collect::<Option<Vec<_>>>()?.join(", ");
        Some(format!(
            "Reduce {{ over: Over::{over}, when: {:?}, writes: &[{writes}], results: &{:?} }}",
            w.when, w.results
        ))
    }

    /// An in-place or out variant comes with its functional operator.
    fn functional_is_there(&mut self, native: &Native) {
        let schema = &native.schema;
        let is_variant = schema.name.is_in_place() || schema.is_out();
        if let Some(functional) = is_variant.then(|| self.natives.functional(schema)).flatten() {
            let name = functional.schema.name.to_string();
            if !self.names.contains(name.as_str()) {
                let kind = if schema.is_out() { "out" } else { "in-place" };
                let quoted = if name.contains('.') { format!("\"{name}\"") } else { name.clone() };
                self.complain(format!(
                    "is the {kind} variant of {name}, which has no row; add\n        {quoted} = {{ ... }}"
                ));
            }
        }
    }

    fn expressions(&mut self, section: &str, w: &Written, schema: &Schema) {
        let arguments: Vec<&str> = schema.arguments.iter().map(|a| a.name.as_str()).collect();
        let tensor = |name: &str| schema.arguments.iter().any(|a| a.name == name && a.ty.base == "Tensor");
        match &w.expr {
            None if section == "pointwise" => {
                self.complain(format!("no scalar expression: add `expr = \"...\"` over {}", arguments.join(", ")));
            }
            Some(text) => match Expr::parse(text, &arguments) {
                Err(e) => self.complain(format!("expr `{text}` {e}")),
                Ok(e) if e.any(&|e| matches!(e, Expr::Call(f, _) if f.reduces())) => {
                    self.complain("an element's expression reduces nothing: that is `reduce = { ... }`");
                }
                Ok(_) => {}
            },
            None => {}
        }
        for argument in w.grad_without.keys() {
            if w.grad.is_empty() || w.grad.contains_key(argument) || !arguments.contains(&argument.as_str()) {
                self.complain(format!(
                    "grad_without entry for `{argument}`: it is for arguments, of rows with `grad`, that have no entry \
                     there"
                ));
            }
        }
        let names: Vec<&str> = arguments.iter().copied().chain(["grad", "result"]).collect();
        for (argument, text) in &w.grad {
            if !tensor(argument) {
                let tensors: Vec<_> = arguments.iter().filter(|a| tensor(a)).copied().collect();
                self.complain(format!(
                    "grad entry for `{argument}`, which is no tensor argument; there are {}",
                    tensors.join(", ")
                ));
            }
            if let Err(e) = Expr::parse(text, &names) {
                self.complain(format!("grad.{argument} `{text}` {e}"));
            }
        }
    }
}

/// Name of the native method: the operator's, with the overload where it says something.
fn method(schema: &Schema, given: Option<&str>) -> Option<String> {
    if let Some(name) = given {
        return (!name.is_empty()).then(|| name.to_owned());
    }
    let hidden = schema.name.base.starts_with('_') || schema.name.is_in_place() || schema.is_out();
    let first_is_self =
        schema.arguments.first().is_some_and(|a| matches!(a.ty.to_string().as_str(), "Tensor" | "Tensor[]"));
    if hidden || !first_is_self {
        return None;
    }
    let base = &schema.name.base;
    Some(match schema.name.overload.as_str() {
        "" | "Tensor" | "self" | "int" | "default" | "src" => base.clone(),
        overload => format!("{base}_{}", overload.trim_end_matches("_IntList").to_lowercase()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
- func: add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
- func: sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
";

    fn resolved(text: &str) -> Result<Vec<Row>, String> {
        let natives = Natives::parse(YAML).expect("operators");
        let rules = ["pointwise::promoted", "reduction::sum"].map(str::to_owned).into();
        resolve(text, &natives, &rules).map_err(|c| c.join("\n"))
    }

    #[test]
    fn a_good_table_resolves() {
        let text = "[pointwise]\n\"add.Tensor\" = { rule = \"promoted\", expr = \"self + alpha * other\", \
                    grad.other = \"grad * alpha\" }\n[reduction]\nsum = { samples = [\"[2]\"] }\n";
        let rows = resolved(text).expect("rows");
        assert_eq!(
            (rows.len(), rows[0].rule.as_str(), rows[0].method.as_deref()),
            (2, "pointwise::promoted", Some("add"))
        );
        assert_eq!(rows[0].variants[0].name.to_string(), "add_.Tensor");
        assert_eq!(rows[1].rule, "reduction::sum");
    }

    #[test]
    fn the_documented_row_is_a_row() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let doc = fs::read_to_string(root.join("docs/add-an-op.md")).expect("the document");
        // That the row stands there is a rule of `cargo xtask tidy`.
        let shown = doc.split("+++ ltc-ir/ops.toml\n+").nth(1).and_then(|s| s.lines().next()).expect("an example");
        // With only that row, nothing is missing.
        let yaml = "- func: special_entr(Tensor self) -> Tensor\n";
        let natives = Natives::parse(yaml).expect("an operator");
        let rules = ["pointwise::float".to_owned()].into();
        let rows = resolve(&format!("[pointwise]\n{shown}"), &natives, &rules).expect("a row");
        assert_eq!(rows[0].method.as_deref(), Some("special_entr"));
    }

    #[test]
    fn every_mistake_names_the_row_and_says_what_to_do() {
        let good = "rule = \"promoted\", expr = \"self\"";
        for (text, message) in [
            ("[pointwise]\n\"add.Tensr\" = {}".to_owned(), "add.Tensr: libtorch has no such operator; `add.Tensor`"),
            (
                "[reduction]\nsum = { rule = \"total\", samples = [\"[2]\"] }".to_owned(),
                "add to ltc-ir/src/rules/reduction.rs",
            ),
            ("[reduction]\nsum = {}".to_owned(), "sum: no samples: add `samples"),
            (
                "[pointwise]\n\"add.Tensor\" = { rule = \"promoted\" }".to_owned(),
                "add.Tensor: no scalar expression: add",
            ),
            (
                format!("[pointwise]\n\"add_.Tensor\" = {{ {good} }}"),
                "in-place variant of add.Tensor, which has no row; add",
            ),
            (
                format!("[pointwise]\n\"add.Tensor\" = {{ {good}, grad.alpha = \"1\" }}"),
                "grad entry for `alpha`, which is no tensor",
            ),
            (format!("[pointwise]\n\"add.Tensor\" = {{ {good}, grad.self = \"gard\" }}"), "`gard` is none of"),
            (format!("[pointwise]\n\"add.Tensor\" = {{ {good}, props = [\"fast\"] }}"), "`fast` is no property"),
            (format!("[pointwise]\n\"add.Tensor\" = {{ {good}, dtypes = \"big\" }}"), "`big` is no set of dtypes"),
            (format!("[pointwise]\n\"add.Tensor\" = {{ {good}, smaples = [] }}"), "unknown field `smaples`"),
            (format!("[pointwise]\n\"add.Tensor\" = {{ {good}, compute = \"fast\" }}"), "computed in; add `compute"),
            (
                "[pointwise]\n\"add.Tensor\" = { rule = \"promoted\", expr = \"sum(self)\" }".to_owned(),
                "reduces nothing",
            ),
            (
                "[reduction]\nsum = { samples = [\"[2]\"], reduce = { over = \"dim\", results = [\"sum(self)\"] } }"
                    .to_owned(),
                "reduce names `dim`, which is no argument",
            ),
            (
                "[reduction]\nsum = { samples = [\"[2]\"], reduce = { over = \"all\", results = [] } }".to_owned(),
                "0 expressions for 1 results",
            ),
            (format!("[pointwise]\n\"add.Tensor\" = {{ {good}, no_fuse = \"\" }}"), "give a reason"),
            (
                format!("[pointwise]\n\"add.Tensor\" = {{ {good}, grad_without.alpha = \"\" }}"),
                "grad_without entry for `alpha`",
            ),
            ("[pointwse]\n".to_owned(), "[pointwse] is no class"),
        ] {
            let e = resolved(&text).expect_err(&text);
            assert!(e.contains(message), "{text}:\n{e}");
        }
    }
}
