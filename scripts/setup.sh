#!/usr/bin/env bash
# Prepares the checkout: checks the tools, makes .venv with the pinned torch, links .venv/libtorch to it. Idempotent.
set -euo pipefail
cd "$(dirname "$0")/.."
TORCH=2.11.0

say() { printf '==> %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

command -v cargo >/dev/null || die "cargo is missing: install Rust (https://rustup.rs) and run this again"
command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null ||
    die "no C++ compiler: install g++ or clang++ and run this again"

works() { "$1" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
python=
for candidate in "${PYTHON:-}" python3 python3.12 python3.11 python3.13 python3.14 python; do
    if [ -n "$candidate" ] && command -v "$candidate" >/dev/null && works "$candidate"; then python=$candidate; break; fi
done
[ -n "$python" ] || die "no Python 3.11 or newer with the venv module: install one (on Debian: python3 and python3-venv), or name it in PYTHON"

has_torch() { "$1" -c "import torch, sys; sys.exit(torch.__version__.split('+')[0] != '$TORCH')" 2>/dev/null; }

if [ ! -x .venv/bin/python ]; then
    say "making .venv with $($python --version)"
    "$python" -m venv .venv || die "python -m venv failed: on Debian, install python3-venv"
fi
if has_torch .venv/bin/python && .venv/bin/python -c 'import numpy' 2>/dev/null; then
    say ".venv has torch $TORCH"
else
    say "installing torch==$TORCH into .venv (about 2 GB on Linux, once)"
    .venv/bin/python -m pip install --disable-pip-version-check "torch==$TORCH" numpy
fi
torch=$(.venv/bin/python -c 'import os, torch; print(os.path.dirname(torch.__file__))')
if [ "$(readlink .venv/libtorch || true)" != "$torch" ]; then
    ln -sfn "$torch" .venv/libtorch
    say "linked .venv/libtorch"
fi
say "ready"
