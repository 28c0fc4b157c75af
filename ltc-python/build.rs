//! Writes down which torch the extension is built for, beside it: `import torch_ltc` compares before it loads it.

use std::{fs, path::Path};

fn main() {
    ltc_build::rerun();
    let torch = ltc_build::locate().unwrap_or_else(|why| ltc_build::fail(&why));
    let release = torch.version.split('+').next().unwrap_or_default();
    let text = format!("\"\"\"Written by the build.\"\"\"\n\nTORCH = \"{release}\"\n");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/torch_ltc/_built_for.py");
    // Where somebody removed it, it is written again.
    println!("cargo:rerun-if-changed={}", file.display());
    if fs::read_to_string(&file).is_ok_and(|now| now == text) {
        return;
    }
    if let Err(why) = fs::write(&file, text) {
        ltc_build::fail(&format!("cannot write {}: {why}", file.display()));
    }
}
