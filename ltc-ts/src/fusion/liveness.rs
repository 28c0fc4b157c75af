//! Last uses: who needs a value last, and which written operands may lose their memory to the result.
//!
//! Pure: graph in, flags out.

use ltc_ir::{Arg, ArgFlags, Graph, GraphNode, Op, ValueId};
use smallvec::SmallVec;

/// When each value of a graph dies.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Per step and operand.
    ends: Vec<SmallVec<[End; 4]>>,
    /// Per step and result.
    made: Vec<SmallVec<[Liveness; 2]>>,
    /// Per parameter.
    params: Vec<Liveness>,
    /// Per slot ([`Graph::slot`]): whether it is an output.
    output: Vec<bool>,
}

/// Who wants a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Liveness {
    /// A later step, before the value is made again.
    pub(crate) by_step: bool,
    /// An output shows it, and no later step makes it again.
    pub(crate) as_output: bool,
}

/// What an operand of a step is to its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// It is used again, or the same step uses it again.
    No,
    /// The last use (the last place in the step, when it stands there more than once).
    Last,
    /// The last use, the only place in the step, and no output.
    Only,
}

/// One operand of a step, as the schedule sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OperandUse {
    /// Slot of the value.
    pub(crate) slot: u32,
    /// This is the value's last use (its last place in the step, when it stands there more than once).
    pub(crate) last: bool,
    /// The step writes this operand and nothing else can need the old value: its memory may become the result's. For a
    /// parameter that holds only if it was donated.
    pub(crate) reusable: bool,
}

impl Schedule {
    /// The schedule of a graph run node by node.
    pub(crate) fn new(graph: &Graph) -> Self {
        Schedule::over(graph, graph.nodes().iter().map(|n| (&n.operands[..], n.result_ids().collect())))
    }

    /// The schedule of steps with these operands and results, run in this order. What a step makes may have been made
    /// and let go before.
    pub(crate) fn over<'a>(
        graph: &Graph,
        steps: impl DoubleEndedIterator<Item = (&'a [ValueId], SmallVec<[ValueId; 2]>)>,
    ) -> Self {
        // Per slot who wants what is there now.
        let mut liveness = vec![Liveness::default(); graph.value_count()];
        graph.outputs().iter().for_each(|&o| liveness[graph.slot(o)].as_output = true);
        let output = liveness.iter().map(|w| w.as_output).collect();
        let (mut ends, mut made) = (Vec::new(), Vec::new());
        for (operands, results) in steps.rev() {
            // Of equal results the last one counts.
            let taken = results.iter().rev().map(|&r| std::mem::take(&mut liveness[graph.slot(r)]));
            let mut taken: SmallVec<[Liveness; 2]> = taken.collect();
            taken.reverse();
            made.push(taken);
            let mut here: SmallVec<[End; 4]> = SmallVec::from_elem(End::No, operands.len());
            for (position, operand) in operands.iter().enumerate().rev() {
                let liveness = &mut liveness[graph.slot(*operand)];
                if !liveness.by_step {
                    let only = !liveness.as_output && !operands[..position].contains(operand);
                    here[position] = if only { End::Only } else { End::Last };
                    liveness.by_step = true;
                }
            }
            ends.push(here);
        }
        ends.reverse();
        made.reverse();
        liveness.truncate(graph.params().len());
        Schedule { ends, made, params: liveness, output }
    }

    /// Who wants a parameter.
    pub(crate) fn param(&self, index: usize) -> Liveness {
        self.params[index]
    }

    /// Who wants a result of step `index`.
    pub(crate) fn made(&self, index: usize, result: usize) -> Liveness {
        self.made[index][result]
    }

    /// Whether the value is an output.
    pub(crate) fn is_output(&self, slot: usize) -> bool {
        self.output[slot]
    }

    /// Whether the value of operand `position` of step `index` is used nowhere else from there on: not later, not twice
    /// in this step, not as an output.
    pub(crate) fn dies(&self, index: usize, position: usize) -> bool {
        self.ends[index][position] == End::Only
    }

    /// The operands of step `index`, none of them reusable.
    pub(crate) fn uses(&self, graph: &Graph, operands: &[ValueId], index: usize) -> SmallVec<[OperandUse; 4]> {
        let one = |(&value, end): (&ValueId, &End)| OperandUse {
            slot: graph.slot(value) as u32,
            last: *end != End::No,
            reusable: false,
        };
        operands.iter().zip(&self.ends[index]).map(one).collect()
    }

    /// The operands of step `index`, which is this node's call.
    pub(crate) fn operands(&self, graph: &Graph, node: &GraphNode, index: usize) -> SmallVec<[OperandUse; 4]> {
        let mut uses = self.uses(graph, &node.operands, index);
        for position in written_operands(node) {
            // An operand that the node also reads keeps its old value until the node is done.
            let operand = &mut uses[position as usize];
            operand.reusable = self.dies(index, position as usize);
        }
        uses
    }
}

/// Positions of the operands a node writes, in the order of the results they yield.
pub(crate) fn written_operands(node: &GraphNode) -> SmallVec<[u32; 2]> {
    writes(node).iter().filter_map(|&w| w).collect()
}

/// The written arguments of a node, one entry per result they yield: the operand, or `None` for an argument whose old
/// contents do not matter.
pub(crate) fn writes(node: &GraphNode) -> SmallVec<[Option<u32>; 2]> {
    if node.op() == Op::write_view() {
        return SmallVec::from_iter([Some(0)]);
    }
    let mut writes = SmallVec::new();
    for arg in node.args() {
        match arg {
            Arg::Tensor { operand, flags } if flags.has(ArgFlags::MUT) => {
                writes.push(operand.map(|o| o as u32));
            }
            Arg::Tensors { len, mask, first_operand, flags } if flags.has(ArgFlags::MUT) => {
                let present = (0..len).filter(|i| mask[i / 64] >> (i % 64) & 1 == 1).count();
                writes.extend((first_operand..first_operand + present).map(|o| Some(o as u32)));
            }
            _ => {}
        }
    }
    writes
}

/// Positions of the generator operands of a node; their next states are its last results, in this order.
pub(crate) fn generators(node: &GraphNode) -> SmallVec<[u32; 1]> {
    node.args()
        .filter_map(|arg| match arg {
            Arg::Generator { operand } => Some(operand as u32),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ltc_ir::{ArgWriter, DType, GraphBuilder, Layout, LayoutRef, Props, SiteId};

    use super::*;

    fn layout() -> LayoutRef {
        Layout::contiguous(DType::F32, &[4]).into()
    }

    fn add(b: &mut GraphBuilder, written: bool, x: ValueId, y: ValueId) -> ValueId {
        let (name, flags) =
            if written { ("aten::add_.Tensor", ArgFlags::MUT) } else { ("aten::add.Tensor", ArgFlags::NONE) };
        let (words, _) = ArgWriter::new().tensor_with(flags).tensor().number(1i64.into()).finish();
        b.node(Op::intern(name, Props::NONE), words, &[x, y], 1, [layout()].into_iter().collect(), SiteId::default())
    }

    /// `last`/`reusable` flags of every node, as text: `L` last, `R` reusable as well, `.` neither.
    fn flags(graph: &Graph) -> Vec<String> {
        let s = Schedule::new(graph);
        (0..graph.nodes().len())
            .map(|i| {
                s.operands(graph, &graph.nodes()[i], i)
                    .iter()
                    .map(|o| match (o.last, o.reusable) {
                        (true, true) => 'R',
                        (true, false) => 'L',
                        (false, false) => '.',
                        (false, true) => '!',
                    })
                    .collect()
            })
            .collect()
    }

    #[test]
    fn a_chain_of_writes_reuses_everything() {
        let mut b = GraphBuilder::new();
        let (p, q) = (b.param(layout()), b.param(layout()));
        let x = add(&mut b, true, p, q);
        let y = add(&mut b, true, x, q);
        assert_eq!(flags(&b.finish(vec![y])), ["R.", "RL"]);
    }

    #[test]
    fn a_value_needed_later_is_not_reused() {
        let mut b = GraphBuilder::new();
        let (p, q) = (b.param(layout()), b.param(layout()));
        let x = add(&mut b, true, p, q);
        let y = add(&mut b, false, p, x);
        assert_eq!(flags(&b.finish(vec![y])), [".L", "LL"]);
    }

    #[test]
    fn an_output_is_not_reused() {
        let mut b = GraphBuilder::new();
        let (p, q) = (b.param(layout()), b.param(layout()));
        let x = add(&mut b, false, p, q);
        let y = add(&mut b, true, x, q);
        assert_eq!(flags(&b.finish(vec![x, y])), ["L.", "LL"]);
    }

    #[test]
    fn an_operand_read_beside_the_write_is_not_reused_and_freed_once() {
        let mut b = GraphBuilder::new();
        let p = b.param(layout());
        let y = add(&mut b, true, p, p);
        assert_eq!(flags(&b.finish(vec![y])), [".L"]);
    }

    #[test]
    fn fresh_writes_and_lists_keep_result_order() {
        let mut b = GraphBuilder::new();
        let (p, q, r) = (b.param(layout()), b.param(layout()), b.param(layout()));
        let mutated_fresh = ArgFlags::MUT.and(ArgFlags::FRESH);
        let (words, _) = ArgWriter::new()
            .tensor()
            .tensor_with(mutated_fresh)
            .tensors(&[true, false, true], ArgFlags::MUT)
            .generator()
            .finish();
        let op = Op::intern("test::mixed", Props::NONE);
        let results = std::iter::repeat_n(layout(), 4).collect();
        let v = b.node(op, words, &[p, q, r, p], 0, results, SiteId::default());
        let g = b.finish(vec![v]);
        assert_eq!(writes(&g.nodes()[0])[..], [None, Some(1), Some(2)]);
        assert_eq!(written_operands(&g.nodes()[0])[..], [1, 2]);
        assert_eq!(generators(&g.nodes()[0])[..], [3]);
    }
}
