//! Chores of the workspace: `cargo xtask ci` is all of CI, `cargo xtask tidy` checks the house rules.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

mod ci;
mod tidy;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything CI checks, cheap first.
    Ci {
        /// Only what needs no libtorch.
        #[arg(long)]
        pure: bool,
    },
    /// Crate edges, module docs, file sizes, `unsafe`, machine paths.
    Tidy,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

fn main() -> Result<()> {
    match Args::parse().command {
        Command::Ci { pure } => ci::run(&root(), pure),
        Command::Tidy => tidy::run(&root()),
    }
}
