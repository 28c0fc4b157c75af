//! Functions one can see at once: not too long, not nested too deep.

use syn::{
    Block, Expr,
    spanned::Spanned,
    visit::{self, Visit},
};

use super::{
    known::{Function, Known, gone},
    source::Tree,
};

/// From the line of the name to that of the closing brace.
const MAX_LINES: usize = 80;

/// Conditions, loops, closures and blocks inside each other.
const MAX_DEPTH: usize = 5;

/// Complaints about functions beyond what they may, and of listed ones that no longer are.
pub(super) fn check(tree: &Tree, known: &Known) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|file| !file.is_generated()) {
        let Some(syntax) = file.rust() else { continue };
        let mut reader = Reader::default();
        reader.visit_file(syntax);
        for Measured { name, line, lines, depth } in reader.found {
            let place = format!("{} in {}", name, file.path);
            let listed = known.function.iter().find(|x| x.file == file.path && x.name == name);
            let allowed = |of: fn(&Function) -> Option<usize>, limit| listed.and_then(of).unwrap_or(limit);
            let (most_lines, most_depth) = (allowed(|x| x.lines, MAX_LINES), allowed(|x| x.depth, MAX_DEPTH));
            if lines > most_lines {
                complaints.push(format!("{}:{line}: {name} has {lines} lines, more than {most_lines}", file.path));
            }
            if depth > most_depth {
                complaints.push(format!("{}:{line}: {name} nests {depth} deep, more than {most_depth}", file.path));
            }
            if lines > MAX_LINES || depth > MAX_DEPTH {
                found.push(place);
            }
        }
    }
    let listed: Vec<String> = known.function.iter().map(|x| format!("{} in {}", x.name, x.file)).collect();
    complaints.extend(gone(listed.iter().map(String::as_str), |case| found.iter().any(|x| x == case)));
    complaints
}

struct Measured {
    name: String,
    line: usize,
    lines: usize,
    depth: usize,
}

#[derive(Default)]
struct Reader {
    found: Vec<Measured>,
    /// The type or the function around.
    around: Vec<String>,
    depth: usize,
    deepest: usize,
}

impl Reader {
    /// Measures a function of this body.
    fn function(&mut self, name: &syn::Ident, body: &Block) {
        self.around.push(name.to_string());
        let outer = (std::mem::take(&mut self.depth), std::mem::take(&mut self.deepest));
        visit::visit_block(self, body);
        let (first, last) = (name.span().start().line, body.span().end().line);
        let name = self.around.join("::");
        self.found.push(Measured { name, line: first, lines: last + 1 - first, depth: self.deepest });
        (self.depth, self.deepest) = outer;
        self.around.pop();
    }

    /// Reads what is inside, one level deeper.
    fn deeper(&mut self, inside: impl FnOnce(&mut Self)) {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        inside(self);
        self.depth -= 1;
    }

    /// The conditions of an `if` and its `else if`s are at one level.
    fn condition(&mut self, of: &syn::ExprIf) {
        self.visit_expr(&of.cond);
        self.deeper(|reader| visit::visit_block(reader, &of.then_branch));
        match of.else_branch.as_ref().map(|(_, other)| &**other) {
            Some(Expr::If(other)) => self.condition(other),
            Some(Expr::Block(other)) => self.deeper(|reader| visit::visit_block(reader, &other.block)),
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let name = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        self.around.push(name.unwrap_or_else(|| "_".to_owned()));
        visit::visit_item_impl(self, item);
        self.around.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig.ident, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.sig.ident, body);
        }
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::If(x) => self.condition(x),
            // An arm that is a block is at the level of its `match`.
            Expr::Match(x) => {
                self.visit_expr(&x.expr);
                self.deeper(|reader| {
                    for arm in &x.arms {
                        reader.visit_pat(&arm.pat);
                        reader.without_block(&arm.body);
                    }
                });
            }
            Expr::ForLoop(x) => {
                self.visit_expr(&x.expr);
                self.deeper(|reader| visit::visit_block(reader, &x.body));
            }
            Expr::While(x) => {
                self.visit_expr(&x.cond);
                self.deeper(|reader| visit::visit_block(reader, &x.body));
            }
            Expr::Loop(x) => self.deeper(|reader| visit::visit_block(reader, &x.body)),
            Expr::Closure(x) if matches!(&*x.body, Expr::Block(_)) => self.deeper(|r| r.without_block(&x.body)),
            Expr::Block(_) | Expr::Unsafe(_) => self.deeper(|reader| reader.without_block(expr)),
            _ => visit::visit_expr(self, expr),
        }
    }
}

impl Reader {
    /// Reads an expression; if it is a block, at the present level.
    fn without_block(&mut self, expr: &Expr) {
        match expr {
            Expr::Block(x) => visit::visit_block(self, &x.block),
            Expr::Unsafe(x) => visit::visit_block(self, &x.block),
            other => self.visit_expr(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str, known: &str) -> Vec<String> {
        check(&Tree::of(&[("a.rs", text)]), &Known::parse(known).unwrap())
    }

    fn long(lines: usize) -> String {
        format!("impl A {{\nfn f() {{\n{}}}\n}}\n", "g();\n".repeat(lines - 2))
    }

    const DEEP: &str = "fn f() { if a { for b in c { match d { E => { while h { loop { i.map(|j| { k }) } } } } } } }";

    #[test]
    fn a_function_at_the_limit_passes() {
        assert_eq!(complaints(&long(80), ""), [""; 0]);
        assert_eq!(complaints(&DEEP.replace("{ k }", "k"), ""), [""; 0]);
        let chain = format!("fn f() {{ if a {{ }} {} }}", "else if b { }".repeat(9));
        assert_eq!(complaints(&chain, ""), [""; 0]);
    }

    #[test]
    fn a_long_function_is_found() {
        assert_eq!(complaints(&long(81), ""), ["a.rs:2: A::f has 81 lines, more than 80"]);
    }

    #[test]
    fn a_deep_function_is_found() {
        assert_eq!(complaints(DEEP, ""), ["a.rs:1: f nests 6 deep, more than 5"]);
        // A function inside another begins anew.
        let inner = DEEP.replace("{ k }", "{ fn l() { if m { } } }");
        assert_eq!(complaints(&inner, ""), ["a.rs:1: f nests 6 deep, more than 5"]);
    }

    #[test]
    fn the_list_only_shrinks() {
        let known = "[[function]]\nfile = 'a.rs'\nname = 'A::f'\nlines = 90\nreason = 'a table'\n";
        assert_eq!(complaints(&long(90), known), [""; 0]);
        assert_eq!(complaints(&long(91), known), ["a.rs:2: A::f has 91 lines, more than 90"]);
        assert!(complaints(&long(80), known)[0].contains("A::f in a.rs, which breaks the rule no more"));
    }
}
