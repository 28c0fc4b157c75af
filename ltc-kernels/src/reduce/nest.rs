//! A body with reductions, cut into stages.
//!
//! A reduction needs all elements of its row before anything can use what it gives. So a body with reductions is run in
//! stages: each goes over the elements once, reduces some values, and ends with what is computed once per row from what
//! was reduced. A stage is made of plain bodies: of the row's values it reads those that earlier stages made, and what
//! one stage computes per element another may find *carried* in scratch memory, if it is dear, or compute again.

use rustc_hash::FxHashMap;

use crate::ir::{Body, Code, Def, Lane, Val};

/// Where an input of a stage's body comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Feed {
    /// Elements of this input.
    Input(u32),
    /// A value of the row.
    Row(u32),
    /// Elements an earlier stage left.
    Carried(u32),
}

/// What becomes of an output of a stage's body over elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keep {
    /// This output's elements.
    Output(u32),
    Carried(u32),
    /// Folded to a value of the row.
    Reduce(Code, u32),
}

/// What becomes of an output of a stage's body over rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowKeep {
    Output(u32),
    Row(u32),
}

/// One pass over the elements of a row, and what follows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stage {
    pub(crate) elements: Body,
    pub(crate) feeds: Vec<Feed>,
    pub(crate) keeps: Vec<Keep>,
    pub(crate) rows: Body,
    /// Values of the row that `rows` reads.
    pub(crate) row_feeds: Vec<u32>,
    pub(crate) row_keeps: Vec<RowKeep>,
}

/// A body with reductions as stages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nest {
    /// The first stage has no elements: what rows can compute from their inputs alone.
    pub(crate) stages: Vec<Stage>,
    /// Lane of each value of a row.
    pub(crate) row_values: Vec<Lane>,
    /// Inputs that are values of a row: input and value.
    pub(crate) row_inputs: Vec<(u32, u32)>,
    /// Lane of each carried value.
    pub(crate) carried: Vec<Lane>,
}

/// How often a value is there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    /// Once.
    Uniform,
    /// Once per row.
    Row,
    Element,
}

/// Computing a value again costs less than keeping it, up to this many additions.
const CHEAP: usize = 4;

struct Cutter<'a> {
    body: &'a Body,
    level: Vec<Level>,
    /// The stage after which a row's value is there, or in which an element is computed.
    stage: Vec<usize>,
    /// Numbers of row values and of carried values.
    row: Vec<Option<u32>>,
    carry: Vec<Option<u32>>,
}

impl Nest {
    /// Cuts a body; `of_rows` says per input whether it has one element per row, `carry` whether values may be carried.
    pub(crate) fn new(body: &Body, of_rows: &[bool], carry: bool) -> Nest {
        let count = body.values.len();
        let mut c = Cutter {
            body,
            level: Vec::with_capacity(count),
            stage: Vec::with_capacity(count),
            row: vec![None; count],
            carry: vec![None; count],
        };
        c.place(of_rows);
        let mut nest = Nest::default();
        c.number_rows(&mut nest);
        if carry {
            c.number_carried(&mut nest);
        }
        let stages = c.stage.iter().copied().max().unwrap_or(0) + 1;
        nest.stages = (0..stages).map(|s| c.stage_of(s)).collect();
        nest
    }
}

impl Cutter<'_> {
    fn values(&self) -> std::ops::Range<usize> {
        0..self.body.values.len()
    }

    fn operands(&self, v: usize) -> impl Iterator<Item = usize> {
        self.body.operands(Val(v as u32)).iter().map(|o| o.0 as usize)
    }

    /// Levels, and stages: rows' inputs are there after stage 0, elements come in stage 1 and later.
    fn place(&mut self, of_rows: &[bool]) {
        for v in self.values() {
            let (level, stage) = match self.body.values[v].0 {
                Def::Number(..) | Def::Const(_) => (Level::Uniform, 0),
                Def::Input(i) if of_rows[i as usize] => (Level::Row, 0),
                Def::Input(_) => (Level::Element, 1),
                Def::Op(code, _) => {
                    let widest = self.operands(v).map(|o| self.level[o]).max().unwrap_or(Level::Uniform);
                    // Values of a row are there after their stage.
                    let ready = |o: usize| self.stage[o] + usize::from(self.level[o] == Level::Row);
                    let first = self.operands(v).map(ready).max().unwrap_or(0).max(1);
                    match widest {
                        // Of equal elements too: how many there are counts.
                        _ if code.reduces() => (Level::Row, first),
                        Level::Element => (Level::Element, first),
                        other => (other, self.operands(v).map(|o| self.stage[o]).max().unwrap_or(0)),
                    }
                }
            };
            self.level.push(level);
            self.stage.push(stage);
        }
    }

    fn reduces(&self, v: usize) -> bool {
        matches!(self.body.values[v].0, Def::Op(code, _) if code.reduces())
    }

    /// Gives a number to all values of the row that something elsewhere needs.
    fn number_rows(&mut self, nest: &mut Nest) {
        let mut wanted = vec![false; self.body.values.len()];
        for v in self.values() {
            for o in self.operands(v).filter(|&o| self.level[o] == Level::Row) {
                let elsewhere = self.level[v] == Level::Element || self.reduces(v) || self.stage[v] != self.stage[o];
                wanted[o] |= elsewhere;
            }
        }
        for v in self.values().filter(|&v| self.level[v] == Level::Row) {
            let input = if let Def::Input(i) = self.body.values[v].0 { Some(i) } else { None };
            if wanted[v] || self.reduces(v) || input.is_some() {
                let number = nest.row_values.len() as u32;
                self.row[v] = Some(number);
                nest.row_values.push(self.body.values[v].1);
                nest.row_inputs.extend(input.map(|i| (i, number)));
            }
        }
    }

    /// Gives a number to all dear elements that a later stage needs.
    fn number_carried(&mut self, nest: &mut Nest) {
        let mut cost = vec![0usize; self.body.values.len()];
        for v in self.values().filter(|&v| self.level[v] == Level::Element) {
            let Def::Op(code, _) = self.body.values[v].0 else { continue };
            cost[v] = self.operands(v).map(|o| cost[o]).sum::<usize>() + code.cost();
        }
        for v in self.values() {
            for o in self.operands(v).collect::<Vec<_>>() {
                let elements = self.level[o] == Level::Element && self.level[v] == Level::Element;
                if elements && self.stage[v] > self.stage[o] && cost[o] > CHEAP && self.carry[o].is_none() {
                    self.carry[o] = Some(nest.carried.len() as u32);
                    nest.carried.push(self.body.values[o].1);
                }
            }
        }
    }

    fn stage_of(&self, s: usize) -> Stage {
        let mut stage = Stage::default();
        let (mut targets, mut row_targets) = (Vec::new(), Vec::new());
        for v in self.values() {
            match self.level[v] {
                Level::Row if self.stage[v] == s => {
                    if let (true, Def::Op(code, args)) = (self.reduces(v), self.body.values[v].0) {
                        targets.push(args[0].0 as usize);
                        stage.keeps.push(Keep::Reduce(code, self.row[v].unwrap_or(0)));
                    } else if let (Some(row), Def::Op(..)) = (self.row[v], self.body.values[v].0) {
                        row_targets.push(v);
                        stage.row_keeps.push(RowKeep::Row(row));
                    }
                }
                Level::Element if self.stage[v] == s => {
                    if let Some(carried) = self.carry[v] {
                        targets.push(v);
                        stage.keeps.push(Keep::Carried(carried));
                    }
                }
                _ => {}
            }
        }
        for (i, o) in self.body.outputs.iter().enumerate().map(|(i, o)| (i as u32, o.0 as usize)) {
            let of_rows = self.level[o] != Level::Element;
            if self.stage[o] == s && of_rows {
                row_targets.push(o);
                stage.row_keeps.push(RowKeep::Output(i));
            } else if self.stage[o] == s {
                targets.push(o);
                stage.keeps.push(Keep::Output(i));
            }
        }
        let (elements, feeds) = self.extract(&targets, |v| match (self.level[v], self.body.values[v].0) {
            (Level::Row, _) => self.row[v].map(Feed::Row),
            (Level::Element, Def::Input(i)) => Some(Feed::Input(i)),
            (Level::Element, _) if self.stage[v] < s => self.carry[v].map(Feed::Carried),
            _ => None,
        });
        let made_here =
            |v: usize| self.stage[v] == s && !self.reduces(v) && matches!(self.body.values[v].0, Def::Op(..));
        let (rows, row_feeds) = self.extract(&row_targets, |v| self.row[v].filter(|_| !made_here(v)).map(Feed::Row));
        stage.elements = elements;
        stage.feeds = feeds;
        stage.rows = rows;
        stage.row_feeds = row_feeds.into_iter().map(|f| if let Feed::Row(r) = f { r } else { 0 }).collect();
        stage
    }

    /// What these values need, with some of it as inputs.
    fn extract(&self, targets: &[usize], cut: impl Fn(usize) -> Option<Feed>) -> (Body, Vec<Feed>) {
        let mut needed = vec![false; self.body.values.len()];
        targets.iter().for_each(|&t| needed[t] = true);
        for v in self.values().rev() {
            if needed[v] && cut(v).is_none() {
                self.operands(v).for_each(|o| needed[o] = true);
            }
        }
        let mut body = Body { ones: self.body.ones.clone(), ..Body::default() };
        let mut feeds: Vec<Feed> = Vec::new();
        let mut renamed: FxHashMap<usize, Val> = FxHashMap::default();
        for v in self.values().filter(|&v| needed[v]) {
            let (def, lane) = self.body.values[v];
            let def = match (cut(v), def) {
                (Some(feed), _) => {
                    feeds.push(feed);
                    Def::Input(feeds.len() as u32 - 1)
                }
                (None, Def::Op(code, args)) => {
                    Def::Op(code, args.map(|a| renamed.get(&(a.0 as usize)).copied().unwrap_or(Val(0))))
                }
                (None, other) => other,
            };
            renamed.insert(v, Val(body.values.len() as u32));
            body.values.push((def, lane));
        }
        body.outputs = targets.iter().map(|t| renamed[t]).collect();
        (body, feeds)
    }
}
