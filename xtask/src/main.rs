//! Chores of the workspace: `cargo xtask ci` is all of CI, `cargo xtask tidy` checks the house rules,
//! `cargo xtask codegen` writes what follows from the operator table.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command-line tool")]

mod bench;
mod ci;
mod codegen;
mod dry;
mod outside;
mod packages;
mod peers;
mod publish;
mod steps;
mod tidy;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything CI checks, cheap first; stops at the first step that fails.
    Ci(ci::Scope),
    /// Generated files of the operator table (`ltc-ir/ops.toml`).
    Codegen(codegen::Options),
    /// The house rules: crate edges, import circles, names, sizes, paths that exist, and more.
    Tidy,
    /// libtorch's CUDA host code without a GPU, over a stand-in of the CUDA runtime (`docs/cuda.md`).
    Dry(dry::DryOptions),
    /// A crate that is no part of the workspace, as `ltc-torch/README.md` has it, builds and starts.
    Outside,
    /// Whether the crates could be published: manifests, packages, licences, promises (`docs/releasing.md`).
    PublishCheck(publish::PublishOptions),
    /// The benchmarks of all crates, and models beside every peer: one table.
    Bench(bench::BenchOptions),
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

fn main() -> ExitCode {
    let root = root();
    let result = match Args::parse().command {
        Command::Ci(scope) => ci::run(&root, &scope),
        Command::Codegen(options) => codegen::run(&root, &options),
        Command::Tidy => tidy::run(&root),
        Command::Dry(options) => dry::run(&root, &options),
        Command::Outside => outside::run(&root),
        Command::PublishCheck(options) => publish::run(&root, &options),
        Command::Bench(options) => bench::run(&root, &options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}
