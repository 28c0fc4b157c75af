//! Where in the user's program an operation was recorded.
//!
//! A stack walk costs microseconds, far too much for every operation. But a step that repeats records the same sequence
//! of operations from the same lines: the sequence since the last cut, folded into one word, names the position, and
//! the walk happens the first time a position is seen. Steady loops pay one look-up per operation. Two lines that record
//! the same operation after exactly the same sequence share a site, the first one's.

use std::{
    cell::RefCell,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use ltc_core::SiteResolver;
use ltc_ir::{Op, SiteId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// All sites of a process.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    /// Bumped at every cut: positions start anew.
    cuts: AtomicU64,
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
    /// A number for the place in the code that this thread is at, less than 2^31; `None` where it runs none, or too many are known
    /// already. Asked for each operation.
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

/// Positions kept per thread, and stacks per process.
const POSITIONS: usize = 1 << 16;
const STACKS: usize = 1 << 16;
/// Stack walks between two cuts: an endless sequence of new positions must not cost microseconds each.
const WALKS: u32 = 4096;
const DEPTH: usize = 96;

#[derive(Default)]
struct Here {
    cut: u64,
    position: u64,
    walks: u32,
    known: FxHashMap<u64, SiteId>,
    /// Positions of the last sequence in order, and the place in it: a repeated step looks nothing up.
    order: Vec<(u64, SiteId)>,
    next: usize,
}

impl Here {
    fn known(&mut self) -> Option<SiteId> {
        if let Some(&(position, site)) = self.order.get(self.next)
            && position == self.position
        {
            self.next += 1;
            return Some(site);
        }
        let site = *self.known.get(&self.position)?;
        if self.next < POSITIONS {
            self.order.truncate(self.next);
            self.order.push((self.position, site));
            self.next += 1;
        }
        Some(site)
    }
}

thread_local! {
    static HERE: RefCell<Here> = RefCell::default();
}

impl Sites {
    /// Pending work was cut off: the next operation is the first of a sequence.
    pub(crate) fn cut(&self) {
        self.cuts.fetch_add(1, Relaxed);
    }

    /// The site of the operation being recorded on this thread.
    #[inline]
    pub(crate) fn current(&self, op: Op) -> SiteId {
        if let Some(source) = SOURCE.get() {
            return source.here().map_or_else(SiteId::default, |position| SiteId(position | FOREIGN));
        }
        HERE.with_borrow_mut(|here| {
            let cut = self.cuts.load(Relaxed);
            if here.cut != cut {
                (here.cut, here.position, here.walks, here.next) = (cut, 0, 0, 0);
            }
            here.position = (here.position ^ op.hash128().0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17);
            if let Some(site) = here.known() {
                return site;
            }
            if here.walks == WALKS {
                return SiteId::default();
            }
            here.walks += 1;
            if here.known.len() == POSITIONS {
                here.known.clear();
            }
            let site = self.walk();
            here.known.insert(here.position, site);
            site
        })
    }

    #[cold]
    fn walk(&self) -> SiteId {
        let mut stack = Vec::with_capacity(DEPTH);
        backtrace::trace(|frame| {
            stack.push(frame.ip() as usize);
            stack.len() < DEPTH
        });
        let stack: Stack = stack.into();
        let mut table = self.table.lock();
        if let Some(&id) = table.ids.get(&stack) {
            return id;
        }
        if table.stacks.len() == STACKS {
            return SiteId::default();
        }
        table.stacks.push(stack.clone());
        let id = SiteId(table.stacks.len() as u32);
        table.ids.insert(stack, id);
        id
    }
}

/// Code between the user and the recorder, by parts of file paths.
const MACHINERY: [&str; 10] = [
    "/tch-",
    "/torch-sys-",
    "/backtrace-",
    "/rustc/",
    "library/std/",
    "ltc-torch/src/",
    "ltc-torch-sys/",
    "ltc-core/src/",
    "ltc-ir/src/",
    "ltc-ts/src/",
];

impl SiteResolver for Sites {
    fn unknown(&self) -> Option<String> {
        Some("an unknown place".into())
    }

    fn describe(&self, site: SiteId) -> Option<String> {
        if site.0 & FOREIGN != 0 {
            return SOURCE.get()?.describe(site.0 & !FOREIGN);
        }
        let stack = self.table.lock().stacks.get((site.0 as usize).checked_sub(1)?)?.clone();
        let mut found = None;
        for ip in stack {
            // The return address belongs to the instruction after the call.
            backtrace::resolve((ip - 1) as *mut _, |symbol| {
                let Some(file) = symbol.filename() else { return };
                let path = file.display().to_string();
                let machinery = MACHINERY.iter().any(|m| path.contains(m)) || !path.ends_with(".rs");
                if found.is_none() && !machinery {
                    let name = symbol.name().map(|n| format!(" in {n:#}")).unwrap_or_default();
                    found = Some(format!("{path}:{}{name}", symbol.lineno().unwrap_or(0)));
                }
            });
            if found.is_some() {
                break;
            }
        }
        found
    }
}
