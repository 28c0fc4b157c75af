"""The host recorder: turns what a step computes on the host into a program that each replay runs.

A step computes on CPU tensors (an optimiser's step count), reads numbers off them, and hands both to the device. While
a step is captured, :class:`HostRecorder` is its torch function mode, sees each call, and notes those on CPU tensors as
lines of Python. Numbers that are read off them are traced (`_traced.py`), and their arithmetic is noted too. A number
that an operator of the device is given, and a CPU tensor that goes to the device, are results of the lines, which a
replay binds in place of those of the capture. A decision by a number becomes a guard, and so does whatever else an
operator of the device may read on the host. A replay for which a guard fails is taken back (`_host_program.py`), and
another capture is tried, or the call recorded. The half that deals with lines and numbers is in `_host_written.py`.
"""

import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import torch

from torch_ltc import _ltc
from torch_ltc._again import KnownSchedules, SavedState, are_plain, modes_of
from torch_ltc._calls import Calls, state_of
from torch_ltc._compiling import noted_in, seen_draws
from torch_ltc._flows import KeptIn, is_of_step, only_kept_in
from torch_ltc._host_lines import Line, arranged, needed_lines
from torch_ltc._host_program import HostChanges, HostProgram
from torch_ltc._host_values import (
    bounds_of,
    computed,
    content,
    leaves_of,
    replaced,
    rewritten,
    same,
    to_device,
    with_tensor,
)
from torch_ltc._host_words import (
    LIKE,
    METADATA,
    MOVES,
    OF_MEMORY_OF_HOST,
    PLACES,
    USES,
    VIEWS_AND_CASTS,
    computes_with_numbers,
    conditions,
    tells_memory,
    tells_shape,
)
from torch_ltc._host_written import LineWriter
from torch_ltc._known import NOTHING
from torch_ltc._masks import Masks
from torch_ltc._mode_stack import put_below, take_out
from torch_ltc._names import PLAIN, CodeNames, here, here_is_torch, tells_class
from torch_ltc._patched import meant
from torch_ltc._runtime import as_program, is_tensor, on_device
from torch_ltc._traced import NUMBERS, TracedFloat, TracedInt, plain

#: Classes of C functions: what a mode is told of one is torch's own function (see `_patched.py`).
_OF_C = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType)


def _is_plain(x: Any) -> bool:
    """Whether a value can be compared as it is: a plain value, a dtype, a shape, or a tuple of plain values."""
    return type(x) is torch.Size or all(type(y) in (*PLAIN, torch.dtype) for y in (x if type(x) is tuple else (x,)))


def _is_host(x: Any) -> bool:
    return is_tensor(x) and x.device.type == "cpu"


def _is_gradient(func: Any) -> bool:
    """Whether a function is the getter of `Tensor.grad`."""
    return getattr(func, "__name__", "") == "__get__" and getattr(func.__self__, "__name__", "") == "grad"


def _goes_to(args: Any, kwargs: Any) -> torch.device | None:
    """The ltc device that a call's arguments name; `None` where they name none."""
    for x in (*args[1:], *kwargs.values()):
        if type(x) is str and x.partition(":")[0] == "ltc":
            return torch.device(x)
        if isinstance(x, torch.device) and x.type == "ltc":
            return x
    return None


def _put_aside() -> Any:
    """Takes away the survey's profile function, and returns it. `None` where there is none, or a profiler's, which
    stays."""
    profile = sys.getprofile()
    if not isinstance(getattr(profile, "__self__", None), Calls):
        return None
    sys.setprofile(None)
    return profile


class HostRecorder(LineWriter):
    """Notes what a step does on the host; see the module. `given`: the CPU tensors among the arguments, each with its
    copy on the device. `lent`: the places of numbers that may differ from call to call."""

    def __init__(
        self,
        given: Sequence[tuple[torch.Tensor, torch.Tensor]] = (),
        lent: Sequence[tuple[dict[Any, Any], Any]] = (),
        arguments: dict[Any, float] | None = None,
    ) -> None:
        super().__init__(lent, arguments)
        #: The CPU tensors that the step was given, and views and casts of them, each with its counterpart on the
        #: device; by identity.
        self._given = {id(host): (host, copy) for host, copy in given}
        #: The schedules that earlier calls were seen to step, and those that are seen for the first time.
        self.known_schedules, self.new_schedules = KnownSchedules([]), list[Any]()
        #: The schedules (and modules) of repeatable calls.
        self._schedules: list[Any] = []
        #: The places that whole numbers meet which are read off the device.
        self.kept_in: list[KeptIn] = []
        #: The CPU tensors whose `grad` was read.
        self.gradients: list[torch.Tensor] = []
        #: The tensors that functions of torch's were given and that are older than the step, by identity.
        self.operands: dict[int, torch.Tensor] = {}
        #: The settings, besides learning rates, that schedules changed; as `(parameter group, name)`.
        self.moved: list[tuple[dict[Any, Any], Any]] = []
        #: The storages of CPU tensors that are older than the step; and, for those that it writes, tensors over their
        #: bytes, which a replay that is taken back restores.
        self._older: dict[int, torch.UntypedStorage] = {}
        self._changed: dict[int, torch.Tensor] = {}
        #: The tensors that went to the device, with the variables of the lines that make them.
        self._uploaded: list[tuple[str, torch.Tensor]] = []
        #: Whether a tensor is an input of the step; set by the run.
        self.is_given: Callable[[torch.Tensor], bool] = lambda _: False
        #: The CPU's generators with their states when they were last looked at, by identity: another state shows that
        #: something drew from one. And those from which lines draw.
        self._draws: dict[int, tuple[torch.Generator, bytes]] = {}
        self._moved: dict[int, torch.Generator] = {}
        #: What is known of masks by which the step selects.
        self.masks: Masks | None = None
        #: The survey's profile function, while it is put aside.
        self._watches: Any = None
        #: Whether tensor classes of the program see the call that is handled.
        self._asks_classes = True
        #: True while a repeatable call runs (`_again.py`), of which nothing is noted.
        self._paused = False
        #: True while a call with tensors on the device runs, within which this mode is not active.
        self._within = False

    def __enter__(self) -> Self:
        self._drawn(())
        self._lent.lend(self.setting)
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        take_out(self)
        self._take_back()
        self._open = False
        self._draws_as_written([generator for generator, _ in self._draws.values()])

    def _drawn(self, leaves: Iterable[Any]) -> dict[int, torch.Generator]:
        """The generators that were drawn from since this was last asked: the CPU's default one, and those among the
        arguments of a call."""
        moved = {}
        for generator in (torch.default_generator, *leaves):
            if isinstance(generator, torch.Generator) and generator.device.type == "cpu":
                known, now = self._draws.get(id(generator)), state_of(generator)
                self._draws[id(generator)] = (generator, now)
                if known is not None and known[1] != now:
                    moved[id(generator)] = generator
        return moved

    def _draws_as_written(self, leaves: Iterable[Any]) -> None:
        """Refuses the step if something has drawn from a CPU generator without a line that repeats it."""
        if self._drawn(leaves):
            self.obstacle = self.obstacle or f"it draws numbers on the host where that cannot be repeated{here()}"

    def note_repeatable(self, function: types.FunctionType, args: list[Any]) -> Callable[[], None]:
        """Notes a line for a repeatable call that begins (`_again.py`); returns what is to be called when it ends."""
        self._take_back()
        self._schedules.append(args[0])
        is_schedule = not isinstance(args[0], torch.nn.Module)
        if is_schedule and not self.known_schedules.has(args[0]):
            self.new_schedules.append(args[0])
        elif is_schedule and self.known_schedules.is_set(args[0]):
            self.obstacle = self.obstacle or f"it sets attributes of a schedule before it steps it{here()}"
        saved = SavedState(args[:1])
        if isinstance(args[0], torch.nn.Module):
            # Later a part of the module may have a `train` of its own, which might do what must not be done twice.
            self._guard(f"{self._constant(are_plain)}({self._constant(args[0])})", True)
        self._line(f"{self._constant(function)}({', '.join(map(self._constant, args))})", effect=True)
        self._paused = True

        def returns() -> None:
            self._paused = False
            self.known_schedules.take()
            self.moved += saved.moved()
            if isinstance(args[0], torch.nn.Module):
                # Later the same call may set other modes, since modules can get more parts.
                self._guard(f"{self._constant(modes_of)}({self._constant(args[0])})", modes_of(args[0]))
            self._lent.lend(self.setting)

        return returns

    def __torch_function__(self, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._is_refused:
            return func(*args, **(kwargs or {}))
        if type(func) not in _OF_C and (own := meant(func, 1)) is not func:
            if own is None:
                self.obstacle = self.obstacle or f"it calls {func!r} in place of a function of torch's{here()}"
            func = own or func
        # The survey need not see what the recorder itself does (each event would cost more than that), and tensor
        # classes of the program are not to.
        self._asks_classes = torch._C._is_torch_function_enabled()
        with torch._C.DisableTorchFunctionSubclass():
            self._watches = _put_aside()
            try:
                return self._see(func, args, kwargs or {})
            finally:
                if self._watches is not None:
                    _ltc.observe(self._watches)
                self._watches = None

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Makes the call that the step makes, observed by the survey, as it stands in the program."""
        watches, asks = self._watches, self._asks_classes
        with as_program(asks):
            if watches is None:
                return func(*args, **kwargs)
            _ltc.observe(watches)
            try:
                return func(*args, **kwargs)
            finally:
                self._watches, self._asks_classes = _put_aside(), asks

    def activate_within(self) -> Callable[[], None] | None:
        """Called where a frame of the program begins. Within a call that this mode handles (hooks that `backward` runs,
        operators of a user's), the mode is not active, so it is entered once more. Returns what ends that; `None` where
        it was active."""
        if not self._within:
            return None
        self._within = False
        put_below(self)

        def ends() -> None:
            take_out(self)
            self._within = True

        return ends

    def make_plain_within(self, frame: types.FrameType, info: CodeNames) -> Callable[[], None] | None:
        """Called where code begins. If it may ask for the class of a number, all numbers are plain until it ends, and
        guarded; returns what ends that. If it compares a number by identity, the step is refused: the number of a later
        call may be equal and another object."""
        given, is_compared = frame.f_locals, self._is_compared(frame.f_locals, info)
        if is_compared:
            self.obstacle = self.obstacle or f"it compares a number that changes by identity{here()}"
        at_hand = (*given.values(), *map(frame.f_globals.get, info.globals))
        if not (is_compared or info.asks_classes or any(map(tells_class, at_hand))):
            return None
        were = self._lent.were()
        for number in self._lent.numbers():
            self._guard_number(number)
        self._take_back()
        self.put_plain_in(frame, were)
        if not self._plain:
            self._all_plain()
        self._plain += 1

        def ends() -> None:
            self._plain -= 1
            if not self._plain:
                self._lent.lend(self.setting)

        return ends

    def _is_compared(self, given: dict[str, Any], info: CodeNames) -> bool:
        """Whether code may compare a traced number by identity. `given`: its variables when it begins. Of two arguments
        of a step, the call's key says whether they are one object."""
        if not info.identities:
            return False
        arguments = self._lent.arguments()
        for pair in [name.split(" is ") for name in info.identities]:
            traced = [x for x in map(given.get, pair) if type(x) in (TracedFloat, TracedInt)]
            if traced and not (len(traced) == len(pair) == 2 and all(id(x) in arguments for x in traced)):
                return True
        return not info.identities.isdisjoint(map(str, self._lent.names()))

    def _can_read_later(self, x: Any, frame: types.FrameType) -> bool:
        """Whether a tensor of which a frame calls `item()` can be an awaited number: it is a single number on the
        device, and of a whole number the frame's code shows where it goes (`_flows.py`)."""
        if not on_device(x) or x.numel() != 1 or x.dtype.is_complex or x.dtype == torch.bool or self.is_met(frame):
            return False
        if x.is_floating_point():
            return True
        kept = only_kept_in(frame, is_of_step(frame), self.is_older)
        self.kept_in += [kept] if kept is not None else []
        return kept is not None

    def _see(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Handles a call of a torch function: makes it, or another one in its place, and notes what replays have to do
        for it. Returns its result."""
        leaves = list(leaves_of((args, kwargs)))
        if _is_gradient(func) and _is_host(args[0]):
            self.gradients.append(args[0])
        if any(type(x) in (TracedFloat, TracedInt) and x._ltc_recorder is not self for x in leaves):
            self.obstacle = self.obstacle or f"it uses a number of another step that is captured{here()}"
        self.operands.update({id(x): x for x in leaves if is_tensor(x) and self.is_older(x)})
        if self.awaited is not None:
            self.awaited.decides |= self.awaited.involves(leaves)
            if (kept := self._keep(func, args, kwargs, sys._getframe(2))) is not NOTHING:
                return kept
            if any(map(self.awaited.kept.how, leaves)):
                if tells_shape(func):
                    return self._run(func, args, kwargs)
                self.awaited.decides = True
        if self._paused:
            if any(is_tensor(x) and x.device.type == "ltc" for x in leaves):
                self.obstacle = self.obstacle or f"a schedule computes on the device{here()}"
            return self._run(func, args, kwargs)
        if any(noted_in(x)[1] for x in leaves):
            self.obstacle = self.obstacle or f"it looks at the state of a generator{here()}"
            return self._run(func, tuple(map(seen_draws, args)), kwargs)
        if self._given and any(id(x) in self._given for x in leaves):
            return self._of_given(func, args, kwargs, leaves)
        if func is torch.tensor or func is torch.as_tensor:
            made = computed(func, args, kwargs)
            if made is not None:
                self._hand_over(leaves, torch.full)
                return made
        if (made := rewritten(self._call, func, args, kwargs)) is not None:
            return made
        if self.masks is not None and (selected := self.masks.select(func, args, kwargs)) is not None:
            return selected[0]
        hosts = [x for x in leaves if _is_host(x)]
        if self.awaited is not None and func is torch.Tensor.item and self._can_read_later(args[0], sys._getframe(2)):
            return self._read(self.awaited, func, args)
        if any(is_tensor(x) and x.device.type != "cpu" for x in leaves):
            return self._device_call(func, args, kwargs, leaves, hosts)
        self._draws_as_written(leaves)
        word = getattr(func, "__name__", "")
        tells = word in METADATA or word == "__get__"
        if any(map(torch._C._functorch.is_functorch_wrapped_tensor, hosts)):
            self.obstacle = self.obstacle or f"it transforms CPU tensors (torch.func, vmap){here()}"
            return self._run(func, args, kwargs)
        if any(t.requires_grad or t.is_inference() for t in hosts):
            if not tells:
                self.obstacle = (
                    self.obstacle or "it uses CPU tensors that take part in differentiation, or inference tensors"
                )
            return self._run(func, args, kwargs)
        if any(t.layout is not torch.strided for t in hosts):
            if not tells and word != "__set__":
                self.obstacle = self.obstacle or f"it uses sparse CPU tensors in {word}{here()}"
            return self._run(func, args, kwargs)
        device = _goes_to(args, kwargs) if word in MOVES and _is_host(args[0]) else None
        if device is not None or word == "ltc" and hosts:
            return self._run(func, (self._upload(args[0], device or torch.device("ltc")), *args[1:]), kwargs)
        versions = [t._version for t in hosts]
        out = self._run(func, args, kwargs)
        changed = [t for t, v in zip(hosts, versions, strict=True) if t._version != v]
        drawn = self._drawn(leaves)
        self._moved.update(drawn)
        return self._host_call(func, args, kwargs, leaves, changed, out, bool(drawn))

    def _call(self, func: Any, *args: Any) -> Any:
        """Makes a call of the recorder's own as if the step had made it."""
        return self._see(func, args, {})

    def _device_call(self, func: Any, args: Any, kwargs: Any, leaves: list[Any], hosts: list[torch.Tensor]) -> Any:
        """Handles a call with tensors on the device, and maybe some of the CPU."""
        word = getattr(func, "__name__", "")
        bounds = set(map(id, bounds_of(args))) if hosts else ()
        goes = [t for t in hosts if (t is args[0]) == (word == "to") and id(t) not in bounds]
        if goes and word in USES and (word == "to" or on_device(args[0])) and all(map(self._may_go, goes)):
            device = next(x.device for x in leaves if on_device(x))
            copies = {id(t): self._upload(t, device) for t in goes}
            args, kwargs = replaced(args, copies), replaced(kwargs, copies)
            leaves = list(leaves_of((args, kwargs)))
            hosts = [x for x in leaves if _is_host(x)]
        if tells_memory(func):
            self._memory_is_seen(args[0])
        self._hand_over(leaves, func)
        generators = [x for x in leaves if isinstance(x, torch.Generator)]
        if generators:
            self._draws_as_written(generators)
        versions = [t._version for t in hosts]
        self._within, outer = not self._paused, self._within
        try:
            out = self._run(func, args, kwargs)
        finally:
            self._within = outer
        if generators:
            self._draws_as_written(generators)
        for t, version in zip(hosts, versions, strict=True):
            if t._version != version:
                self._note_older(t)
                self._line(f"{self._constant(torch.Tensor.copy_)}({self._name(t)}, {self._value(t)})", effect=True)
                self._note_changed(t)
        for t in leaves_of(out) if issubclass(type(out), (list, tuple, torch.Tensor)) else ():
            if _is_host(t) and id(t) not in self._made and not any(t is x for x in hosts):
                # A large result is another constant in each capture, so captures that use it do not confirm each other.
                found = content(t)
                line = f"{self._constant(torch.Tensor.clone)}({self._constant(t if found is None else found)})"
                self._made[id(t)] = (self._line(line), t)
        return out

    def _memory_is_seen(self, t: torch.Tensor) -> None:
        """Refuses a program that asks for the memory or version of an argument, which replays do not compare."""
        if (self.is_given(t) or id(t) in self._given) and not here_is_torch():
            self.obstacle = self.obstacle or f"it looks at the memory or the version of an argument{here()}"

    def _may_go(self, t: torch.Tensor) -> bool:
        """Whether a CPU tensor can be copied to the device in place of being used from the CPU. Masks are not: how much
        they select is in their values."""
        plain_bits = t.layout is torch.strided and not (t.is_conj() or t.is_neg() or t.requires_grad)
        return plain_bits and not t.is_inference() and t.dtype not in (torch.bool, torch.uint8)

    def _upload(self, t: torch.Tensor, device: torch.device) -> torch.Tensor:
        """Copies a CPU tensor to the device, and notes a line by which each replay does."""
        self._note_older(t)
        line = self._line(f"{self._constant(to_device)}({self._name(t)}, {self._constant(device)})")
        _ltc.pause_capture(True)
        try:
            copy = to_device(t, device)
        finally:
            _ltc.pause_capture(False)
        self._uploaded.append((line, copy))
        return copy

    def _value(self, t: torch.Tensor) -> str:
        """The name of a constant with the content of a CPU tensor that came from the device, where replays compare what
        was read."""
        found = content(t)
        if found is None:
            self.obstacle = self.obstacle or (
                f"it uses values of a tensor of shape {list(t.shape)} on the host that come from the device{here()}"
            )
        return self._constant(t if found is None else found)

    def _of_given(self, func: Any, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        """Handles a call with a CPU tensor that the step was given. Its copy is an input, on the device, and stands in
        for it where it is copied there; of a view or cast of it, the same is made of the copy. Any other use refuses
        the step: a replay has the tensor's values on the device only."""
        copy = lambda x: self._given[id(x)][1] if id(x) in self._given else x
        word = getattr(func, "__name__", "")
        tensors = [x for x in leaves if is_tensor(x)]
        if word == "copy_" and len(tensors) == 2 and on_device(args[0]):
            return self._run(func, tuple(map(copy, args)), kwargs)
        if word == "ctc_loss" and on_device(args[0]):
            # Lengths that are on the device are read there, and replays compare them.
            return self._see(func, tuple(map(copy, args)), {name: copy(x) for name, x in kwargs.items()})
        if tells_memory(func):
            self._memory_is_seen(args[0])
        # An inference tensor counts no writes.
        counts = not any(t.is_inference() for t in tensors)
        versions = [t._version for t in tensors if counts]
        out = self._run(func, args, kwargs)
        is_kept = versions == [t._version for t in tensors if counts]
        is_own = len(tensors) == 1 and is_kept and (counts or word == "__get__" or word in VIEWS_AND_CASTS)
        if word in METADATA or (is_own and (out is tensors[0] or word == "__get__" and not is_tensor(out))):
            return out
        if (
            is_own
            and is_tensor(out)
            and word in VIEWS_AND_CASTS
            and (on_device(out) or word not in ("as_tensor", "ltc"))
        ):
            shown = self._run(func, tuple(map(copy, args)), kwargs)
            if on_device(out):
                # A tensor that is copied to the device twice becomes two tensors.
                return shown.clone() if any(shown is x for _, x in self._given.values()) else shown
            self._given[id(out)] = (out, shown)
            return out
        self.obstacle = self.obstacle or (
            f"it uses a CPU tensor that it is given in {word}, on the host{here()}: move it to ltc before, or call that"
            " before the step"
        )
        self._given = {}
        return out

    def _hand_over(self, leaves: list[Any], func: Any) -> None:
        """Notes the numbers and CPU tensors that an operator of the device is given. Numbers that the operator only
        computes with, and CPU scalars, are bound anew by replays; all else is guarded."""
        word, only_computes = getattr(func, "__name__", ""), computes_with_numbers(func, leaves)
        for x in leaves:
            if type(x) is TracedFloat and only_computes:
                self._handed.append((x._ltc_name, plain(x)))
                for text, condition in conditions(func, leaves):
                    self._guard(text.format(x._ltc_name), condition(plain(x)))
            elif type(x) is TracedFloat:
                self._guard_number(x, f": {word} may decide by a number")
            elif type(x) is TracedInt:
                self._guard_number(x)
            elif _is_host(x) and x.layout is torch.strided and word not in LIKE and word not in METADATA:
                self._note_older(x)
                if x.dim() == 0 and x.dtype.is_floating_point:
                    self._handed.append((self._line(f"{self._name(x)}.item()"), x.item()))
                else:
                    self._guard(f"{self._constant(same)}({self._name(x)}, {self._value(x)})", True)

    def _note_older(self, t: torch.Tensor) -> None:
        """Notes a CPU tensor that no line made, which has to be older than the step."""
        if id(t) in self._made:
            return
        if not self.is_older(t):
            self.obstacle = self.obstacle or f"it uses a CPU tensor that was made in a way that is not seen{here()}"
        memory = t.untyped_storage()
        self._older[memory._cdata] = memory

    def _note_changed(self, t: torch.Tensor) -> None:
        """Notes that a CPU tensor is written: a replay that is taken back restores its storage, if that is older."""
        memory = t.untyped_storage()
        if memory._cdata in self._older:
            self._changed[memory._cdata] = torch.empty(0, dtype=torch.uint8, device="cpu").set_(memory)

    def unseen(self, tensors: Iterable[tuple[torch.Tensor, int]], is_scripted: bool) -> str:
        """Which of these CPU tensors, given with earlier version counters, was changed by a call that the recorder did
        not see, in words; empty where none was. `is_scripted`: the step calls scripted functions."""
        if is_scripted and self.awaited is not None and self.awaited.kept.tensors:
            return "it calls a scripted function, and reads tensors off the device"
        for t, version in tensors if not self._schedules else ():
            if t._version != version and t.untyped_storage()._cdata not in self._changed:
                return f"it changes a CPU tensor of shape {list(t.shape)} out of sight (a scripted function?)"
            if is_scripted:
                return f"it calls a scripted function, and uses a CPU tensor of shape {list(t.shape)}"
        return ""

    def _host_call(
        self, func: Any, args: Any, kwargs: Any, leaves: list[Any], changed: list[Any], out: Any, draws: bool
    ) -> Any:
        """Notes a call without tensors on the device that was made: `changed` are the CPU tensors that it wrote, `out`
        is its result, and `draws` says whether it drew from a generator. Returns the result, or a traced number."""
        word = getattr(func, "__name__", "")
        hosts = [x for x in leaves if _is_host(x)]
        for t in hosts:
            if word not in METADATA:
                self._note_older(t)
        for t in changed:
            self._note_changed(t)
        texts = [self._text(a) for a in with_tensor(func, args)] + [f"{k}={self._text(a)}" for k, a in kwargs.items()]
        call = f"{self._constant(func)}({', '.join(texts)})"
        results = list(out) if isinstance(out, (list, tuple)) else [out]
        if any(map(on_device, results)):
            self._hand_over(leaves, func)
        if changed or any(map(_is_host, results)):
            name = self._line(call, effect=bool(changed) or draws)
            new = [(i, t) for i, t in enumerate(results) if _is_host(t) and id(t) not in self._made]
            new = [(i, t) for i, t in new if not any(t is h for h in hosts)]
            self._made.update({id(t): (name if t is out else f"{name}[{i}]", t) for i, t in new})
            if new and new[0][1] is not out:
                self._guard(f"len({name})", len(results))
            return out
        if hosts and not results:
            self._guard(f"len({call})", 0)
            return out
        if draws:
            self.obstacle = self.obstacle or f"it draws numbers of the CPU's generator in {word}{here()}"
        if not hosts or any(is_tensor(x) for x in results):
            return out
        if word in METADATA or word in ("__get__", "__set__"):
            # The sizes of a tensor that lines made may follow from values.
            is_made = any(id(t) in self._made for t in hosts)
            if _is_plain(out) and (word not in PLACES if is_made else word in OF_MEMORY_OF_HOST):
                self._guard(call, out)
            if word == "untyped_storage" and not here_is_torch():
                self.obstacle = self.obstacle or f"it looks at the memory of a CPU tensor{here()}"
            return out
        if func is torch.Tensor.item and type(out) is float:
            line = self._line(call)
            # Handed over itself, so that two captures show whether it changes (see `setting`).
            self._handed.append((line, out))
            return self._traced_float(out, line)
        if isinstance(out, NUMBERS):
            self._guard(call, out, ": take the number by .item()" if word == "__float__" else "")
        else:
            self.obstacle = self.obstacle or f"it uses CPU tensors in {word}"
        return out

    def take_uploaded(self) -> list[torch.Tensor]:
        """Returns the tensors that went to the device, and lets go of them."""
        uploaded = [t for _, t in self._uploaded]
        self._uploaded = [(name, torch.empty(0, device="cpu")) for name, _ in self._uploaded]
        return uploaded

    def program(self) -> HostProgram | None:
        """The lines that a replay needs, as a program; `None` where there are none."""
        host_numbers = self.awaited.host_numbers() if self.awaited is not None else []
        needed = {name for name, _ in [*self._handed, *self._uploaded, *self._returned]} | set(host_numbers)
        kept = needed_lines(self._lines, needed)
        if not kept:
            return None
        some = self._handed, self._uploaded, [*self._returned, *[(name, 0.0) for name in host_numbers]]
        numbers, tensors, returned = (", ".join(name for name, _ in each) for each in some)
        lines = [*kept, Line("", f"return [{numbers}], [{tensors}], [{returned}]", True)]
        changes = HostChanges(
            [*self._changed.values()], self._schedules, [*self._moved.values()], [*self._put.values()]
        )
        return HostProgram(*arranged(lines, self._constants, self._made.values()), self._constants, changes)
