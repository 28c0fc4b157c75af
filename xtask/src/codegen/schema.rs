//! Operator schemas, as `native_functions.yaml` writes them.
//!
//! The whole grammar: overloads, defaults, lists with and without a size, optionals, aliases (`Tensor(a)`,
//! `Tensor(a!)`, `Tensor(a -> *)`, `Tensor(a|b)`), keyword-only arguments, unnamed, named and multiple returns. A
//! schema prints back to the text it was parsed from.

use std::fmt;

use anyhow::{Context, Result, anyhow, bail, ensure};

/// `name.overload(arguments) -> returns`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Schema {
    pub(crate) name: Name,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) returns: Vec<Return>,
    /// Whether the returns stood in parentheses; kept for printing.
    tuple: bool,
}

/// Base name and overload name, which may be empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(crate) struct Name {
    pub(crate) base: String,
    pub(crate) overload: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Argument {
    pub(crate) ty: Type,
    pub(crate) name: String,
    pub(crate) default: Option<String>,
    pub(crate) keyword_only: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Return {
    pub(crate) ty: Type,
    pub(crate) name: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Type {
    pub(crate) base: String,
    pub(crate) alias: Option<Alias>,
    /// In the order written, outermost last.
    pub(crate) modifiers: Vec<Modifier>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Modifier {
    Optional,
    List(Option<u32>),
}

/// Which memory a tensor may share, and whether it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Alias {
    pub(crate) sets: Vec<String>,
    pub(crate) write: bool,
    /// What the set becomes (`a -> *`: anything).
    pub(crate) after: Option<String>,
}

const BASES: [&str; 18] = [
    "Tensor",
    "Scalar",
    "ScalarType",
    "SymInt",
    "SymBool",
    "Storage",
    "Stream",
    "Generator",
    "Dimname",
    "QScheme",
    "ConstQuantizerPtr",
    "Device",
    "DeviceIndex",
    "Layout",
    "MemoryFormat",
    "bool",
    "float",
    "int",
];

impl Name {
    /// Of `base` or `base.overload`.
    pub(crate) fn parse(text: &str) -> Result<Name> {
        let (base, overload) = text.split_once('.').unwrap_or((text, ""));
        let word = |s: &str| s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        ensure!(!base.is_empty() && word(base) && word(overload), "`{text}` is not an operator name");
        ensure!(!text.ends_with('.'), "`{text}` has an empty overload name");
        Ok(Name { base: base.into(), overload: overload.into() })
    }

    /// Whether the operator writes its first argument by its name: `add_`, but not `__iand__`... which does as well and
    /// is told by its alias, nor `_thnn_`.
    pub(crate) fn is_in_place(&self) -> bool {
        self.base.ends_with('_') && !self.base.ends_with("__")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)?;
        if self.overload.is_empty() { Ok(()) } else { write!(f, ".{}", self.overload) }
    }
}

/// The part before a bracket at depth 0 that separates, for every such separator.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut quoted, mut parts) = (0, 0, false, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '"' | '\'' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        parts.push(text[start..].trim());
    }
    parts
}

impl Type {
    fn parse(text: &str) -> Result<Type> {
        let end = text.find(['(', '[', '?']).unwrap_or(text.len());
        let (base, mut rest) = text.split_at(end);
        ensure!(BASES.contains(&base) || base == "str", "unknown type `{base}` in `{text}`");
        let mut alias = None;
        if let Some(inner) = rest.strip_prefix('(') {
            let (inner, after) = inner.split_once(')').with_context(|| format!("alias not closed in `{text}`"))?;
            alias = Some(Alias::parse(inner)?);
            rest = after;
        }
        let mut modifiers = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('?') {
                modifiers.push(Modifier::Optional);
                rest = after;
            } else if let Some((size, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
                let size = if size.is_empty() { None } else { Some(size.parse().context("list size")?) };
                modifiers.push(Modifier::List(size));
                rest = after;
            } else {
                bail!("`{rest}` is not understood in type `{text}`");
            }
        }
        Ok(Type { base: base.into(), alias, modifiers })
    }

    /// Whether the operator writes the tensor.
    pub(crate) fn is_written(&self) -> bool {
        self.alias.as_ref().is_some_and(|a| a.write)
    }

    /// Without aliases: `Tensor[]`, `SymInt[2]?`.
    pub(crate) fn plain(&self) -> Type {
        Type { alias: None, ..self.clone() }
    }

    pub(crate) fn is_list(&self) -> bool {
        self.modifiers.iter().any(|m| matches!(m, Modifier::List(_)))
    }

    /// The whole may be absent (`int[]?`, not `Tensor?[]`).
    pub(crate) fn is_optional(&self) -> bool {
        self.modifiers.last() == Some(&Modifier::Optional)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)?;
        if let Some(alias) = &self.alias {
            write!(f, "({alias})")?;
        }
        for m in &self.modifiers {
            match m {
                Modifier::Optional => f.write_str("?")?,
                Modifier::List(None) => f.write_str("[]")?,
                Modifier::List(Some(n)) => write!(f, "[{n}]")?,
            }
        }
        Ok(())
    }
}

impl Alias {
    fn parse(text: &str) -> Result<Alias> {
        let (before, after) = match text.split_once("->") {
            Some((before, after)) => (before.trim(), Some(after.trim().to_owned())),
            None => (text.trim(), None),
        };
        let (sets, write) = before.strip_suffix('!').map_or((before, false), |sets| (sets, true));
        let sets: Vec<String> = sets.split('|').map(|s| s.trim().to_owned()).collect();
        ensure!(sets.iter().all(|s| s == "*" || s.chars().all(|c| c.is_ascii_lowercase())), "alias `{text}`");
        Ok(Alias { sets, write, after })
    }
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sets.join("|"))?;
        f.write_str(if self.write { "!" } else { "" })?;
        self.after.as_ref().map_or(Ok(()), |after| write!(f, " -> {after}"))
    }
}

impl Schema {
    /// Of the text after `func:`.
    pub(crate) fn parse(text: &str) -> Result<Schema> {
        Schema::try_parse(text.trim()).with_context(|| format!("schema `{text}`"))
    }

    fn try_parse(text: &str) -> Result<Schema> {
        let (call, returns) = text.rsplit_once(" -> ").ok_or_else(|| anyhow!("no `->`"))?;
        let (name, arguments) = call.split_once('(').ok_or_else(|| anyhow!("no argument list"))?;
        let arguments = arguments.strip_suffix(')').ok_or_else(|| anyhow!("argument list not closed"))?;
        let mut keyword_only = false;
        let mut parsed = Vec::new();
        for text in split(arguments) {
            if text == "*" {
                ensure!(!keyword_only, "two `*`");
                keyword_only = true;
                continue;
            }
            parsed.push(Argument::parse(text, keyword_only)?);
        }
        let inner = returns.strip_prefix('(').and_then(|r| r.strip_suffix(')'));
        let list = inner.map_or_else(|| vec![returns], split);
        let returns = list.into_iter().map(Return::parse).collect::<Result<_>>()?;
        Ok(Schema { name: Name::parse(name)?, arguments: parsed, returns, tuple: inner.is_some() })
    }

    /// The functional form of an in-place schema, under another name: what `autogen` stands for.
    pub(crate) fn functional(&self, name: Name) -> Schema {
        let mut s = self.clone();
        s.name = name;
        for a in &mut s.arguments {
            a.ty.alias = None;
        }
        s.returns = vec![Return { ty: Type { base: "Tensor".into(), alias: None, modifiers: vec![] }, name: None }];
        s
    }

    /// Arguments without aliases or `out` tensors, and their types: equal for the variants of one operator.
    pub(crate) fn key(&self) -> Vec<(String, String)> {
        let is_out = |a: &&Argument| !(a.keyword_only && a.ty.is_written());
        let plain = |a: &Argument| (a.name.clone(), a.ty.plain().to_string());
        self.arguments.iter().filter(is_out).map(plain).collect()
    }

    /// Whether results go to `out` arguments.
    pub(crate) fn is_out(&self) -> bool {
        self.arguments.iter().any(|a| a.keyword_only && a.ty.is_written())
    }
}

impl Argument {
    fn parse(text: &str, keyword_only: bool) -> Result<Argument> {
        let (ty, rest) = split_name(text).ok_or_else(|| anyhow!("argument `{text}` has no name"))?;
        let (name, default) = match rest.split_once('=') {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (rest, None),
        };
        Ok(Argument { ty: Type::parse(ty)?, name: name.into(), default, keyword_only })
    }
}

/// `Tensor(a -> *) self=...` into type and the rest: at the first space outside parentheses.
fn split_name(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    text.char_indices().find_map(|(i, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ' ' if depth == 0 => return Some((&text[..i], &text[i + 1..])),
            _ => {}
        }
        None
    })
}

impl Return {
    fn parse(text: &str) -> Result<Return> {
        Ok(match split_name(text) {
            Some((ty, name)) => Return { ty: Type::parse(ty)?, name: Some(name.into()) },
            None => Return { ty: Type::parse(text)?, name: None },
        })
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.ty, self.name)?;
        self.default.as_ref().map_or(Ok(()), |d| write!(f, "={d}"))
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        let mut keyword_only = false;
        for (i, a) in self.arguments.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            if a.keyword_only && !keyword_only {
                f.write_str("*, ")?;
                keyword_only = true;
            }
            write!(f, "{a}")?;
        }
        f.write_str(if self.tuple { ") -> (" } else { ") -> " })?;
        for (i, r) in self.returns.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { ", " }, r.ty)?;
            r.name.as_ref().map_or(Ok(()), |name| write!(f, " {name}"))?;
        }
        f.write_str(if self.tuple { ")" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_grammar_parses_and_prints_back() {
        for text in [
            "abs(Tensor self) -> Tensor",
            "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
            "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
            "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
            "cat.names_out(Tensor[] tensors, Dimname dim, *, Tensor(a!) out) -> Tensor(a!)",
            "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
            "conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0) -> Tensor",
            "norm.x(Tensor self, int[1]? dim=None, *, str reduce=\"a, b\", ScalarType? dtype=None) -> Tensor",
            "_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()",
            "item(Tensor self) -> Scalar",
            "both(Tensor(a|b) self) -> (Tensor(a), Tensor(b))",
            "rand(SymInt[] size, *, Generator? generator, Device? device=None, bool? pin_memory=None) -> Tensor",
            "f(int[2] x=[0,1], float eps=1e-05) -> bool",
        ] {
            let schema = Schema::parse(text).expect(text);
            assert_eq!(schema.to_string(), text);
        }
    }

    #[test]
    fn parts_are_where_they_belong() {
        let s = Schema::parse("add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)");
        let s = s.expect("a schema");
        assert_eq!((s.name.base.as_str(), s.name.overload.as_str(), s.is_out()), ("add", "out", true));
        assert_eq!(s.arguments[2].default.as_deref(), Some("1"));
        assert!(s.arguments[2].keyword_only && !s.arguments[1].keyword_only && s.arguments[3].ty.is_written());
        let functional = Schema::parse("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
        assert_eq!(functional.expect("a schema").key(), s.key());
        assert!(Name::parse("add_.Tensor").is_ok_and(|n| n.is_in_place()));
    }

    #[test]
    fn mistakes_are_errors_that_show_the_text() {
        for (text, why) in [
            ("abs(Tensor self)", "no `->`"),
            ("abs(Tensr self) -> Tensor", "unknown type `Tensr`"),
            ("abs(Tensor) -> Tensor", "has no name"),
            ("abs(Tensor(a! self) -> Tensor", "not closed"),
            ("abs(*, *, Tensor self) -> Tensor", "two `*`"),
            ("abs.(Tensor self) -> Tensor", "empty overload"),
            ("abs(Tensor{} self) -> Tensor", "unknown type"),
        ] {
            let e = format!("{:#}", Schema::parse(text).expect_err(text));
            assert!(e.contains(why) || e.contains("has no name"), "{text}: {e}");
            assert!(e.contains(text), "{e}");
        }
    }
}
