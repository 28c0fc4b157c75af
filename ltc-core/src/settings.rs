//! All `LTC_*` environment variables, of every crate: one table, which checks what the environment says and from which
//! `docs/configuration.md` is written.

use std::{env, fmt::Write};

/// An environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// `LTC_...`.
    pub name: &'static str,
    /// What it may say.
    pub kind: Kind,
    /// What holds without it, in words.
    pub default: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
}

/// What a variable may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number in these bounds.
    Number(usize, usize),
    /// On or off.
    Switch,
    /// On, off, or one of these words.
    SwitchOr(&'static [&'static str]),
    /// One of these words.
    Words(&'static [&'static str]),
    /// Checked by its reader; this describes it.
    Text(&'static str),
}

use Kind::{Number, Switch, SwitchOr, Text, Words};

const ANY: Kind = Number(0, usize::MAX);

const fn setting(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Setting {
    Setting { name, kind, default, doc }
}

/// All of them.
pub const SETTINGS: &[Setting] = &[
    setting("LTC_MAX_PENDING_NODES", ANY, "100000", "Pending operations at which the graph is sent by itself."),
    setting(
        "LTC_MAX_RETAINED_BYTES",
        ANY,
        "268435456",
        "Bytes of device memory that only pending operations hold at which the graph is sent by itself.",
    ),
    setting(
        "LTC_ASSUME_FAULTS",
        Switch,
        "off",
        "Take every operator for one that can fail: what storages held is kept for all of them.",
    ),
    setting(
        "LTC_CHECK_STEPS",
        ANY,
        "0",
        "Python: every so many replays of a compiled step, record it instead and compare; 0: never.",
    ),
    setting("LTC_CACHE_ENTRIES", ANY, "1024", "Programs kept."),
    setting("LTC_CACHE_BYTES", ANY, "268435456", "Memory the kept programs may take, in bytes."),
    setting("LTC_QUEUE_DEPTH", ANY, "2", "Programs that may wait for the executor before a sync waits."),
    setting("LTC_ASYNC", Switch, "on", "Run programs on the device's executor thread; off: on the caller's."),
    setting("LTC_INLINE", Switch, "on", "Run short programs on the caller's thread when the device is idle."),
    setting(
        "LTC_OVERLAP",
        Switch,
        "on",
        "Run programs that could use every processor on one, beside their caller, where that is expected to be faster.",
    ),
    setting("LTC_REUSE_NODES", Switch, "on", "Record a step into the nodes of the last one."),
    setting("LTC_DONATION", Switch, "on", "Let programs reuse the memory of inputs nobody holds any more."),
    setting("LTC_SLICE_PARAMS", Switch, "on", "Let a program serve dense slices of data wherever they begin."),
    setting(
        "LTC_SYMBOLIC",
        SwitchOr(&["auto"]),
        "auto",
        "Let a compiled program serve graphs that differ from its own in nothing but sizes.",
    ),
    setting("LTC_CHECK_CACHE", Switch, "off", "Compile again on every cache hit and compare the programs' texts."),
    setting(
        "LTC_FORCE_FALLBACK",
        Text("names of operators, with or without overload, and commas"),
        "none",
        "Operators that run eagerly.",
    ),
    setting(
        "LTC_DEVICES",
        Text("a number from 1 to 64, or cpu, cuda, cuda:N and commas"),
        "1",
        "How many `ltc` devices there are on the CPU, each with its own executor; or where each of them computes and \
         keeps its values.",
    ),
    setting(
        "LTC_FUSION",
        SwitchOr(&["exact"]),
        "on",
        "Which operators run in fused kernels; `exact`: where that changes no bit.",
    ),
    setting(
        "LTC_JIT",
        SwitchOr(&["now"]),
        "on",
        "Whether fused kernels become machine code, in the background or before their first run.",
    ),
    setting(
        "LTC_REWRITES",
        Text("all, none, names of rewrites and commas (only these), or names with a minus (all but these)"),
        "all",
        "Which whole-graph rewrites may apply.",
    ),
    setting("LTC_POOL_BYTES", ANY, "1073741824", "Bytes of free memory kept for the next run; 0 for none."),
    setting(
        "LTC_MEMORY_BUDGET",
        ANY,
        "0",
        "Bytes a program may have alive at once, as far as the order of its steps can help; 0 for no budget.",
    ),
    setting("LTC_SINGLE_THREAD_SMALL", Switch, "on", "Run on one thread what is too small for several."),
    setting(
        "LTC_NVRTC",
        Text("a folder"),
        "beside torch, or where the system's loader looks",
        "Where NVRTC is, NVIDIA's compiler, which kernels for GPUs are compiled by.",
    ),
    setting(
        "LTC_CUDA_CACHE",
        Text("a folder, or 0 for none"),
        "ltc in $XDG_CACHE_HOME or ~/.cache",
        "Where machine code of kernels for GPUs is kept from process to process; at most 256 MiB of it.",
    ),
    setting(
        "LTC_CUDA_GRAPHS",
        Switch,
        "on",
        "Take down programs whose inputs lie where they lay as graphs of CUDA's, each of which is one launch.",
    ),
    setting(
        "LTC_CUDA_SYNC",
        Switch,
        "off",
        "Wait after each step of a program on a GPU, so that an error names the operator and the line that failed.",
    ),
    setting(
        "LTC_SITES",
        SwitchOr(&["ask"]),
        "on",
        "Remember where operations were recorded, for error messages; ask: in Python, only by the interpreter's own \
         functions.",
    ),
    setting(
        "LTC_EXPECT_CALLS",
        Switch,
        "on",
        "Compare each call with the one that came next the last time before looking it up.",
    ),
    setting(
        "LTC_SMALL_PROBES",
        Switch,
        "on",
        "Ask an elementwise operator's kernel for its result layouts on one element, not on all.",
    ),
    setting(
        "LTC_ISA",
        Words(&["portable", "avx2", "avx512"]),
        "the best there is",
        "Instruction set of fused kernels, where the machine has it.",
    ),
    setting("LTC_TEST_CASES", ANY, "each test's own", "Cases a property test of this repository runs."),
    setting("LTC_TEST_SEED", ANY, "20", "Seed of this repository's random programs."),
    setting("LTC_TEST_BLESS", Switch, "off", "Tests of generated files write them."),
    setting(
        "LTC_SANITIZE",
        Text("names of sanitizers and commas"),
        "none",
        "Builds the C++ of this repository with sanitizers of the compiler (`make sanitize`).",
    ),
    setting("LTC_MATRIX_FULL", Switch, "off", "The operator matrix runs all its rows."),
    setting("LTC_MATRIX_OPS", Text("names of operators and commas"), "all", "Rows of the operator matrix to run."),
    setting("LTC_MATRIX_BLESS", Switch, "off", "The operator matrix writes its list of exceptions."),
    setting("LTC_MATRIX_TRACE", Switch, "off", "The operator matrix prints what it runs."),
    setting("LTC_MATRIX_SHOW", Switch, "off", "The operator matrix prints what it found."),
];

/// Variables that had another name: the former one, and today's. The former works for one release, with a warning.
pub const FORMER: &[(&str, &str)] = &[("LTC_NARROW", "LTC_SINGLE_THREAD_SMALL"), ("LTC_PARTS", "LTC_SLICE_PARAMS")];

/// A variable says what makes no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{name}={value}: expected {allowed}")]
pub struct BadSetting {
    /// The variable.
    pub name: String,
    /// What it says.
    pub value: String,
    /// What it may say.
    pub allowed: String,
}

const ON: [&str; 3] = ["1", "on", "true"];
const OFF: [&str; 3] = ["0", "off", "false"];

impl Kind {
    /// What may be said, in words.
    pub fn allowed(self) -> String {
        let switch = "1 (or on, true) or 0 (or off, false)";
        match self {
            Number(0, usize::MAX) => "a whole number".into(),
            Number(from, to) => format!("a whole number from {from} to {to}"),
            Switch => switch.into(),
            SwitchOr(words) => format!("{}, {switch}", words.join(", ")),
            Words(words) => words.join(" or "),
            Text(what) => what.into(),
        }
    }

    fn allows(self, text: &str) -> bool {
        let is_switch = || ON.contains(&text) || OFF.contains(&text);
        match self {
            Number(from, to) => text.parse().is_ok_and(|n: usize| (from..=to).contains(&n)),
            Switch => is_switch(),
            SwitchOr(words) => is_switch() || words.contains(&text),
            Words(words) => words.contains(&text),
            Text(_) => true,
        }
    }
}

/// What the environment says, checked.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    known: Vec<(&'static Setting, String)>,
    warnings: Vec<String>,
}

impl Environment {
    /// Of this process. Values are in lower case and without spaces around; empty ones say nothing.
    ///
    /// # Errors
    /// Fails where a variable says what it may not; names it, its value, and what it may say.
    pub fn from_env() -> Result<Environment, BadSetting> {
        Environment::of(
            env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))),
        )
    }

    /// Of these variables.
    ///
    /// # Errors
    /// Fails where a variable says what it may not; names it, its value, and what it may say.
    pub fn of(vars: impl IntoIterator<Item = (String, String)>) -> Result<Environment, BadSetting> {
        let (mut known, mut warnings) = (Vec::new(), Vec::new());
        let mut vars: Vec<_> = vars.into_iter().collect();
        // A former name comes after today's, which counts if both are set: the first of a name is found.
        vars.sort_by_key(|(name, _)| (FORMER.iter().any(|(former, _)| former == name), name.clone()));
        for (name, value) in vars {
            let today = FORMER.iter().find(|(former, _)| *former == name).map_or(&*name, |(_, today)| today);
            let Some(setting) = SETTINGS.iter().find(|s| s.name == today) else {
                if name.starts_with("LTC_") {
                    let nearest = SETTINGS.iter().min_by_key(|s| distance(s.name, &name)).map_or("", |s| s.name);
                    warnings.push(format!("{name} is no setting of LTC and does nothing; did you mean {nearest}?"));
                }
                continue;
            };
            if today != name {
                warnings.push(format!("{name} is called {today} now; the former name works for one release"));
            }
            let text = match setting.kind {
                Text(_) => value.trim().to_owned(),
                _ => value.trim().to_ascii_lowercase(),
            };
            if text.is_empty() {
                continue;
            }
            if !setting.kind.allows(&text) {
                return Err(setting.refuse(&value));
            }
            known.push((setting, text));
        }
        Ok(Environment { known, warnings })
    }

    /// What a variable says, if anything.
    pub fn text(&self, name: &str) -> Option<&str> {
        debug_assert!(SETTINGS.iter().any(|s| s.name == name), "{name} is not in the table");
        self.known.iter().find(|(setting, _)| setting.name == name).map(|(_, text)| &**text)
    }

    /// A number, if it is said.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.text(name)?.parse().ok()
    }

    /// Whether something is on, if it is said; words besides on and off mean on.
    pub fn switch(&self, name: &str) -> Option<bool> {
        Some(!OFF.contains(&self.text(name)?))
    }

    /// A sentence for each variable that looks like one of ours and is none, or has another name now.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl Setting {
    /// The error for this value.
    pub fn refuse(&self, value: &str) -> BadSetting {
        BadSetting { name: self.name.into(), value: value.into(), allowed: self.kind.allowed() }
    }
}

/// Letters to add, drop or change to make one of the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The table, for people.
pub fn markdown() -> String {
    let mut text = "# Settings\n\n\
                    Environment variables, read when the device is set up. One that says what it may not is an error \
                    there, one that is\n\
                    unknown a warning. Written by `LTC_TEST_BLESS=1 cargo test -p ltc-core --test settings` from \
                    `ltc-core/src/settings.rs`.\n\n\
                    | variable | values | default | |\n|---|---|---|---|\n"
        .to_owned();
    for Setting { name, kind, default, doc } in SETTINGS {
        let _ = writeln!(text, "| `{name}` | {} | {default} | {doc} |", kind.allowed());
    }
    text += "\nFormer names, which work for one release, with a warning:\n\n| former | now |\n|---|---|\n";
    for (former, today) in FORMER {
        let _ = writeln!(text, "| `{former}` | `{today}` |");
    }
    text
}
