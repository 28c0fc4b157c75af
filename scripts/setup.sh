#!/usr/bin/env bash
# Prepares the checkout: checks the tools, makes .venv with torch, links .venv/libtorch to it. Idempotent.
# TORCH=2.15.0 asks for another torch than the one that `ltc-build` names (docs/versions.md).
# In an active environment that already has that torch, .venv borrows it instead of installing another.
set -euo pipefail
cd "$(dirname "$0")/.."
TORCH=${TORCH:-$(sed -n 's/^pub const VERSION: &str = "\(.*\)";$/\1/p' ltc-build/src/lib.rs)}

say() { printf '==> %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

command -v cargo >/dev/null || die "cargo is missing: install Rust (https://rustup.rs) and run this again"
command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null ||
    die "no C++ compiler: install g++ or clang++ and run this again"

active=${VIRTUAL_ENV:-${CONDA_PREFIX:-}}
works() { "$1" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
python=
for candidate in "${PYTHON:-}" ${active:+"$active/bin/python"} python3 python3.12 python3.13 python3.11 python3.14 python; do
    if [ -n "$candidate" ] && command -v "$candidate" >/dev/null && works "$candidate"; then python=$candidate; break; fi
done
[ -n "$python" ] ||
    die "no Python 3.11 or newer with the venv module: install one (Debian: python3 and python3-venv), or name it in PYTHON"

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    say "making .venv with $("$python" --version)"
    "$python" -m venv .venv || die "python -m venv failed; on Debian, install python3-venv and run this again"
fi
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

# pip writes RECORD last: an interrupted installation has none.
has_torch() { [ -n "$1" ] && compgen -G "$1/torch-$TORCH*.dist-info/RECORD" >/dev/null; }
before=$(cat "$site/borrowed.pth" 2>/dev/null || true)
now=${active:+$active/lib/$(basename "$(dirname "$site")")/site-packages}
if has_torch "$site"; then
    torch=$site/torch
    say ".venv has torch $TORCH"
elif has_torch "$before"; then
    torch=$before/torch
    say ".venv borrows torch $TORCH from $before"
elif has_torch "$now"; then
    torch=$now/torch
    echo "$now" >"$site/borrowed.pth"
    say ".venv borrows torch $TORCH from $now"
else
    say "installing torch==$TORCH into .venv (about 2 GB on Linux, once)"
    rm -f "$site/borrowed.pth"
    .venv/bin/python -m pip install --disable-pip-version-check "torch==$TORCH" numpy ||
        die "pip could not install torch==$TORCH: see its message above, then run this again"
    torch=$site/torch
fi
if ! .venv/bin/python -c 'import numpy' 2>/dev/null; then
    say "installing numpy into .venv"
    .venv/bin/python -m pip install --disable-pip-version-check numpy || die "pip could not install numpy"
fi
if [ "$(readlink .venv/libtorch || true)" != "$torch" ]; then
    ln -sfn "$torch" .venv/libtorch
    say "linked .venv/libtorch"
fi
say "ready"
