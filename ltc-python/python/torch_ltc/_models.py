"""Python functions of which more is known than their code says: what they read depends on their arguments, or they are
quiet and read something nevertheless.

:class:`torch_ltc._survey.Survey` asks these instead of looking at all that their names may mean."""

import importlib.util
import logging
import sys
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch.utils import _pytree

from torch_ltc._known import SPECIAL, namespace
from torch_ltc._names import code_of
from torch_ltc._places import owners

if TYPE_CHECKING:
    from torch_ltc._survey import Survey

#: Searches for modules: what they find follows from the machine and from what may be imported from where.
SEARCHES = frozenset(f.__code__ for f in (importlib.util.find_spec, vars(importlib._bootstrap)["_find_spec"]))


def search(survey: "Survey", frame: types.FrameType) -> bool:
    """Takes down what finding a module depends on besides the machine; whether nothing is imported for it."""
    name: str = frame.f_locals["name"]
    parent = name.rpartition(".")[0]
    if (parent and parent not in sys.modules) or name.startswith("."):
        return False
    survey.note_place("entry", sys.modules, name, frame.f_code)
    if name in sys.modules:
        survey.note_place("entry", vars(sys.modules[name]), "__spec__", frame.f_code)
    for holder, attribute in ((sys.path, "path"), (sys.meta_path, "meta_path"), (sys.path_hooks, "path_hooks")):
        survey.note_place("entry", vars(sys), attribute, frame.f_code)
        survey.note_place("members", holder, None, frame.f_code)
    return True


def _module_getattr(survey: "Survey", frame: types.FrameType) -> None:
    """``torch.nn.Module.__getattr__``: reads a name that neither the module nor its class has in three dicts of the
    module, and nothing else of it."""
    module, name = frame.f_locals["self"], frame.f_locals["name"]
    survey.note_place("lookup", type(module), name, frame.f_code)
    if not survey.is_older(module):
        return
    space = namespace(module) or {}
    survey.note_place("namespace", module, None, frame.f_code)
    survey.note_place("entry", space, name, frame.f_code)
    owners[id(space)] = type(module).__qualname__
    for kind in ("_parameters", "_buffers", "_modules"):
        survey.note_place("entry", space, kind)
        members = space.get(kind)
        if members is not None:
            owners[id(members)] = type(module).__qualname__
            survey.note_place("entry", members, name)
            if name in members:
                caller = frame.f_back
                # What the step leaves there is given to it.
                if caller is not None and (id(members), name) not in survey.tensor_places:
                    holder = type(module).__qualname__
                    survey.look(members[name], code_of(caller.f_code, caller.f_globals), caller, f"a {holder}")
                break


def _module_setattr(survey: "Survey", frame: types.FrameType) -> None:
    """``torch.nn.Module.__setattr__`` and ``__delattr__``: read and write one name, of the module itself, of its three
    dicts and of its set of buffers that are not saved."""
    module, name = frame.f_locals["self"], frame.f_locals["name"]
    if not survey.is_older(module):
        return
    space, code = namespace(module) or {}, frame.f_code
    survey.note_place("namespace", module, None, code)
    survey.note_place("class", module, None, code)
    owners[id(space)] = type(module).__qualname__
    for attribute in (name, "register_buffer", "register_parameter"):
        survey.note_place("entry", space, attribute, code)
    for attribute in (*SPECIAL, name, "register_buffer", "register_parameter"):
        survey.note_place("lookup", type(module), attribute, code)
    value = frame.f_locals.get("value")
    if isinstance(value, torch.Tensor) and survey.is_older(value):
        # Of a buffer: whether it is saved with the module.
        survey.note_place("entry", value.__dict__, "persistent", code)
    for kind in ("_parameters", "_buffers", "_modules"):
        survey.note_place("entry", space, kind, code)
        members = space.get(kind)
        if members is not None:
            owners[id(members)] = type(module).__qualname__
            survey.note_place("entry", members, name, code)
    survey.note_place("entry", space, "_non_persistent_buffers_set", code)
    unsaved = space.get("_non_persistent_buffers_set")
    if unsaved is not None:
        survey.note_place("members", unsaved, None, code)


def _level(survey: "Survey", frame: types.FrameType) -> None:
    """``logging.Logger.isEnabledFor`` and ``getEffectiveLevel``: the levels of a logger and of those above it."""
    logger: logging.Logger | None = frame.f_locals["self"]
    if logger is not None:
        survey.note_place("entry", vars(logger), "disabled", frame.f_code)
        survey.note_place("entry", vars(logger.manager), "_disable", frame.f_code)
    while logger is not None:
        survey.note_place("entry", vars(logger), "level", frame.f_code)
        survey.note_place("entry", vars(logger), "parent", frame.f_code)
        logger = logger.parent


def _kinds_of_nodes(survey: "Survey", frame: types.FrameType) -> None:
    """``torch.utils._pytree``: which classes are opened."""
    survey.note_place("dict", _pytree.SUPPORTED_NODES, None, frame.f_code)


def _protocol(survey: "Survey", frame: types.FrameType) -> None:
    """``isinstance`` with a protocol: whether an object has the attributes that the protocol names."""
    protocol, x = frame.f_locals["cls"], frame.f_locals["instance"]
    names = frozenset(
        name for base in protocol.__mro__ for name in (*vars(base), *vars(base).get("__annotations__", ()))
    )
    caller = frame.f_back or frame
    info = code_of(caller.f_code, caller.f_globals)
    survey.look(x, info.naming(names), caller)
    survey.look(protocol, info.naming(names), caller)


def _type_hints(survey: "Survey", frame: types.FrameType) -> None:
    """``typing.get_type_hints``: the annotations of a class and its bases, or of what else has some."""
    x = frame.f_locals["obj"]
    for holder in x.__mro__ if isinstance(x, type) else (x,):
        annotations = getattr(holder, "__annotations__", None)
        if type(annotations) is dict:
            survey.note_place("dict", annotations, None, frame.f_code)


def _seeds(survey: "Survey", frame: types.FrameType) -> None:
    """``torch.manual_seed``: sets the state of all generators there are."""
    survey.refuse("it seeds all generators: torch.manual_seed()", frame)


#: Functions that are quiet and read something nevertheless.
QUIET_MODELS: dict[types.CodeType, Callable[["Survey", types.FrameType], None]] = {
    logging.Logger.isEnabledFor.__code__: _level,
    logging.Logger.getEffectiveLevel.__code__: _level,
    _pytree._get_node_type.__code__: _kinds_of_nodes,
    vars(type(typing.Protocol))["__instancecheck__"].__code__: _protocol,
    typing.get_type_hints.__code__: _type_hints,
}

#: The functions of which the whole is known.
MODELS: dict[types.CodeType, Callable[["Survey", types.FrameType], None]] = {
    torch.nn.Module.__getattr__.__code__: _module_getattr,
    torch.nn.Module.__setattr__.__code__: _module_setattr,
    torch.nn.Module.__delattr__.__code__: _module_setattr,
    torch.random.manual_seed.__code__: _seeds,
}
