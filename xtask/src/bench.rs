//! `cargo xtask bench`: the criterion benches of all crates, then models beside every peer; one Markdown table of both.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::peers::{self, BEGIN, END};

#[derive(clap::Args)]
pub(crate) struct BenchOptions {
    /// Replace the table in `docs/performance.md` and its rows in `README.md`, too; it goes to `target/bench.md` in any
    /// case.
    #[arg(long)]
    write: bool,
    /// Measure nothing: write the rows in `README.md` from the table in `docs/performance.md`.
    #[arg(long)]
    front: bool,
    /// Leave out the criterion benches: `--write` keeps their table as it is.
    #[arg(long)]
    no_criterion: bool,
    /// Seconds for each row of the paired runs.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Threads of each way in the paired runs; all processors if not given.
    #[arg(long)]
    threads: Option<usize>,
    /// Ways of the paired runs (`ltc,ltc.compile,compile,backend.ltc,jax,lazy`), all if not given.
    #[arg(long)]
    ways: Option<String>,
    /// Only these cases of the paired runs, or groups (`kernels`, `hub`).
    cases: Vec<String>,
}

/// Begins the second table.
const CRITERION: &str = "Criterion benches:";
/// Ways of `ltc-python/benches/paired.py`, as columns.
const WAYS: [(&str, &str); 6] = [
    ("ltc", "`ltc`"),
    ("ltc.compile", "`torch_ltc.compile`"),
    ("compile", "torch.compile"),
    ("backend.ltc", "its `backend=\"ltc\"`"),
    ("jax", "JAX"),
    ("lazy", "PyTorch LTC"),
];

/// What `paired.py --json` writes.
#[derive(Deserialize)]
struct Paired {
    load: f64,
    threads: u32,
    cases: BTreeMap<String, BTreeMap<String, Row>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Row {
    Timed { ratio: f64, first: f64, eager_first: f64 },
    Failed { error: String },
}

pub(crate) fn run(root: &Path, options: &BenchOptions) -> Result<()> {
    if options.front {
        return peers::write_front(root);
    }
    let start = SystemTime::now();
    if !options.no_criterion {
        execute(root, "cargo", &["bench", "--workspace", "--bench", "*"])?;
    }
    let json = root.join("target/paired.json");
    let (seconds, path) = (options.seconds.to_string(), json.display().to_string());
    let mut arguments = vec!["ltc-python/benches/paired.py", "--seconds", &seconds, "--json", &path];
    let threads = options.threads.map(|n| n.to_string());
    arguments.extend(threads.iter().flat_map(|n| ["--threads", n]));
    arguments.extend(options.ways.iter().flat_map(|ways| ["--ways", ways]));
    arguments.extend(options.cases.iter().map(String::as_str));
    execute(root, ".venv/bin/python", &arguments)?;
    let paired: Paired = serde_json::from_str(&fs::read_to_string(&json)?).context("target/paired.json")?;
    let machine = machine(root);
    let (threads, load) = (paired.threads, paired.load);
    let mut text = format!("{machine};\n{threads} thread(s) each; load before {load:.1}\n\n{}", models(&paired)?);
    if !options.no_criterion {
        let medians = criterion(&root.join("target/criterion"), start)?;
        let _ = write!(text, "\n{CRITERION}\n{machine}\n\n{medians}");
    }
    fs::write(root.join("target/bench.md"), &text)?;
    println!("{text}\nwritten to target/bench.md");
    if options.write {
        let page = root.join("docs/performance.md");
        fs::write(&page, replaced(&fs::read_to_string(&page)?, &text)?)?;
        peers::write_front(root)?;
    }
    Ok(())
}

fn execute(root: &Path, program: &str, arguments: &[&str]) -> Result<()> {
    println!("    {program} {}", arguments.join(" "));
    let status = Command::new(program).args(arguments).current_dir(root).env("TORCH_CPP_LOG_LEVEL", "ERROR").status();
    if !status.with_context(|| format!("{program} did not start (`make python` prepares it)"))?.success() {
        bail!("{program} {} failed", arguments.join(" "));
    }
    Ok(())
}

/// The page with other tables between its marks; the criterion benches of before where there are no new ones.
fn replaced(page: &str, tables: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).context("docs/performance.md has no begin mark")?;
    let (old, after) = rest.split_once(END).context("docs/performance.md has no end mark")?;
    let kept = match old.split_once(CRITERION) {
        Some((_, criterion)) if !tables.contains(CRITERION) => format!("\n{CRITERION}{criterion}"),
        _ => String::new(),
    };
    Ok(format!("{before}{BEGIN}{tables}{kept}{END}{after}"))
}

fn machine(root: &Path) -> String {
    let answer = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(root).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|s| !s.is_empty())
    };
    let unknown = || "unknown".to_owned();
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": ")).map_or("unknown", |(_, m)| m);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let rust = answer("rustc", &["--version"]).unwrap_or_else(unknown);
    let torch = answer(".venv/bin/python", &["-c", "import torch; print(torch.__version__)"]).unwrap_or_else(unknown);
    let commit = answer("git", &["rev-parse", "--short", "HEAD"]).unwrap_or_else(unknown);
    format!("{model}, {cores} cores; {rust}; torch {torch}; commit {commit}")
}

/// Steady state, eager time over each way's, and first steps as multiples of eager's first.
fn models(paired: &Paired) -> Result<String> {
    let mut text = String::from("| steps: eager time / | ");
    WAYS.iter().for_each(|(_, name)| _ = write!(text, "{name} | "));
    text += "first step: ltc | torch.compile |\n";
    text += &"|---".repeat(WAYS.len() + 3);
    text += "|\n";
    let mut reasons = Vec::new();
    for (case, rows) in &paired.cases {
        let _ = write!(text, "| {case} | ");
        for (way, name) in WAYS {
            match rows.get(way) {
                Some(Row::Timed { ratio, .. }) => _ = write!(text, "{ratio:.2} | "),
                Some(Row::Failed { error }) => {
                    reasons.push(format!("- {name}, {case}: {}\n", error.replace('|', "\\|")));
                    text += "fails | ";
                }
                None => text += "| ",
            }
        }
        for way in ["ltc", "compile"] {
            match rows.get(way) {
                Some(Row::Timed { first, eager_first, .. }) => _ = write!(text, "{:.1} | ", first / eager_first),
                _ => text += "| ",
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    let mut text = peers::with_means(&text)?;
    if !reasons.is_empty() {
        text += "\nWhat fails, and how:\n";
        text.extend(reasons);
    }
    Ok(text)
}

/// Medians of the benches that ran since `start`.
fn criterion(folder: &Path, start: SystemTime) -> Result<String> {
    #[derive(Deserialize)]
    struct Name {
        full_id: String,
    }
    #[derive(Deserialize)]
    struct Estimates {
        median: Estimate,
    }
    #[derive(Deserialize)]
    struct Estimate {
        point_estimate: f64,
    }
    let mut rows = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(&folder)? {
            entries.push(entry?.path());
        }
        folders.extend(entries.into_iter().filter(|p| p.is_dir()));
        let estimates = folder.join("estimates.json");
        let new =
            folder.ends_with("new") && estimates.metadata().and_then(|m| m.modified()).is_ok_and(|at| at >= start);
        if new {
            let name: Name = serde_json::from_str(&fs::read_to_string(folder.join("benchmark.json"))?)?;
            let estimates: Estimates = serde_json::from_str(&fs::read_to_string(&estimates)?)?;
            rows.insert(name.full_id, estimates.median.point_estimate);
        }
    }
    let mut text = String::from("| criterion bench | median |\n|---|---|\n");
    for (name, nanoseconds) in rows {
        let (value, unit) = match nanoseconds {
            n if n < 1e3 => (n, "ns"),
            n if n < 1e6 => (n / 1e3, "us"),
            n => (n / 1e6, "ms"),
        };
        let _ = writeln!(text, "| {name} | {value:.3} {unit} |");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_ratios_means_and_the_reason_of_what_fails() {
        let json = r#"{"load": 0.5, "threads": 1, "cases": {
            "a": {"ltc": {"ratio": 2.0, "first": 3.0, "eager_first": 2.0, "steady": 1.0},
                  "lazy": {"error": "RuntimeError: no | kernel"}},
            "b": {"ltc": {"ratio": 0.5, "first": 1.0, "eager_first": 2.0, "steady": 1.0}}}}"#;
        let text = models(&serde_json::from_str(json).expect("rows")).expect("a table");
        assert!(text.contains("| a | 2.00 | | | | | fails | 1.5 | |\n"), "{text}");
        assert!(text.contains("| b | 0.50 | | | | | | 0.5 | |\n"), "{text}");
        assert!(
            text.contains(
                "| geometric mean | 1.00 | | | | | | | |\n| geometric mean of the networks | | | | | | | | |\n"
            ),
            "{text}"
        );
        assert!(text.contains("- PyTorch LTC, a: RuntimeError: no \\| kernel\n"), "{text}");
    }

    #[test]
    fn criterion_benches_stay_where_they_are_not_measured() {
        let page = format!("a\n{BEGIN}old\n\n{CRITERION}\nthere\n\n| x | 1 |\n{END}z\n");
        let kept = replaced(&page, "new\n").expect("marks");
        assert_eq!(kept, format!("a\n{BEGIN}new\n\n{CRITERION}\nthere\n\n| x | 1 |\n{END}z\n"));
        let both = format!("new\n\n{CRITERION}\nhere\n\n| y | 2 |\n");
        assert_eq!(replaced(&page, &both).expect("marks"), format!("a\n{BEGIN}{both}{END}z\n"));
    }

    #[test]
    fn medians_of_this_run_are_collected_and_older_ones_are_not() {
        let folder = std::env::temp_dir().join(format!("ltc-xtask-bench-{}", std::process::id()));
        let new = folder.join("group/bench/new");
        fs::create_dir_all(&new).expect("a folder");
        fs::write(new.join("benchmark.json"), r#"{"full_id": "group/bench", "throughput": null}"#).expect("a file");
        let estimates = r#"{"mean": {"point_estimate": 1.0}, "median": {"point_estimate": 2500.0}}"#;
        fs::write(new.join("estimates.json"), estimates).expect("a file");
        let now = criterion(&folder, SystemTime::UNIX_EPOCH).expect("benches");
        let later = criterion(&folder, SystemTime::now() + std::time::Duration::from_secs(60)).expect("benches");
        fs::remove_dir_all(&folder).expect("the folder goes");
        assert!(now.contains("| group/bench | 2.500 us |\n"), "{now}");
        assert!(!later.contains("group/bench"), "{later}");
    }

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let page = format!("a\n{BEGIN}old\n{END}b\n");
        assert_eq!(replaced(&page, "new\n").expect("marks"), format!("a\n{BEGIN}new\n{END}b\n"));
        assert!(replaced("no marks", "new").is_err());
    }
}
