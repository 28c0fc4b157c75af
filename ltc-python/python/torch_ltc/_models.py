"""Models of Python functions: exactly what they read, for the survey to watch that and no more.

The survey looks at all that a frame may read by the names in its code. For `nn.Module.__getattr__` that would be every
attribute of every module, since the name is an argument. So a few functions of torch and the standard library have a
model here, which notes the places that a call with these arguments reads. Others are of quiet modules (`_names.py`),
whose frames are not looked at, and read something that programs change nevertheless.
"""

import importlib.util
import inspect
import logging
import sys
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch._library.custom_ops import CustomOpDef
from torch.utils import _pytree
from torch.utils._device import DeviceContext

from torch_ltc._known import CONTAINERS, SPECIAL, namespace
from torch_ltc._names import code_of, is_quiet
from torch_ltc._places import owners
from torch_ltc._runtime import is_tensor
from torch_ltc.closure import add_step_closure, has_step_closures
from torch_ltc.device_context import get_device_context

if TYPE_CHECKING:
    from torch_ltc._survey import Survey

#: Functions that search for a module: the result follows from the files of the machine, `sys.modules` and `sys.path`.
SEARCHES = frozenset(f.__code__ for f in (importlib.util.find_spec, vars(importlib._bootstrap)["_find_spec"]))


def search(survey: "Survey", frame: types.FrameType) -> bool:
    """Watches what a search for a module depends on, besides files. Returns false where the search may import a parent
    package, which is then observed like any code."""
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
    """``torch.nn.Module.__getattr__``: looks for a name, which neither the module nor its class has, in three dicts of
    the module, and reads nothing else of it."""
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
                # A tensor in a place in which the step leaves tensors is an input, and not looked at.
                if caller is not None and (id(members), name) not in survey.given_places:
                    holder = type(module).__qualname__
                    survey.look(members[name], code_of(caller.f_code, caller.f_globals), caller, f"a {holder}")
                break


def _module_setattr(survey: "Survey", frame: types.FrameType) -> None:
    """``torch.nn.Module.__setattr__`` and ``__delattr__``: read and write one name in the module itself, in its three
    dicts, and in the set of buffers that are not saved."""
    module, name = frame.f_locals["self"], frame.f_locals["name"]
    if not survey.is_older(module):
        return
    space, code = namespace(module) or {}, frame.f_code
    survey.note_place("namespace", module, None, code)
    survey.note_place("class", module, None, code)
    owners[id(space)] = type(module).__qualname__
    for attribute in ("register_buffer", "register_parameter"):
        survey.note_place("entry", space, attribute, code)
    for attribute in (*SPECIAL, name, "register_buffer", "register_parameter"):
        survey.note_place("lookup", type(module), attribute, code)
    value = frame.f_locals.get("value")
    if "value" in frame.f_locals and not isinstance(value, (torch.nn.Module, torch.nn.Parameter)):
        survey.note_only_set(space, name, code)
    else:
        survey.note_place("entry", space, name, code)
    if is_tensor(value) and survey.is_older(value):
        # A buffer's attribute that says whether it is saved with the module.
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


def _custom_operator(survey: "Survey", frame: types.FrameType) -> None:
    """``torch._library.custom_ops``: an operator of the program's finds its functions in dicts of its own, in which
    other ones can be registered at any time."""
    operator = frame.f_locals.get("self")
    if isinstance(operator, CustomOpDef):
        for name, held in vars(operator).items():
            if callable(held) or held is None:
                survey.note_place("entry", vars(operator), name, frame.f_code)
            elif isinstance(held, dict):
                survey.note_place("dict", held, None, frame.f_code)
            elif isinstance(held, set):
                survey.note_place("members", held, None, frame.f_code)


def _level(survey: "Survey", frame: types.FrameType) -> None:
    """``logging.Logger.isEnabledFor`` and ``getEffectiveLevel``: read the levels of a logger and of its parents."""
    logger: logging.Logger | None = frame.f_locals["self"]
    if logger is not None:
        survey.note_place("entry", vars(logger), "disabled", frame.f_code)
        survey.note_place("entry", vars(logger.manager), "_disable", frame.f_code)
    while logger is not None:
        survey.note_place("entry", vars(logger), "level", frame.f_code)
        survey.note_place("entry", vars(logger), "parent", frame.f_code)
        logger = logger.parent


def _kinds_of_nodes(survey: "Survey", frame: types.FrameType) -> None:
    """``torch.utils._pytree``: reads which classes are containers, and what those of the program's classes hold."""
    tree, caller = frame.f_locals["tree"], frame.f_back or frame
    if type(tree) in _pytree.SUPPORTED_NODES and type(tree) not in CONTAINERS:
        survey.look(tree, code_of(caller.f_code, caller.f_globals).opening(), caller)
    survey.note_place("dict", _pytree.SUPPORTED_NODES, None, frame.f_code)


#: What `inspect.signature` reads of what it is given, and of what that wraps.
_OF_SIGNATURES = frozenset(
    "__signature__ __wrapped__ __defaults__ __kwdefaults__ __annotations__ __func__ __call__ __init__ __new__"
    " __text_signature__ __partialmethod__ _partialmethod func args keywords".split()
)


def _look_at(survey: "Survey", frame: types.FrameType, x: object, names: frozenset[str]) -> None:
    """Looks at these attributes of an object, as if the code that called the function of `frame` named them."""
    caller = frame.f_back or frame
    survey.look(x, code_of(caller.f_code, caller.f_globals).naming(names), caller)


def _protocol(survey: "Survey", frame: types.FrameType) -> None:
    """``isinstance`` with a protocol: asks whether an object has the attributes that the protocol names."""
    protocol, x = frame.f_locals["cls"], frame.f_locals["instance"]
    names = frozenset(
        name for base in protocol.__mro__ for name in (*vars(base), *vars(base).get("__annotations__", ()))
    )
    _look_at(survey, frame, x, names)
    _look_at(survey, frame, protocol, names)


def _signature(survey: "Survey", frame: types.FrameType) -> None:
    """``inspect.signature`` and what goes by it: reads the parts of a callable."""
    _look_at(survey, frame, frame.f_locals["obj"], _OF_SIGNATURES)


def _documentation(survey: "Survey", frame: types.FrameType) -> None:
    """``inspect.getdoc``: reads the text of an object."""
    _look_at(survey, frame, frame.f_locals["object"], frozenset(("__doc__",)))


def _module_of(survey: "Survey", frame: types.FrameType) -> None:
    """``inspect.getmodule``: reads the name of an object's module."""
    _look_at(survey, frame, frame.f_locals["object"], frozenset(("__module__",)))


def _wrapped(survey: "Survey", frame: types.FrameType) -> None:
    """``inspect.unwrap``: goes from a function to what it wraps, and on."""
    _look_at(survey, frame, frame.f_locals["func"], frozenset(("__wrapped__",)))


def _annotations(survey: "Survey", frame: types.FrameType) -> None:
    """``inspect.get_annotations``: reads the annotations of an object."""
    _look_at(survey, frame, frame.f_locals["obj"], frozenset(("__annotations__",)))


def _imported(survey: "Survey", frame: types.FrameType) -> None:
    """``importlib.import_module``: finds a module by its name."""
    if frame.f_locals["name"] in sys.modules:
        survey.note_place("entry", sys.modules, frame.f_locals["name"], frame.f_code)


def _removed(survey: "Survey", frame: types.FrameType) -> None:
    """``RemovableHandle.remove``: takes a hook out of a dict, if it is still there."""
    hooks = frame.f_locals["self"].hooks_dict_ref()
    if hooks is not None and survey.is_older(hooks):
        survey.note_place("dict", hooks, None, frame.f_code)


#: Functions that read more of what they are given than could be watched.
_UNWATCHED = (
    *(inspect.getclosurevars, inspect.isabstract, inspect.getmembers, inspect.getattr_static),
    *(inspect.getcallargs, inspect.getgeneratorstate, inspect.getgeneratorlocals),
)


def _unwatched(survey: "Survey", frame: types.FrameType) -> None:
    """A function that reads more than could be watched."""
    survey.refuse(f"it calls inspect.{frame.f_code.co_name}()", frame)


def _type_hints(survey: "Survey", frame: types.FrameType) -> None:
    """``typing.get_type_hints``: reads the annotations of a class and its bases, or of another object."""
    x = frame.f_locals["obj"]
    for holder in x.__mro__ if isinstance(x, type) else (x,):
        annotations = getattr(holder, "__annotations__", None)
        if type(annotations) is dict:
            survey.note_place("dict", annotations, None, frame.f_code)


def _seeds(survey: "Survey", frame: types.FrameType) -> None:
    """``torch.manual_seed``: sets the states of all generators, which no replay repeats."""
    survey.refuse("it seeds all generators: torch.manual_seed()", frame)


def _default_device(survey: "Survey", frame: types.FrameType) -> None:
    """``torch.set_default_device``: passes a call on, with a device, and keeps nothing of what it is given."""
    survey.look(frame.f_locals["self"], code_of(frame.f_code, frame.f_globals), frame)


def _adds_closure(survey: "Survey", frame: types.FrameType) -> None:
    """``torch_ltc.add_step_closure``: replays would add none."""
    survey.refuse("it adds a step closure: add it after the step", frame)


def _step_closures(survey: "Survey", frame: types.FrameType) -> None:
    """``torch_ltc.closure.has_step_closures``: reads whether there are any."""
    context = get_device_context()
    for name in ("step_closures", "async_step_closures"):
        survey.note_place("entry", vars(context), name, frame.f_code)
        survey.note_place("members", getattr(context, name), None, frame.f_code)


#: Models of functions in quiet modules that read something which programs change.
QUIET_MODELS: dict[types.CodeType, Callable[["Survey", types.FrameType], None]] = {
    _pytree._get_node_type.__code__: _kinds_of_nodes,
    vars(type(typing.Protocol))["__instancecheck__"].__code__: _protocol,
    typing.get_type_hints.__code__: _type_hints,
    has_step_closures.__code__: _step_closures,
    add_step_closure.__code__: _adds_closure,
    vars(inspect)["_signature_from_callable"].__code__: _signature,
    inspect.getdoc.__code__: _documentation,
    inspect.getmodule.__code__: _module_of,
    inspect.unwrap.__code__: _wrapped,
    inspect.get_annotations.__code__: _annotations,
    importlib.import_module.__code__: _imported,
    torch.utils.hooks.RemovableHandle.remove.__code__: _removed,
    **{f.__code__: _unwatched for f in _UNWATCHED},
}

#: Models that take the place of looking at a frame.
MODELS: dict[types.CodeType, Callable[["Survey", types.FrameType], None]] = {
    logging.Logger.isEnabledFor.__code__: _level,
    logging.Logger.getEffectiveLevel.__code__: _level,
    torch.nn.Module.__getattr__.__code__: _module_getattr,
    torch.nn.Module.__setattr__.__code__: _module_setattr,
    torch.nn.Module.__delattr__.__code__: _module_setattr,
    torch.random.manual_seed.__code__: _seeds,
    DeviceContext.__torch_function__.__code__: _default_device,
}

#: Quiet modules whose methods read the attributes of objects that programs have and may change.
_OF_OBJECTS = ("typing", "typing_extensions", "re", "enum", "inspect", "types", "torch.fx")
#: Methods of compiled steps that tell what became of their calls.
_TELLS = frozenset("counts backward_counts explain".split())


def enter_quiet(survey: "Survey", frame: types.FrameType) -> None:
    """A frame of a quiet module begins. What it reads of its arguments is looked at where there is a model of it; of
    objects that the program calls methods of, it may read anything."""
    code, caller = frame.f_code, frame.f_back
    model = QUIET_MODELS.get(code)
    if model is not None:
        return model(survey, frame)
    module = frame.f_globals.get("__name__") or ""
    if module == "torch._library.custom_ops":
        _custom_operator(survey, frame)
    if caller is None or is_quiet(caller.f_globals.get("__name__") or ""):
        return None
    if module == "torch_ltc._step" and code.co_name in _TELLS:
        return survey.refuse("it asks what became of calls of a compiled step", frame)
    if code.co_varnames[:1] == ("self",) and module.startswith(_OF_OBJECTS):
        x = frame.f_locals["self"]
        if not isinstance(x, (type, types.ModuleType, torch.nn.Module, torch.Tensor)):
            survey.look(x, code_of(caller.f_code, caller.f_globals).opening(), caller)
    return None
