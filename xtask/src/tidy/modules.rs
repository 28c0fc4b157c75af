//! The modules of a crate as the compiler sees them: which file each is in, and where the paths in it lead.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Item, UseTree,
    visit::{self, Visit},
};

use super::source::{Tree, only_in_tests};

/// A crate, or another root file such as an integration test.
pub(super) struct Crate {
    /// The folder of a package, or the path of the root file.
    pub(super) name: String,
    /// The first is the root.
    pub(super) modules: Vec<Module>,
}

/// A module, without what is there only in tests.
#[derive(Default)]
pub(super) struct Module {
    /// Below the root, which has none.
    pub(super) path: Vec<String>,
    pub(super) file: String,
    parent: usize,
    children: BTreeMap<String, usize>,
    /// Names that `use` brings, and the paths they stand for.
    imported: BTreeMap<String, Vec<String>>,
    /// Paths of which `use` brings all names.
    globs: Vec<Vec<String>>,
    items: BTreeSet<String>,
    /// Types that other modules can name, with their lines.
    pub(super) types: Vec<(String, usize)>,
    /// Paths to elsewhere in the crate, with their lines.
    paths: Vec<(Vec<String>, usize)>,
}

/// A use of one module by another.
pub(super) struct Arrow<'a> {
    pub(super) from: &'a Module,
    pub(super) to: &'a Module,
    pub(super) line: usize,
}

/// The crates of a tree.
pub(super) fn crates(tree: &Tree) -> Vec<Crate> {
    tree.files.iter().filter_map(|file| Some(Crate::read(tree, root_name(&file.path)?, &file.path))).collect()
}

/// The name of the crate whose root this file is, if it is one.
fn root_name(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let name = match parts[..] {
        [package, "src", "lib.rs"] => package,
        [_, "src", "main.rs"] | [_, "src", "bin", _] => path,
        [_, "tests" | "benches" | "examples", _] => path,
        [_, "tests" | "benches" | "examples", _, "main.rs"] => path,
        _ => return None,
    };
    path.ends_with(".rs").then(|| name.trim_end_matches(".rs").to_owned())
}

impl Crate {
    fn read(tree: &Tree, name: String, root: &str) -> Crate {
        let mut new = Crate { name, modules: Vec::new() };
        let module = Module { file: root.to_owned(), ..Module::default() };
        let folder = Path::new(root).parent().unwrap_or(Path::new("")).to_string_lossy().into_owned();
        if let Some(file) = tree.file(root).and_then(|file| file.rust()) {
            new.add(tree, module, &file.items, &folder);
        }
        new
    }

    /// Adds a module and those below it, whose files are in `folder`.
    fn add(&mut self, tree: &Tree, module: Module, items: &[Item], folder: &str) -> usize {
        let at = self.modules.len();
        let (path, file) = (module.path.clone(), module.file.clone());
        self.modules.push(module);
        let mut reader = Reader { module: &mut self.modules[at] };
        items.iter().for_each(|item| reader.visit_item(item));
        for item in items {
            let Item::Mod(child) = item else { continue };
            if only_in_tests(&child.attrs) {
                continue;
            }
            let name = child.ident.to_string();
            let below = format!("{folder}/{name}");
            let path = path.iter().cloned().chain([name.clone()]).collect();
            let module = |file: &str| Module { path, file: file.to_owned(), parent: at, ..Module::default() };
            let added = match &child.content {
                Some((_, items)) => self.add(tree, module(&file), items, &below),
                None => {
                    let places = [format!("{below}.rs"), format!("{below}/mod.rs")];
                    let Some(file) = places.iter().find_map(|place| tree.file(place)) else { continue };
                    let Some(syntax) = file.rust() else { continue };
                    self.add(tree, module(&file.path), &syntax.items, &below)
                }
            };
            self.modules[at].children.insert(name, added);
        }
        at
    }

    /// Who uses whom.
    pub(super) fn arrows(&self) -> impl Iterator<Item = Arrow<'_>> {
        self.modules.iter().enumerate().flat_map(move |(at, from)| {
            let to = move |path: &[String]| Some(&self.modules[self.resolve(at, path, 0)?]);
            from.paths.iter().filter_map(move |(path, line)| Some(Arrow { from, to: to(path)?, line: *line }))
        })
    }

    /// The module that defines what a path written in the module `from` stands for, if it is in this crate.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        // Imports can name each other in a circle.
        if depth > 8 {
            return None;
        }
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.walk(0, rest, depth),
            "self" => self.walk(from, rest, depth),
            "super" => self.walk(self.modules[from].parent, rest, depth),
            _ => {
                let module = &self.modules[from];
                let here = module.children.contains_key(first) || module.imported.contains_key(first);
                if here { self.walk(from, path, depth) } else { None }
            }
        }
    }

    /// Goes on from a module along the rest of a path, through what it imports and so passes on.
    fn walk(&self, at: usize, rest: &[String], depth: usize) -> Option<usize> {
        let module = &self.modules[at];
        let Some((first, after)) = rest.split_first() else { return Some(at) };
        if first == "super" {
            return self.walk(module.parent, after, depth);
        }
        if let Some(child) = module.children.get(first) {
            return self.walk(*child, after, depth);
        }
        if module.items.contains(first) {
            return Some(at);
        }
        if let Some(path) = module.imported.get(first) {
            let full: Vec<String> = path.iter().chain(after).cloned().collect();
            return self.resolve(at, &full, depth + 1);
        }
        let mut opened = module.globs.iter().filter_map(|glob| self.resolve(at, glob, depth + 1));
        let giver = opened.find(|to| self.modules[*to].items.contains(first));
        Some(giver.unwrap_or(at))
    }
}

/// Collects what a module defines and names.
struct Reader<'a> {
    module: &'a mut Module,
}

impl Reader<'_> {
    fn use_tree(&mut self, tree: &UseTree, mut path: Vec<String>, line: usize) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.use_tree(&part.tree, path, line);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.use_tree(tree, path.clone(), line)),
            UseTree::Glob(_) => {
                self.module.globs.push(path.clone());
                self.module.paths.push((path, line));
            }
            UseTree::Name(name) if name.ident == "self" => self.import(path.last().cloned(), path, line),
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.import(Some(name.ident.to_string()), path, line);
            }
            UseTree::Rename(renamed) => {
                if renamed.ident != "self" {
                    path.push(renamed.ident.to_string());
                }
                self.import(Some(renamed.rename.to_string()), path, line);
            }
        }
    }

    fn import(&mut self, name: Option<String>, path: Vec<String>, line: usize) {
        // `use proptest::prelude::*` and a crate of the same name as what it gives: not of this crate.
        if let Some(name) = name.filter(|name| path.first() != Some(name)) {
            self.module.imported.insert(name, path.clone());
        }
        self.module.paths.push((path, line));
    }

    /// Keeps a path of the crate's own.
    fn path(&mut self, path: Vec<String>, line: usize) {
        if path.len() > 1 && path.first().is_some_and(|first| matches!(first.as_str(), "crate" | "super" | "self")) {
            self.module.paths.push((path, line));
        }
    }

    /// Keeps the paths in the arguments of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons, mut line) = (Vec::new(), 0, 0);
        for token in tokens {
            match &token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.path(std::mem::take(&mut path), line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
                _ => {
                    self.path(std::mem::take(&mut path), line);
                    colons = 0;
                }
            }
            if let TokenTree::Group(group) = token {
                self.tokens(group.stream());
            }
        }
        self.path(path, line);
    }

    fn define(&mut self, ident: &syn::Ident, visibility: Option<&syn::Visibility>) {
        self.module.items.insert(ident.to_string());
        let inherited = |visibility: &syn::Visibility| match visibility {
            syn::Visibility::Inherited => true,
            syn::Visibility::Restricted(to) => to.path.is_ident("self"),
            syn::Visibility::Public(_) => false,
        };
        if visibility.is_some_and(|visibility| !inherited(visibility)) {
            self.module.types.push((ident.to_string(), ident.span().start().line));
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes: &[syn::Attribute] = match item {
            // Read as a module of its own.
            Item::Mod(_) => return,
            Item::Use(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            _ => &[],
        };
        if only_in_tests(attributes) {
            return;
        }
        match item {
            Item::Struct(x) => self.define(&x.ident, Some(&x.vis)),
            Item::Enum(x) => self.define(&x.ident, Some(&x.vis)),
            Item::Union(x) => self.define(&x.ident, Some(&x.vis)),
            Item::Trait(x) => self.define(&x.ident, Some(&x.vis)),
            Item::Type(x) => self.define(&x.ident, Some(&x.vis)),
            Item::Fn(x) => self.define(&x.sig.ident, None),
            Item::Const(x) => self.define(&x.ident, None),
            Item::Static(x) => self.define(&x.ident, None),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let line = item.use_token.span.start().line;
        if item.leading_colon.is_none() {
            self.use_tree(&item.tree, Vec::new(), line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
        if path.leading_colon.is_none() {
            self.path(path.segments.iter().map(|segment| segment.ident.to_string()).collect(), line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }
}
