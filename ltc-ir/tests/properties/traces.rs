//! Traces of random programs, canonicalised.

use ltc_ir::{
    ArgWriter, Canonical, LayoutRef, Operands, Results, Scalar, SiteId, Value, WeakValue, canonicalize, reachable,
    verify,
};
use proptest::{collection::vec, prelude::*};

use crate::random::{layout, op};

/// One line of a program; variables are picked among those alive.
#[derive(Clone, Debug)]
enum Step {
    Data(LayoutRef),
    Call { op: usize, operands: Vec<usize>, number: f64, results: Vec<LayoutRef> },
    Copy(usize),
    Drop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let call = (0usize..3, vec(any::<usize>(), 0..4), any::<f64>(), vec(layout(), 1..4));
    prop_oneof![
        2 => layout().prop_map(Step::Data),
        6 => call.prop_map(|(op, operands, number, results)| Step::Call { op, operands, number, results }),
        1 => any::<usize>().prop_map(Step::Copy),
        4 => any::<usize>().prop_map(Step::Drop),
    ]
}

fn program() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 0..60)
}

type V = Value<u32>;

/// What running a program leaves behind.
#[derive(Default)]
struct Machine {
    /// The program's variables.
    variables: Vec<V>,
    /// All nodes in recording order, as a recorder lists them.
    recording: Vec<WeakValue<u32>>,
    leaves: Vec<WeakValue<u32>>,
    numbers: Vec<u64>,
}

impl Machine {
    fn run(program: &[Step]) -> Machine {
        let mut m = Machine::default();
        for (line, step) in program.iter().enumerate() {
            let variable = |i: &usize| i.checked_rem(m.variables.len());
            match step {
                Step::Data(layout) => {
                    let leaf = Value::data(layout.clone(), m.leaves.len() as u32);
                    m.leaves.push(leaf.downgrade());
                    m.variables.push(leaf);
                }
                Step::Call { op: name, operands, number, results } => {
                    let operands: Operands<u32> =
                        operands.iter().filter_map(variable).map(|i| m.variables[i].clone()).collect();
                    let mut w = ArgWriter::new();
                    for _ in &operands {
                        w.tensor();
                    }
                    let (words, numbers) = w.number(Scalar::Float(*number)).finish();
                    m.numbers.extend(&numbers);
                    let layouts: Results = results.iter().cloned().collect();
                    let node = V::record(
                        ltc_ir::Signature::new(op(*name), words, layouts),
                        operands,
                        numbers,
                        SiteId(line as u32),
                    );
                    m.recording.push(node.downgrade());
                    let values: Vec<V> = match results.len() {
                        1 => vec![node],
                        n => (0..n).map(|i| node.result(i)).collect(),
                    };
                    if values.len() > 1 {
                        m.recording.extend(values.iter().map(V::downgrade));
                    }
                    m.variables.extend(values);
                }
                Step::Copy(i) => {
                    if let Some(i) = variable(i) {
                        m.variables.push(m.variables[i].clone());
                    }
                }
                Step::Drop(i) => {
                    if let Some(i) = variable(i) {
                        m.variables.swap_remove(i);
                    }
                }
            }
        }
        m
    }

    fn pending(&self) -> Vec<V> {
        self.recording.iter().filter_map(WeakValue::upgrade).collect()
    }

    fn holds(&self, value: &V) -> bool {
        self.variables.iter().any(|v| v.same(value))
    }

    /// How many pending operations the variables need, by walking.
    fn needed(&self) -> usize {
        let mut seen: Vec<V> = Vec::new();
        let mut work = self.variables.clone();
        while let Some(value) = work.pop() {
            if value.is_pending() && !seen.iter().any(|v| v.same(&value)) {
                value.inspect(|operands, _| work.extend(operands.iter().cloned()), |_| ());
                seen.push(value);
            }
        }
        seen.iter().filter(|v| v.result_index().is_none()).count()
    }
}

fn check(m: &Machine, c: &Canonical<u32>) -> Result<(), TestCaseError> {
    let graph = c.to_graph();
    prop_assert_eq!(verify(&graph), Ok(()));
    prop_assert!(c.matches(&graph));
    prop_assert_eq!(c.hash(), graph.hash());
    prop_assert_eq!(c.node_count(), graph.nodes().len());
    prop_assert_eq!(c.numbers.len(), graph.number_count());
    prop_assert_eq!(c.op_counts().values().sum::<usize>(), c.node_count());
    prop_assert!(c.sites().eq(graph.nodes().iter().map(|n| n.site)));
    prop_assert_eq!(c.outputs.len(), graph.outputs().len());
    for (value, &id) in c.outputs.iter().zip(graph.outputs()) {
        prop_assert!(m.holds(value) && value.is_pending());
        prop_assert_eq!(value.layout(), graph.layout(id));
    }
    for p in &c.params {
        let leaf = m.leaves[p.data as usize].upgrade().expect("a parameter's leaf is alive");
        prop_assert_eq!(p.donated, !m.holds(&leaf));
    }
    let mut bound: Vec<u32> = c.params.iter().map(|p| p.data).collect();
    bound.sort_unstable();
    bound.dedup();
    prop_assert_eq!(bound.len(), c.params.len(), "a leaf is one parameter");
    Ok(())
}

/// Changes one recorded operator of the kind that still matters; `None` if there is none.
fn another(program: &[Step], canonical: &Canonical<u32>, which: usize) -> Option<Vec<Step>> {
    let line = canonical.sites().nth(which.checked_rem(canonical.node_count())?)?.0 as usize;
    let mut other = program.to_vec();
    let Step::Call { op, .. } = &mut other[line] else { unreachable!("sites are lines of calls") };
    *op += 1;
    Some(other)
}

proptest! {
    #[test]
    fn a_program_becomes_the_graph_it_needs(program in program()) {
        let m = Machine::run(&program);
        let needed = m.needed();
        let held = m.pending().iter().filter(|v| m.holds(v)).count();
        let c = canonicalize(m.pending(), 1);
        check(&m, &c)?;
        prop_assert_eq!(c.outputs.len(), held);
        prop_assert_eq!(c.node_count(), needed);
        prop_assert!(c.outputs.iter().map(|v| v.site().0).is_sorted());
    }

    #[test]
    fn reaching_from_the_variables_is_the_same(program in program()) {
        let m = Machine::run(&program);
        let whole = canonicalize(m.pending(), 1);
        let (count, outputs, params) = (whole.node_count(), whole.outputs.len(), whole.params.len());
        drop(whole);
        let set = reachable(&m.variables, 2);
        let every = m.pending().iter().all(|v| v.is_reached(2));
        prop_assert!(every);
        let c = canonicalize(set, 3);
        check(&m, &c)?;
        prop_assert_eq!((c.node_count(), c.outputs.len(), c.params.len()), (count, outputs, params));
    }

    #[test]
    fn some_roots_need_no_more_than_they_reach(program in program(), root: usize) {
        let m = Machine::run(&program);
        let Some(i) = root.checked_rem(m.variables.len()) else { return Ok(()) };
        let root = m.variables[i].clone();
        let c = canonicalize(reachable(std::slice::from_ref(&root), 1), 2);
        let graph = c.to_graph();
        prop_assert_eq!(verify(&graph), Ok(()));
        prop_assert!(c.matches(&graph));
        prop_assert_eq!(c.outputs.iter().any(|v| v.same(&root)), root.is_pending());
        // What others outside the set still need is an output too: nothing is computed twice.
        let needed_outside = |v: &V| m.holds(v) || m.pending().iter().any(|u| !u.is_reached(1) && u.inspect(
            |operands, _| operands.iter().any(|o| o.same(v)), |_| false));
        prop_assert!(c.outputs.iter().all(needed_outside));
    }

    #[test]
    fn the_same_program_is_the_same_graph(program in program(), numbers in vec(any::<f64>(), 60)) {
        let m = Machine::run(&program);
        let c = canonicalize(m.pending(), 1);
        let graph = c.to_graph();
        let mut again = program.clone();
        for (step, x) in again.iter_mut().zip(numbers) {
            if let Step::Call { number, .. } = step {
                *number = x;
            }
        }
        let again = Machine::run(&again);
        let again = canonicalize(again.pending(), 9);
        prop_assert!(again.matches(&graph));
        prop_assert_eq!(again.to_graph(), graph);
        prop_assert!(again.params.iter().map(|p| p.donated).eq(c.params.iter().map(|p| p.donated)));
    }

    #[test]
    fn another_program_is_another_graph(program in program(), which: usize) {
        let m = Machine::run(&program);
        let c = canonicalize(m.pending(), 1);
        let Some(other) = another(&program, &c, which) else { return Ok(()) };
        let other = Machine::run(&other);
        let other = canonicalize(other.pending(), 1);
        prop_assert!(!other.matches(&c.to_graph()));
        prop_assert!(other.hash() != c.hash() && other.to_graph() != c.to_graph());
    }

    #[test]
    fn one_other_line_shows_exactly_if_the_text_does(program in program(), at: usize, by in step()) {
        let Some(at) = at.checked_rem(program.len()) else { return Ok(()) };
        let mut other = program.clone();
        other[at] = by;
        let (a, b) = (Machine::run(&program), Machine::run(&other));
        let (a, b) = (canonicalize(a.pending(), 1), canonicalize(b.pending(), 1));
        let (x, y) = (a.to_graph(), b.to_graph());
        let same = x.to_string() == y.to_string();
        prop_assert_eq!(x == y, same);
        prop_assert_eq!(a.hash() == b.hash(), same);
        prop_assert_eq!((a.matches(&y), b.matches(&x)), (same, same));
    }

    #[test]
    fn resolved_outputs_let_go_of_what_they_came_from(program in program()) {
        let m = Machine::run(&program);
        let c = canonicalize(m.pending(), 1);
        let retained = ltc_ir::canonicalize::retained_bytes(&m.pending(), 2);
        let graph = c.to_graph();
        let donated = c.params.iter().zip(graph.params()).filter(|(p, _)| p.donated);
        let donated: usize = donated.map(|(_, l)| l.storage_bytes()).sum();
        prop_assert_eq!(retained, donated);
        for value in &c.outputs {
            value.resolve(77);
            prop_assert!(!value.is_pending());
            prop_assert_eq!(value.inspect(|_, _| 0, |d| *d), 77);
        }
        drop(c);
        prop_assert!(m.pending().iter().all(|v| m.holds(v)));
        prop_assert!(m.leaves.iter().filter_map(WeakValue::upgrade).all(|v| m.holds(&v)));
        prop_assert_eq!(canonicalize(m.pending().into_iter().filter(V::is_pending).collect(), 3).node_count(), 0);
    }

    #[test]
    fn dropping_all_variables_drops_everything(program in program()) {
        let mut m = Machine::run(&program);
        m.variables.clear();
        prop_assert!(m.pending().is_empty());
        prop_assert!(m.leaves.iter().all(|l| !l.is_held()));
    }
}
