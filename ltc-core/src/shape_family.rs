//! Shape families: programs that differ in nothing but sizes share what one of them cost to compile.
//!
//! The first program of a skeleton is compiled for the sizes at hand. When a graph of the same skeleton comes with
//! other sizes, what both have in common is written down as a symbolic graph, and the program is respecialised. From
//! then on any sizes that meet the symbolic graph's assumptions are served so. Where an expression turns out too narrow
//! (two sizes were equal by chance) it is widened by the sizes seen since; where a size became one, or the program
//! cannot follow, the graph is compiled and founds a family of its own.

use std::sync::{Arc, Weak};

use hashlink::LruCache;
use ltc_backend::DeviceIndex;
use ltc_ir::{
    Graph, Hash128, Symbolic,
    symbolic::{has_same_skeleton, integers, skeleton},
};

use crate::cache::Program;

/// Families of one skeleton; the oldest goes.
const MAX_FAMILIES: usize = 8;
/// Most sets of sizes that a family's expressions are derived from.
const MAX_SEEN: usize = 6;

/// A graph that has no program yet.
pub(crate) struct Sizes<'a> {
    device: DeviceIndex,
    graph: &'a Arc<Graph>,
    skeleton: Hash128,
    integers: Vec<i64>,
}

impl<'a> Sizes<'a> {
    pub(crate) fn of(device: DeviceIndex, graph: &'a Arc<Graph>) -> Self {
        Sizes { device, graph, skeleton: skeleton(graph), integers: integers(graph) }
    }

    pub(crate) fn graph(&self) -> &'a Arc<Graph> {
        self.graph
    }
}

/// Programs of one skeleton that were made from one another.
struct ShapeFamily {
    number: u64,
    /// The graph it began with.
    graph: Arc<Graph>,
    /// The symbolic graph of the sizes that the family covers; `None` until it has served a second set of sizes.
    symbolic: Option<Arc<Symbolic>>,
    /// The values of the symbols for each set of sizes that the family's expressions were derived from.
    seen: Vec<Vec<i64>>,
    /// The last one made. Programs live in the cache, or with whoever holds them.
    program: Weak<Program>,
}

/// A program to respecialise, and how the family must change for it.
pub(crate) struct Candidate {
    number: u64,
    program: Arc<Program>,
    widened: Option<(Arc<Symbolic>, Vec<Vec<i64>>)>,
}

impl Candidate {
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// The symbolic graph that the family gets if this candidate is accepted; `None` if it stays as it is.
    pub(crate) fn widened(&self) -> Option<&Symbolic> {
        self.widened.as_ref().map(|(symbolic, _)| &**symbolic)
    }
}

impl ShapeFamily {
    /// The family's program as a candidate for these sizes, or the assumption that does not hold for them.
    fn candidate(&self, sizes: &Sizes<'_>) -> Result<Candidate, String> {
        let program = self.program.upgrade().ok_or("the program is gone")?;
        let number = self.number;
        let refusal = match &self.symbolic {
            Some(symbolic) => match symbolic.admit(&sizes.integers) {
                Ok(_) => return Ok(Candidate { number, program, widened: None }),
                Err(refusal) => refusal.to_string(),
            },
            None => "a size became one or zero, or was".into(),
        };
        let widened = self.widened(sizes).ok_or(refusal)?;
        Ok(Candidate { number, program, widened: Some(widened) })
    }

    fn widened(&self, sizes: &Sizes<'_>) -> Option<(Arc<Symbolic>, Vec<Vec<i64>>)> {
        if self.seen.len() >= MAX_SEEN {
            return None;
        }
        let mut all = vec![integers(&self.graph)];
        if let Some(symbolic) = &self.symbolic {
            all.extend(self.seen.iter().filter_map(|s| symbolic.integers_at(s)));
        }
        all.push(sizes.integers.clone());
        let symbolic = Symbolic::generalize(&self.graph, &all)?;
        let seen = all[1..].iter().map(|i| symbolic.admit(i).ok()).collect::<Option<_>>()?;
        Some((symbolic.into(), seen))
    }
}

/// All families of a session.
pub(crate) struct ShapeFamilies {
    by_skeleton: LruCache<(DeviceIndex, Hash128), Vec<ShapeFamily>>,
    next: u64,
}

impl ShapeFamilies {
    pub(crate) fn new(max_entries: usize) -> Self {
        ShapeFamilies { by_skeleton: LruCache::new(max_entries.max(1)), next: 0 }
    }

    fn of(&mut self, sizes: &Sizes<'_>) -> &[ShapeFamily] {
        let found = self.by_skeleton.get_mut(&(sizes.device, sizes.skeleton));
        found.map_or(&[], |families| {
            families.retain(|f| f.program.strong_count() > 0);
            families
        })
    }

    /// A compiled program founds a family.
    pub(crate) fn insert(&mut self, sizes: &Sizes<'_>, program: &Arc<Program>) {
        self.next += 1;
        let (number, graph, program) = (self.next, sizes.graph.clone(), Arc::downgrade(program));
        let family = ShapeFamily { number, graph, symbolic: None, seen: Vec::new(), program };
        let key = (sizes.device, sizes.skeleton);
        match self.by_skeleton.get_mut(&key) {
            Some(families) => {
                families.push(family);
                if families.len() > MAX_FAMILIES {
                    families.remove(0);
                }
            }
            None => drop(self.by_skeleton.insert(key, vec![family])),
        }
    }

    /// Programs that may be respecialised for these sizes, and why other families have none. Candidates whose
    /// assumptions hold without widening come first.
    pub(crate) fn candidates(&mut self, sizes: &Sizes<'_>) -> (Vec<Candidate>, Vec<String>) {
        let (mut candidates, mut refusals) = (Vec::new(), Vec::new());
        let other_sizes =
            |f: &&ShapeFamily| has_same_skeleton(&f.graph, sizes.graph) && f.graph.hash() != sizes.graph.hash();
        for family in self.of(sizes).iter().filter(other_sizes) {
            match family.candidate(sizes) {
                Ok(candidate) => candidates.push(candidate),
                Err(refusal) => refusals.push(refusal),
            }
        }
        candidates.sort_by_key(|c| c.widened.is_some());
        (candidates, refusals)
    }

    /// The program a candidate led to.
    pub(crate) fn accept(&mut self, sizes: &Sizes<'_>, candidate: Candidate, program: &Arc<Program>) {
        let families = self.by_skeleton.get_mut(&(sizes.device, sizes.skeleton));
        if let Some(family) = families.and_then(|f| f.iter_mut().find(|f| f.number == candidate.number)) {
            family.program = Arc::downgrade(program);
            if let Some((symbolic, seen)) = candidate.widened {
                (family.symbolic, family.seen) = (Some(symbolic), seen);
            }
        }
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        let all = self.by_skeleton.iter().flat_map(|(_, families)| families);
        all.filter_map(|f| f.symbolic.as_ref()).map(|s| s.to_string()).collect()
    }

    pub(crate) fn clear(&mut self) {
        self.by_skeleton.clear();
    }
}
