"""The entries by name. Weights are random and data is made, both from seeds; nothing is downloaded."""

import importlib
import importlib.util

#: Modules of entries, and the packages that each needs beside torch.
FAMILIES = {
    "small": (),
    "language": ("transformers",),
    "perception": ("transformers",),
    "pictures": ("torchvision", "timm"),
    "detection": ("torchvision",),
    "diffusion": ("diffusers",),
    "audio": ("torchaudio",),
    "graphs": ("torch_geometric",),
}


def family(name):
    """The entries of a family: functions that make a `Task`, by name. It imports the packages they need."""
    return importlib.import_module(f"{__name__}.{name}").ENTRIES


def names():
    """Names of all entries as ``family/name``. Nothing heavy is imported: each module says its names by itself."""
    return [f"{f}/{n}" for f in FAMILIES for n in family(f)]


def missing(families):
    """Packages that these families need and that are not installed."""
    wanted = {package for f in families for package in FAMILIES[f]}
    return sorted(p for p in wanted if importlib.util.find_spec(p) is None)


def make(name):
    """The task of an entry."""
    of, _, rest = name.partition("/")
    return family(of)[rest]()
