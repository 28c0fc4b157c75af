//! The environment is checked against one table, in which every variable is that any crate reads.

use std::{collections::BTreeSet, fs, path::Path};

use ltc_core::{
    Config,
    settings::{BadSetting, Environment, FORMER, SETTINGS, markdown},
};

fn vars(of: &[(&str, &str)]) -> Result<Environment, BadSetting> {
    Environment::of(of.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())))
}

#[test]
fn what_makes_no_sense_is_an_error_that_says_what_would() {
    for (name, value, allowed) in [
        ("LTC_FUSION", "exakt", "exact"),
        ("LTC_OVERLAP", "maybe", "1 (or on"),
        ("LTC_QUEUE_DEPTH", "many", "a whole number"),
        ("LTC_QUEUE_DEPTH", "-1", "a whole number"),
        ("LTC_ISA", "sse", "portable or avx2 or avx512"),
    ] {
        let error = vars(&[(name, value)]).expect_err(value).to_string();
        assert!(error.starts_with(&format!("{name}={value}: expected ")) && error.contains(allowed), "{error}");
    }
}

#[test]
fn what_is_said_counts_and_what_is_empty_says_nothing() -> Result<(), BadSetting> {
    let said = [
        ("LTC_MAX_PENDING_NODES", " 7 "),
        ("LTC_ASYNC", "OFF"),
        ("LTC_DONATION", ""),
        ("LTC_SYMBOLIC", "auto"),
        ("LTC_FORCE_FALLBACK", "aten::mm, aten::add.Tensor,"),
        ("PATH", "/bin"),
    ];
    let c = Config::from_vars(&vars(&said)?);
    assert_eq!(c.max_pending_nodes, 7);
    assert!(!c.async_execution && c.donation && c.symbolic);
    assert_eq!(c.force_fallback, ["aten::mm", "aten::add.Tensor"]);
    Ok(())
}

#[test]
fn an_unknown_variable_is_told_with_the_nearest_known_one() -> Result<(), BadSetting> {
    let unknown = vars(&[("LTC_FUSON", "1"), ("LTC_OVERLAPS", "1"), ("LTCX", "1")])?.warnings().to_vec();
    assert_eq!(unknown.len(), 2);
    assert!(unknown[0].starts_with("LTC_FUSON ") && unknown[0].contains("LTC_FUSION?"), "{unknown:?}");
    assert!(unknown[1].contains("LTC_OVERLAP?"), "{unknown:?}");
    Ok(())
}

#[test]
fn a_former_name_works_with_a_warning_unless_todays_is_there() -> Result<(), BadSetting> {
    let former = vars(&[("LTC_PARTS", "0")])?;
    assert_eq!((former.switch("LTC_SLICE_PARAMS"), former.warnings().len()), (Some(false), 1));
    assert!(former.warnings()[0].contains("LTC_SLICE_PARAMS"), "{:?}", former.warnings());
    assert!(vars(&[("LTC_PARTS", "x")]).is_err());
    for order in [[0, 1], [1, 0]] {
        let both = order.map(|i| [("LTC_PARTS", "0"), ("LTC_SLICE_PARAMS", "1")][i]);
        assert_eq!(vars(&both)?.switch("LTC_SLICE_PARAMS"), Some(true));
    }
    Ok(())
}

#[test]
fn defaults_are_as_the_table_says() -> Result<(), BadSetting> {
    let said: Vec<_> = SETTINGS
        .iter()
        .filter(|s| s.default.parse::<usize>().is_ok() || matches!(s.default, "on" | "off" | "auto"))
        .map(|s| (s.name, s.default))
        .collect();
    assert_eq!(Config::from_vars(&vars(&said)?), Config::default());
    Ok(())
}

fn sources(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let is_other = name.starts_with('.')
            || ["target", "csrc"].contains(&&*name)
            || path.ends_with("ltc-core/tests/settings.rs");
        if path.is_dir() && !is_other {
            sources(&path, found);
        } else if !is_other && (name.ends_with(".rs") || name.ends_with(".py")) {
            found.extend(fs::read_to_string(path));
        }
    }
}

/// Names in quotes, which is how variables are read.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.match_indices("\"LTC_").map(|(at, _)| &text[at + 1..]);
    let names = quoted.filter_map(|rest| rest.split(|c: char| !c.is_ascii_uppercase() && c != '_').next());
    names.filter(|name| *name != "LTC_")
}

#[test]
fn every_variable_anybody_reads_is_in_the_table_and_the_table_is_written_down() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut texts = Vec::new();
    sources(&root, &mut texts);
    let read: BTreeSet<&str> = texts.iter().flat_map(|text| names(text)).collect();
    let known: BTreeSet<&str> = SETTINGS.iter().map(|s| s.name).collect();
    assert_eq!(known.len(), SETTINGS.len(), "twice in the table");
    let former: BTreeSet<&str> = FORMER.iter().map(|(former, _)| *former).collect();
    assert_eq!(read.difference(&(&known | &former)).collect::<Vec<_>>(), Vec::<&&str>::new());
    let file = root.join("docs/configuration.md");
    if std::env::var_os("LTC_TEST_BLESS").is_some() {
        fs::write(&file, markdown())?;
    }
    assert_eq!(fs::read_to_string(&file)?, markdown(), "LTC_TEST_BLESS=1 writes it");
    Ok(())
}
