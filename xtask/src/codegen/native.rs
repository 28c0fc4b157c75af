//! `native_functions.yaml`: every operator libtorch has.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use saphyr::{LoadableYamlNode, Yaml};

use super::schema::{Name, Schema};

/// One operator.
#[derive(Clone, Debug)]
pub(crate) struct Native {
    pub(crate) schema: Schema,
}

/// All operators by name.
#[derive(Debug)]
pub(crate) struct Natives(BTreeMap<String, Native>);

/// The file of the torch package in `.venv`, or in the active environment.
pub(crate) fn find(root: &Path) -> Option<PathBuf> {
    const WITHIN: &str = "torchgen/packaged/ATen/native/native_functions.yaml";
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let venv = root.join(".venv");
    // `make setup` links the torch package, which may be borrowed from elsewhere.
    let linked = fs::canonicalize(venv.join("libtorch")).ok().and_then(|torch| Some(torch.parent()?.join(WITHIN)));
    let inside = |env: PathBuf| {
        let pythons = fs::read_dir(env.join("lib")).into_iter().flatten().flatten();
        pythons.map(|python| python.path().join("site-packages").join(WITHIN)).collect::<Vec<_>>()
    };
    let candidates = linked.into_iter().chain(std::iter::once(venv).chain(active).flat_map(inside));
    candidates.into_iter().find(|path| path.is_file())
}

impl Natives {
    pub(crate) fn read(path: &Path) -> Result<Natives> {
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        Natives::parse(&text).with_context(|| path.display().to_string())
    }

    pub(crate) fn parse(text: &str) -> Result<Natives> {
        let documents = Yaml::load_from_str(text)?;
        let entries = documents.first().and_then(|d| d.as_sequence()).ok_or_else(|| anyhow!("not a list"))?;
        let mut all = BTreeMap::new();
        for entry in entries {
            let text = |name: &str| entry.as_mapping_get(name).and_then(|y| y.as_str());
            let func = text("func").ok_or_else(|| anyhow!("an entry without `func`"))?;
            let schema = Schema::parse(func)?;
            for name in text("autogen").unwrap_or_default().split(',').map(str::trim).filter(|n| !n.is_empty()) {
                let name = Name::parse(name)?;
                // Out variants follow from the functional form and are never rows.
                if !name.overload.ends_with("out") {
                    all.insert(name.to_string(), Native { schema: schema.functional(name) });
                }
            }
            all.insert(schema.name.to_string(), Native { schema });
        }
        Ok(Natives(all))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Native> {
        self.0.get(name)
    }

    /// In-place and out variants of a functional operator.
    pub(crate) fn variants(&self, of: &Schema) -> Vec<&Native> {
        let key = of.key();
        let (base, in_place) = (of.name.base.as_str(), format!("{}_", of.name.base));
        let variant = |n: &&Native| {
            let s = &n.schema;
            s.name != of.name && (s.name.base == in_place || s.name.base == base && s.is_out()) && s.key() == key
        };
        self.0.values().filter(variant).collect()
    }

    /// The functional operator of an in-place or out variant.
    pub(crate) fn functional(&self, of: &Schema) -> Option<&Native> {
        let base = of.name.base.strip_suffix('_').unwrap_or(&of.name.base);
        let key = of.key();
        self.0.values().find(|n| {
            let s = &n.schema;
            s.name.base == base && s.name != of.name && !s.is_out() && s.key() == key
        })
    }

    /// The name that looks most like this one.
    pub(crate) fn nearest(&self, name: &str) -> Option<&str> {
        let distance = |n: &&str| {
            let common = n.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
            (n.len() + name.len()).saturating_sub(2 * common)
        };
        self.0.keys().map(String::as_str).min_by_key(distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  structured_delegate: add.out
  tags: [core, pointwise]
- func: add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
# only in place
- func: zero_(Tensor(a!) self) -> Tensor(a!)
  autogen: zero, zero.out
  tags: core
";

    #[test]
    fn entries_variants_and_generated_forms_are_found() {
        let n = Natives::parse(YAML).expect("entries");
        let add = n.get("add.Tensor").expect("add");
        let names: Vec<_> = n.variants(&add.schema).iter().map(|v| v.schema.name.to_string()).collect();
        assert_eq!(names, ["add.out", "add_.Tensor"]);
        let zero = n.get("zero").expect("the generated form");
        assert_eq!(zero.schema.to_string(), "zero(Tensor self) -> Tensor");
        let in_place = n.get("zero_").expect("zero_");
        assert_eq!(n.functional(&in_place.schema).expect("zero").schema.name.to_string(), "zero");
        assert_eq!(n.nearest("add.Tensr"), Some("add.Tensor"));
    }
}
