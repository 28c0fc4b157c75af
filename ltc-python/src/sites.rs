//! Lines of Python programs, for operations that are recorded.
//!
//! An operation is recorded with the instruction its program is at: that of the innermost frame outside torch and this
//! package. Two words tell it, and they are looked up in tables of the thread; the line is worked out when somebody
//! asks. Code objects that are in a table are held, so that their addresses are not those of others later.

use std::cell::{Cell, OnceCell};

use ltc_torch::SiteSource;
use parking_lot::Mutex;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::convert::{
    frames::{CodePosition, Frames, hold},
    lock::with_lock,
};

/// Code objects and positions kept per process.
const CODES: usize = 1 << 16;
const POSITIONS: usize = 1 << 16;
/// Code objects and positions that a thread finds without asking others.
const NEAR: usize = 512;

/// Whose code it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whose {
    /// torch's, or ours.
    Machinery,
    User,
}

/// Places of a process's Python code.
pub(crate) struct PythonSites {
    frames: Frames,
    /// Where a code object's instructions begin in it.
    begin: usize,
    /// Folders of torch and of this package.
    machinery: Vec<String>,
    table: Mutex<Table>,
}

/// Never held while waiting for the interpreter's lock.
#[derive(Default)]
struct Table {
    codes: FxHashMap<usize, (Whose, Py<PyAny>)>,
    positions: Vec<CodePosition>,
    ids: FxHashMap<CodePosition, u32>,
}

/// What a thread has seen last.
struct Near {
    codes: [Cell<(usize, Whose)>; NEAR],
    positions: [Cell<(CodePosition, u32)>; NEAR],
}

impl Default for Near {
    fn default() -> Self {
        let nowhere = CodePosition { code: 0, at: 0 };
        Near {
            codes: std::array::from_fn(|_| Cell::new((0, Whose::User))),
            positions: std::array::from_fn(|_| Cell::new((nowhere, 0))),
        }
    }
}

thread_local! {
    static NEAR_HERE: OnceCell<Box<Near>> = const { OnceCell::new() };
}

/// Spreads addresses over a thread's tables.
#[inline]
fn slot(address: usize) -> usize {
    (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) % NEAR
}

impl PythonSites {
    /// For this interpreter.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let class = py.import("types")?.getattr("CodeType")?;
        let begin = class.getattr("__basicsize__")?.extract()?;
        let modules = py.import("sys")?.getattr("modules")?;
        let mut machinery = Vec::new();
        for name in ["torch", "torch_ltc", "functorch"] {
            // Not all torches have the last.
            if let Ok(module) = modules.get_item(name)
                && let Ok(folders) = module.getattr("__path__")
            {
                for folder in folders.try_iter()? {
                    machinery.push(folder?.extract::<String>()? + "/");
                }
            }
        }
        let ask = std::env::var("LTC_SITES").is_ok_and(|how| how.trim() == "ask");
        Ok(PythonSites { frames: Frames::find(py, begin, ask), begin, machinery, table: Mutex::default() })
    }

    fn whose(&self, code: &Bound<'_, PyAny>) -> Whose {
        let file = code.getattr("co_filename").and_then(|f| f.extract::<String>()).unwrap_or_default();
        let generated = ["<frozen ", "<eval_with_key>", "<torch_"].iter().any(|start| file.starts_with(start));
        let is_machinery = generated || self.machinery.iter().any(|folder| file.starts_with(folder.as_str()));
        if is_machinery { Whose::Machinery } else { Whose::User }
    }

    #[inline]
    fn code(&self, near: &Near, code: usize) -> Option<Whose> {
        let seen = &near.codes[slot(code)];
        if let (known, whose) = seen.get()
            && known == code
        {
            return Some(whose);
        }
        let (whose, is_held) = self.code_anew(code)?;
        if is_held {
            seen.set((code, whose));
        }
        Some(whose)
    }

    /// Also whether it is held.
    #[cold]
    fn code_anew(&self, code: usize) -> Option<(Whose, bool)> {
        if let Some((whose, _)) = self.table.lock().codes.get(&code) {
            return Some((*whose, true));
        }
        with_lock(|py| {
            let object = hold(py, code);
            let whose = self.whose(&object);
            let mut table = self.table.lock();
            let is_held = table.codes.len() < CODES;
            if is_held {
                table.codes.entry(code).or_insert_with(|| (whose, object.clone().unbind()));
            }
            drop(table);
            (whose, is_held)
        })
    }

    #[inline]
    fn position(&self, near: &Near, place: CodePosition) -> Option<u32> {
        let seen = &near.positions[slot(place.at)];
        if let (known, id) = seen.get()
            && known == place
        {
            return Some(id);
        }
        let id = self.position_anew(place)?;
        seen.set((place, id));
        Some(id)
    }

    #[cold]
    fn position_anew(&self, place: CodePosition) -> Option<u32> {
        let table = &mut *self.table.lock();
        if let Some(&id) = table.ids.get(&place) {
            return Some(id);
        }
        if table.positions.len() == POSITIONS || !table.codes.contains_key(&place.code) {
            return None;
        }
        let id = table.positions.len() as u32;
        table.positions.push(place);
        table.ids.insert(place, id);
        Some(id)
    }
}

impl SiteSource for PythonSites {
    fn here(&self) -> Option<u32> {
        NEAR_HERE.with(|near| {
            let near = near.get_or_init(Box::default);
            let users = |place: CodePosition| match self.code(near, place.code) {
                Some(Whose::Machinery) => None,
                Some(Whose::User) => Some(self.position(near, place)),
                None => Some(None),
            };
            self.frames.find_map(users).flatten()
        })
    }

    fn describe(&self, position: u32) -> Option<String> {
        let words = |py: Python<'_>| -> Option<String> {
            let (place, code) = {
                let table = self.table.lock();
                let place = *table.positions.get(position as usize)?;
                (place, table.codes.get(&place.code)?.1.clone_ref(py))
            };
            let code = code.into_bound(py);
            let at = place.at.checked_sub(place.code + self.begin)?;
            let text = |name: &str| code.getattr(name).ok()?.extract::<String>().ok();
            let (file, name) = (text("co_filename")?, text("co_qualname")?);
            let mut lines = code.call_method0("co_lines").ok()?.try_iter().ok()?;
            let line = lines.find_map(|range| {
                let (from, to, line) = range.ok()?.extract::<(usize, usize, Option<u32>)>().ok()?;
                (from..to).contains(&at).then_some(line)
            });
            let line = line.flatten().map_or("?".to_owned(), |line| line.to_string());
            Some(format!("{file}:{line} in {name}"))
        };
        with_lock(words).flatten()
    }
}
