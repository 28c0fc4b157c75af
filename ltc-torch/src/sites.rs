//! Where in the user's program an operation was recorded.
//!
//! An operation is recorded with a number for the place its caller's code was at. A language binding tells it, or else
//! it is the chain of return addresses on the stack ([`Callers`]). Words are made of it when somebody asks.

use std::{cell::RefCell, sync::OnceLock};

use ltc_core::SiteResolver;
use ltc_ir::SiteId;
use ltc_torch_sys::Callers;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// All sites of a process.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    stacks: Vec<Stack>,
    ids: FxHashMap<Stack, SiteId>,
}

/// Return addresses: a call site before anyone asks for words.
type Stack = Box<[usize]>;

/// Tells where a program in another language is.
pub trait SiteSource: Send + Sync {
    /// A number for the place in the code that this thread is at, less than 2^31; `None` where it runs none, or too
    /// many are known already. Asked for each operation.
    fn here(&self) -> Option<u32>;

    /// The place in words: file, line, function.
    fn describe(&self, position: u32) -> Option<String>;
}

/// Set in sites that a language binding told.
const FOREIGN: u32 = 1 << 31;

static SOURCE: OnceLock<Box<dyn SiteSource>> = OnceLock::new();

/// Lets a language binding tell where its program is, instead of return addresses.
pub fn set_site_source(source: impl SiteSource + 'static) {
    let _ = SOURCE.set(Box::new(source));
}

/// Stacks kept per process.
const STACKS: usize = 1 << 16;

thread_local! {
    static CALLERS: RefCell<Callers> = RefCell::default();
}

impl Sites {
    /// The site of the operation being recorded on this thread.
    #[inline]
    pub(crate) fn current(&self) -> SiteId {
        if let Some(source) = SOURCE.get() {
            return source.here().map_or_else(SiteId::default, |position| SiteId(position | FOREIGN));
        }
        // A thread that is ending has dropped its `CALLERS` already.
        let known = CALLERS.try_with(|callers| callers.borrow_mut().here(&mut |stack| self.id(stack)));
        known.ok().flatten().map_or_else(SiteId::default, SiteId)
    }

    fn id(&self, stack: &[usize]) -> Option<u32> {
        let table = &mut *self.table.lock();
        if let Some(&id) = table.ids.get(stack) {
            return Some(id.0);
        }
        if table.stacks.len() == STACKS {
            return None;
        }
        table.stacks.push(stack.into());
        let id = SiteId(table.stacks.len() as u32);
        table.ids.insert(stack.into(), id);
        Some(id.0)
    }
}

/// Crates between the user and the recorder, by the folders they are compiled in: a name, and a version where a
/// registry made the folder.
const MACHINERY: [&str; 10] = [
    "tch",
    "torch-sys",
    "backtrace",
    "ltc-torch",
    "ltc-torch-sys",
    "ltc-core",
    "ltc-ir",
    "ltc-kernels",
    "ltc-ts",
    "ltc-eager-fallback",
];

/// Whether a file is neither the user's nor of a library the user called, but ours, libtorch's or the language's.
fn is_machinery(path: &str) -> bool {
    let ours = |folder: &str| {
        MACHINERY.iter().any(|&name| {
            let version = folder.strip_prefix(name);
            version.is_some_and(|v| {
                v.is_empty() || v.strip_prefix('-').is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()))
            })
        })
    };
    let mut folders = path.split('/').peekable();
    let mut within = false;
    while let (Some(folder), Some(&next)) = (folders.next(), folders.peek()) {
        within |= next == "src" && ours(folder);
    }
    within || path.starts_with("/rustc/") || path.starts_with("library/") || !path.ends_with(".rs")
}

impl SiteResolver for Sites {
    fn unknown(&self) -> Option<String> {
        Some("an unknown place".into())
    }

    fn describe(&self, site: SiteId) -> Option<String> {
        if site.0 & FOREIGN != 0 {
            return SOURCE.get()?.describe(site.0 & !FOREIGN);
        }
        let stack = self.table.lock().stacks.get((site.0 as usize).checked_sub(1)?)?.clone();
        let (mut line, mut function, mut has_lines) = (None, None, false);
        for code in stack {
            // A return address is that of the instruction behind the call, which may belong to another line.
            backtrace::resolve((code - 1) as *mut _, |symbol| {
                let name = symbol.name().map(|n| format!("{n:#}"));
                let Some(file) = symbol.filename() else {
                    function = function.take().or_else(|| name.filter(|n| is_users(n)));
                    return;
                };
                has_lines |= symbol.lineno().is_some();
                if line.is_none() && !is_machinery(&file.display().to_string()) {
                    let name = name.map(|n| format!(" in {n}")).unwrap_or_default();
                    line = Some(format!("{}:{}{name}", file.display(), symbol.lineno().unwrap_or(0)));
                }
            });
            // The innermost function of the user's recorded the operation; callers farther out are of no interest.
            if line.is_some() || function.is_some() {
                break;
            }
        }
        // If lines are known and none is the user's, one of autograd's threads recorded the operation in a backward
        // pass, and the hint would be wrong.
        let no_lines = line.is_none() && (function.is_some() || !has_lines);
        let hint = if no_lines {
            " (the program has no line numbers: build it with `debug = \"line-tables-only\"`)"
        } else {
            ""
        };
        line.or(function).or_else(|| self.unknown()).map(|place| format!("{place}{hint}"))
    }
}

/// Whether a function belongs to a user's Rust code, judged by its name, since neither file nor line is known.
fn is_users(name: &str) -> bool {
    let language = ["core", "std", "alloc"];
    let start = name.trim_start_matches(['<', '&', '(']).trim_start_matches("dyn ");
    start.split_once("::").is_some_and(|(crate_name, _)| {
        !crate_name.starts_with("_Z")
            && !language.contains(&crate_name)
            && !MACHINERY.iter().any(|&m| m.replace('-', "_") == crate_name)
    })
}

#[cfg(test)]
mod tests {
    use super::{is_machinery, is_users};

    #[test]
    fn only_our_own_crates_and_the_languages_are_machinery() {
        for path in [
            "/r/tch-0.24.0/src/nn/linear.rs",
            "ltc-torch/src/lib.rs",
            "/p/ltc-core/src/a/b.rs",
            "/rustc/1/library/x.rs",
            "a.cpp",
        ] {
            assert!(is_machinery(path), "{path}");
        }
        for path in ["/p/tch-utils/src/main.rs", "/p/my-ltc-core/src/net.rs", "src/main.rs", "tests/tests/a.rs"] {
            assert!(!is_machinery(path), "{path}");
        }
    }

    #[test]
    fn functions_of_other_crates_are_the_users() {
        for name in ["demo::train", "<demo::Net as tch::nn::Module>::forward", "coreutils::run", "<dyn demo::Net>::go"]
        {
            assert!(is_users(name), "{name}");
        }
        for name in [
            "tch::Tensor::add",
            "<tch::nn::Linear as tch::nn::Module>::forward",
            "core::ops::call",
            "ltc_core::x",
            "main",
        ] {
            assert!(!is_users(name), "{name}");
        }
    }
}
