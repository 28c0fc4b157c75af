//! A memory budget: steps in an order in which less is alive at once, and cheap values made again instead of kept.
//!
//! Pure, over steps before they are lowered. The recorded order stays if it fits. If not, two other orders are tried,
//! which run steps that let go of memory earlier. If the better of them does not fit either, a value that lies idle
//! while memory is highest is let go and made again, provided that it is cheap (pointwise, or made from nothing) and
//! that its operands are there. The values of the program and their bits stay the same.

use ltc_ir::{ArgFlags, Graph, GraphNode, Op, OpClass, Props, ValueId};
use smallvec::SmallVec;

use crate::fusion::{NodeComputes, Plan, PlanItem, liveness};

/// Most values made again.
const MAX_REMATERIALISED: usize = 256;
/// Most values tried before one is chosen.
const MAX_TRIED: usize = 8;

/// Memory of a program under a budget, as planned from the sizes of values. Parameters count throughout, unless a step
/// writes them where they lie; work space of kernels does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryPlan {
    /// Bytes that may be alive at once.
    pub budget: usize,
    /// Most bytes alive at once, in the order recorded.
    pub recorded: usize,
    /// Most bytes alive at once as it runs.
    pub peak: usize,
    /// Steps that run at another place than recorded.
    pub moved: usize,
    /// Values rematerialised: let go, and made again when they are needed.
    pub rematerialised: usize,
}

/// Changes the steps of a plan so that they fit the budget, as far as possible.
pub(crate) fn fit(source: &Graph, plan: &mut Plan, budget: usize) -> MemoryPlan {
    let Plan { graph, items, computes, .. } = plan;
    let memory = Memory::new(graph.as_ref().unwrap_or(source));
    let mut lives = memory.lives(items.iter());
    let recorded = lives.peak;
    let (mut moved, mut rematerialised) = (0, 0);
    if recorded > budget {
        let orders = [false, true].map(|eager| memory.ordered(items, eager));
        let with_lives = orders.map(|o| (memory.lives(o.iter().map(|&i| &items[i as usize])), o));
        if let Some((there, order)) =
            with_lives.into_iter().min_by_key(|(l, _)| l.peak).filter(|(l, _)| l.peak < recorded)
        {
            moved = order.iter().enumerate().filter(|(to, from)| *to != **from as usize).count();
            take_order(items, &order);
            lives = there;
        }
        while lives.peak > budget && rematerialised < MAX_REMATERIALISED {
            let Some(better) = memory.rematerialise(items, computes, &lives, budget) else { break };
            (lives, rematerialised) = (better, rematerialised + 1);
        }
    }
    MemoryPlan { budget, recorded, peak: lives.peak, moved, rematerialised }
}

/// Most bytes alive at once.
pub(crate) fn peak(graph: &Graph, items: &[PlanItem]) -> usize {
    Memory::new(graph).lives(items).peak
}

fn take_order(items: &mut Vec<PlanItem>, order: &[u32]) {
    let mut all: Vec<Option<PlanItem>> = items.drain(..).map(Some).collect();
    items.extend(order.iter().filter_map(|&i| all[i as usize].take()));
}

/// Whose memory each value lies in, and how much that is.
struct Memory<'a> {
    graph: &'a Graph,
    /// Per slot the slot in whose memory it lies: of a view the base, otherwise itself.
    root: Vec<u32>,
    /// Per slot; 0 for views.
    bytes: Vec<usize>,
    /// Per slot: whether it lives to the end, as an output or a parameter.
    stays: Vec<bool>,
    /// Per slot: whether an output shows it.
    shown: Vec<bool>,
}

/// What is alive when.
struct Lives {
    /// Bytes while each step runs.
    during: Vec<usize>,
    peak: usize,
    /// Per slot that has memory: the spans of steps during which it is alive, each as its first and last step.
    spans: Vec<SmallVec<[(u32, u32); 1]>>,
}

impl Lives {
    /// How far a budget is exceeded, over all steps.
    fn excess(&self, budget: usize) -> usize {
        self.during.iter().map(|&b| b.saturating_sub(budget)).fold(0, usize::saturating_add)
    }

    fn has(&self, slot: usize, item: usize) -> bool {
        self.spans[slot].iter().any(|&(from, to)| (from as usize..=to as usize).contains(&item))
    }
}

impl<'a> Memory<'a> {
    fn new(graph: &'a Graph) -> Self {
        let count = graph.value_count();
        let (root, no) = ((0..count as u32).collect(), vec![false; count]);
        let mut memory = Memory { graph, root, bytes: vec![0; count], stays: no.clone(), shown: no };
        for (slot, layout) in graph.params().iter().enumerate() {
            (memory.bytes[slot], memory.stays[slot]) = (layout.storage_bytes(), true);
        }
        for node in graph.nodes() {
            for (result, layout) in node.result_ids().zip(node.results()) {
                match node.op() == Op::read_view() {
                    true => memory.root[graph.slot(result)] = memory.root[graph.slot(node.operands[0])],
                    false => memory.bytes[graph.slot(result)] = layout.storage_bytes(),
                }
            }
        }
        for &output in graph.outputs() {
            let root = memory.root(output);
            (memory.stays[root], memory.shown[root]) = (true, true);
        }
        memory
    }

    fn root(&self, v: ValueId) -> usize {
        self.root[self.graph.slot(v)] as usize
    }

    /// Slots a step makes that have memory of their own.
    fn makes(&self, item: &PlanItem) -> SmallVec<[usize; 2]> {
        let slots = item.results(self.graph).into_iter().map(|r| self.graph.slot(r));
        slots.filter(|&s| self.root[s] as usize == s).collect()
    }

    /// Slots whose memory a step reads, each once.
    fn reads(&self, item: &PlanItem) -> SmallVec<[usize; 4]> {
        let mut slots: SmallVec<[usize; 4]> = item.operands(self.graph).iter().map(|&o| self.root(o)).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Slots of the operands whose memory a result of the step takes over; `dies` says whether nobody reads a slot
    /// later.
    fn taken(&self, item: &PlanItem, dies: impl Fn(usize) -> bool) -> SmallVec<[usize; 2]> {
        let slot_of = |i: usize| self.graph.slot(item.operands(self.graph)[i]);
        // Only memory that no view or output shows can be taken over. A parameter counts as given away once a step
        // writes to it and nobody reads it afterwards.
        let whole = |s: usize| self.root[s] as usize == s && !self.shown[s];
        let free = |i: usize| whole(slot_of(i)) && dies(slot_of(i));
        match item {
            PlanItem::Node(n) => {
                let writes = liveness::written_operands(&self.graph.nodes()[*n as usize]);
                writes.iter().map(|&i| i as usize).filter(|&i| free(i)).map(slot_of).collect()
            }
            // Plans have these steps only without a budget: values are joined in place where no memory was planned.
            PlanItem::Alloc(_) | PlanItem::CopySlice { .. } => SmallVec::new(),
            PlanItem::Fused(kernel) => {
                kernel.reuse(self.graph, free).into_iter().flatten().map(|i| slot_of(i as usize)).collect()
            }
        }
    }

    fn lives<'s>(
        &self,
        items: impl IntoIterator<Item = &'s PlanItem, IntoIter: DoubleEndedIterator + ExactSizeIterator>,
    ) -> Lives {
        let items: Vec<&PlanItem> = items.into_iter().collect();
        let end = items.len() as u32;
        let mut spans: Vec<SmallVec<[(u32, u32); 1]>> = vec![SmallVec::new(); self.root.len()];
        // Backwards: `until` is the last step that reads what is there.
        let mut until: Vec<Option<u32>> = self.stays.iter().map(|&s| s.then_some(end)).collect();
        // Parameters written at their last use are let go there.
        let mut read_later = vec![false; self.root.len()];
        let mut gone: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); items.len()];
        for (i, item) in items.iter().enumerate().rev() {
            for slot in self.makes(item) {
                let to = until[slot].take().unwrap_or(i as u32);
                if !self.stays[slot] || spans[slot].is_empty() {
                    spans[slot].push((i as u32, to));
                }
                read_later[slot] = false;
            }
            gone[i] = self.taken(item, |s| !read_later[s]);
            for slot in self.reads(item) {
                until[slot].get_or_insert(i as u32);
                read_later[slot] = true;
            }
        }
        (0..self.graph.params().len()).for_each(|slot| spans[slot].push((0, end)));
        let (mut before, mut after) = (vec![0i64; items.len() + 1], vec![0i64; items.len() + 1]);
        for (slot, spans) in spans.iter().enumerate() {
            for &(from, to) in spans {
                before[from as usize] += self.bytes[slot] as i64;
                after[to as usize] -= self.bytes[slot] as i64;
            }
        }
        // A result that takes over memory asks for none: it counts as if that memory were returned before.
        for (i, slots) in gone.iter().enumerate() {
            for &slot in slots {
                before[i] -= self.bytes[slot] as i64;
                after[if self.stays[slot] { items.len() } else { i }] += self.bytes[slot] as i64;
            }
        }
        let mut alive = 0;
        let during: Vec<usize> = (0..items.len())
            .map(|i| {
                alive += before[i];
                let during = alive;
                alive += after[i];
                during.max(0) as usize
            })
            .collect();
        let peak = during.iter().copied().max().unwrap_or(0);
        Lives { during, peak, spans }
    }

    /// Another order of these steps, each of which must make values of its own. Of the steps that can run, the one that
    /// adds the fewest bytes comes first. With `eager`, only steps that add none are preferred, and all others keep the
    /// recorded order.
    fn ordered(&self, items: &[PlanItem], eager: bool) -> Vec<u32> {
        let mut maker = vec![u32::MAX; self.root.len()];
        for (i, item) in items.iter().enumerate() {
            item.results(self.graph).iter().for_each(|&r| maker[self.graph.slot(r)] = i as u32);
        }
        // Per slot with memory how many steps are still to read it, per step how many are still to run before it.
        let mut readers = vec![0u32; self.root.len()];
        let mut missing = vec![0u32; items.len()];
        let mut feeds: Vec<SmallVec<[u32; 4]>> = vec![SmallVec::new(); items.len()];
        for (i, item) in items.iter().enumerate() {
            self.reads(item).iter().for_each(|&s| readers[s] += 1);
            let mut before: SmallVec<[u32; 4]> = item
                .operands(self.graph)
                .iter()
                .map(|&o| maker[self.graph.slot(o)])
                .filter(|&m| m != u32::MAX)
                .collect();
            before.sort_unstable();
            before.dedup();
            missing[i] = before.len() as u32;
            before.iter().for_each(|&b| feeds[b as usize].push(i as u32));
        }
        let adds = |i: u32, readers: &[u32]| {
            let item = &items[i as usize];
            let sum = |slots: &[usize]| slots.iter().map(|&s| self.bytes[s] as i64).sum::<i64>();
            let made: SmallVec<[usize; 2]> =
                self.makes(item).into_iter().filter(|&s| readers[s] > 0 || self.stays[s]).collect();
            let freed: SmallVec<[usize; 4]> =
                self.reads(item).into_iter().filter(|&s| readers[s] == 1 && !self.stays[s]).collect();
            sum(&made) - sum(&freed)
        };
        let mut ready: Vec<u32> = (0..items.len() as u32).filter(|&i| missing[i as usize] == 0).collect();
        let mut order = Vec::with_capacity(items.len());
        while !ready.is_empty() {
            let key = |&(_, &i): &(usize, &u32)| {
                let adds = adds(i, &readers);
                (if eager && adds > 0 { i64::MAX } else { adds }, i)
            };
            let Some((at, _)) = ready.iter().enumerate().min_by_key(key) else { break };
            let next = ready.swap_remove(at);
            order.push(next);
            self.reads(&items[next as usize]).iter().for_each(|&s| readers[s] -= 1);
            for &fed in &feeds[next as usize] {
                missing[fed as usize] -= 1;
                if missing[fed as usize] == 0 {
                    ready.push(fed);
                }
            }
        }
        order
    }

    /// Chooses a value to let go while memory is highest and to make again when it is needed: of the largest idle
    /// values, the one that reduces the excess most.
    fn rematerialise(
        &self,
        items: &mut Vec<PlanItem>,
        computes: &NodeComputes,
        lives: &Lives,
        budget: usize,
    ) -> Option<Lives> {
        let top = lives.during.iter().position(|&b| b == lives.peak)?;
        let reads = |s: usize, i: usize| self.reads(&items[i]).contains(&s);
        // A value is idle if it is alive while memory is highest and the step that runs then does not read it.
        let idle = |&slot: &usize| {
            self.bytes[slot] > 0
                && !self.stays[slot]
                && lives.spans[slot].iter().any(|&(from, to)| (from as usize) < top && to as usize > top)
                && !reads(slot, top)
        };
        let mut idle: Vec<usize> = (self.graph.params().len()..self.root.len()).filter(idle).collect();
        idle.sort_by_key(|&s| std::cmp::Reverse(self.bytes[s]));
        let mut best: Option<(usize, usize, Vec<PlanItem>, Lives)> = None;
        let mut tried = 0;
        for slot in idle {
            let Some((at, again)) = self.items_to_rematerialise(items, computes, lives, slot, top) else { continue };
            let new: Vec<&PlanItem> = items[..at].iter().chain(&again).chain(&items[at..]).collect();
            let there = self.lives(new);
            let excess = there.excess(budget);
            let better = best.as_ref().map_or(lives.excess(budget), |b| b.0);
            if there.peak <= lives.peak && excess < better {
                best = Some((excess, at, again, there));
            }
            tried += 1;
            if tried == MAX_TRIED {
                break;
            }
        }
        let (_, at, again, there) = best?;
        items.splice(at..at, again);
        Some(there)
    }

    /// The steps that make a value again, and views of it, and where they go: before its first use after `top`.
    fn items_to_rematerialise(
        &self,
        items: &[PlanItem],
        computes: &NodeComputes,
        lives: &Lives,
        slot: usize,
        top: usize,
    ) -> Option<(usize, Vec<PlanItem>)> {
        let at = (top + 1..items.len()).find(|&i| self.reads(&items[i]).contains(&slot))?;
        let (from, to) = *lives.spans[slot].iter().find(|&&(from, to)| (from as usize) < top && to as usize > top)?;
        // The value must also be used before `top`. Otherwise nobody would need the first copy.
        (from as usize + 1..top).find(|&i| self.reads(&items[i]).contains(&slot))?;
        let item = match &items[from as usize] {
            PlanItem::Node(n) => is_cheap(&self.graph.nodes()[*n as usize]).then_some(PlanItem::Node(*n))?,
            PlanItem::Fused(kernel) => {
                let value = kernel.results.iter().find(|&&r| self.graph.slot(r) == slot)?;
                PlanItem::Fused(Box::new(kernel.only(self.graph, computes, *value)?))
            }
            PlanItem::Alloc(_) | PlanItem::CopySlice { .. } => return None,
        };
        // Each operand is alive at `at`, or has only one span, which the second use then extends. An operand that was
        // itself let go and made again has several spans, and may be missing.
        let there = |&s: &usize| self.stays[s] || lives.has(s, at) || lives.spans[s].len() == 1;
        self.reads(&item).iter().all(there).then_some(())?;
        let views = items[from as usize + 1..at].iter().filter(|item| {
            let later = |s: usize| {
                items[at..=to as usize].iter().any(|x| x.operands(self.graph).iter().any(|&o| self.graph.slot(o) == s))
            };
            let view = |r: &ValueId| self.root(*r) == slot && self.graph.slot(*r) != slot && later(self.graph.slot(*r));
            item.results(self.graph).iter().any(view)
        });
        let views = views.filter_map(|s| if let PlanItem::Node(n) = s { Some(PlanItem::Node(*n)) } else { None });
        Some((at, std::iter::once(item).chain(views).collect()))
    }
}

/// Whether a call costs about what reading its operands does, and gives the same each time.
fn is_cheap(node: &GraphNode) -> bool {
    let writes = |arg: ltc_ir::Arg<'_>| match arg {
        ltc_ir::Arg::Tensor { operand, flags } => operand.is_some() && flags.has(ArgFlags::MUT),
        ltc_ir::Arg::Tensors { flags, .. } => flags.has(ArgFlags::MUT),
        ltc_ir::Arg::Generator { .. } => true,
        _ => false,
    };
    matches!(node.op().spec().class, OpClass::Pointwise | OpClass::Factory)
        && node.results().len() == 1
        && !node.op().has(Props::RANDOM)
        && !node.args().any(writes)
}
