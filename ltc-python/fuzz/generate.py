"""Programs from seeds. Each statement is tried on the CPU while the program is made, so most are valid, and few are
errors."""

import random

import torch

from . import table
from .program import STEPS, THREADS, Program, Statement
from .world import Undefined, World, quiet

_DTYPES = ["float32"] * 8 + ["float64", "bfloat16", "float16", "int64", "int64", "int32", "uint8", "bool", "complex64"]
_SHAPES = [
    *((), (1,), (3,), (5,), (0,), (2, 3), (3, 2), (3, 3), (1, 3), (3, 1)),
    *((2, 1, 3), (2, 3, 4), (0, 3), (2, 0), (4, 4), (1,), (17,), (33, 9)),
]
_INT_CASTS = "({0}.nan_to_num(0,9,-9).clamp(-50,50)).to(torch.{1})"


def _meets(t, condition):
    try:
        return condition(t)
    except RuntimeError:
        return False


class Maker:
    """Makes statements while it runs them in a CPU world."""

    def __init__(self, r, mode, plain):
        self.r, self.mode, self.plain = r, mode, plain
        self.statements, self.counts, self.world = [], {"t": 0, "o": 0, "g": 0, "x": 0}, World("cpu")
        self.world.names["R"] = []
        self.part = "setup"
        #: Whether autocast is on: only operators that are cast alike on all devices are used then.
        self.autocast = False

    def fresh(self, kind="t"):
        """A new name."""
        self.counts[kind] += 1
        return f"{kind}{self.counts[kind] - 1}"

    def pick(self, condition=lambda t: True):
        """The name of a tensor, later ones more often; None where there is none."""
        names = [n for n, t in self.world.tensors() if _meets(t, condition)]
        return names[min(int(len(names) * self.r.random() ** 0.6), len(names) - 1)] if names else None

    def put(self, text, writes=(), errors=0.0, part=None):
        """Runs and keeps a statement; an error is kept with this probability."""
        s = Statement(text, part or self.part, tuple(writes))
        before = dict(self.world.names)
        try:
            error = self.world.run(s)
        except Undefined:
            self.world.names.clear()
            self.world.names.update(before)
            return False
        if error and self.r.random() >= errors:
            return False
        self.statements.append(s)
        return error is None

    def new(self):
        """A tensor of data."""
        dtype = self.r.choice(_DTYPES)
        if self.plain and dtype in ("complex64", "float16", "bfloat16"):
            dtype = "float32"
        shape, seed = self.r.choice(_SHAPES), self.r.randrange(100)
        leaf = dtype.startswith(("float", "bf")) and self.r.random() < 0.4
        return self.put(f"{self.fresh()} = {'leaf' if leaf else 'new'}({dtype!r}, {shape}, {seed})")

    def one(self):
        """One statement."""
        r = self.r
        kinds = {
            "new": 4, "unary": 8, "reduce": 5, "view": 14, "copy": 5, "binary": 12, "inplace": 8, "write": 8,
            "scalar": 6, "cast": 4, "factory": 2, "draw": 5, "layer": 3, "backward": 3, "grad": 2, "hook": 1,
            "optimiser": 2, "ambient": 1, "barrier": 3, "observe": 2, "fail": 1, "del": 1, "seed": 0.5, "generator": 1,
        }  # fmt: skip
        if self.part == "step":
            for k in ("new", "ambient", "barrier", "observe", "fail", "del", "seed", "generator", "optimiser", "hook"):
                del kinds[k]
            kinds["draw"] = 2
            if self.mode == "compiled":
                kinds |= {"host": 2, "kept": 1, "keep": 2}
        if self.mode in THREADS:
            for k in ("draw", "fail", "seed"):
                kinds.pop(k, None)
        if self.autocast:
            # Backward passes of what was computed before are cast otherwise on the CPU.
            kinds = {"view": 4, "autocast": 8, "scalar": 2, "leave": 2}
        return getattr(self, "_" + r.choices(list(kinds), list(kinds.values()))[0])()

    def _errors(self):
        return 0.06 if self.mode == "recorded" else 0.0

    def _from(self, templates, names, assigns=True, writes=(), **also):
        if None in names:
            return False
        text = self.r.choice(templates).format(*names, **also)
        head = f"{self.fresh()} = " if assigns else ""
        return self.put(head + text, writes, self._errors())

    _new = new

    def _unary(self):
        return self._from(table.UNARY_PLAIN + ([] if self.plain else table.UNARY + table.INTS), [self.pick()])

    def _reduce(self):
        return self._from(
            table.REDUCE_PLAIN[: -6 if self.part == "step" else None] + ([] if self.plain else table.REDUCE),
            [self.pick()],
        )

    def _view(self):
        # The bits of a NaN are not defined, and which calls of a step make one is not known here.
        views = [t for t in table.VIEW if ".view(torch." not in t] if self.mode in STEPS else table.VIEW
        return self._from(views, [self.pick()])

    def _copy(self):
        templates = [t for t in table.COPY if "idx" not in t] if self.part == "step" else table.COPY
        return self._from(templates, [self.pick()])

    def _layer(self):
        if self.plain:
            return False
        templates = [
            t.replace("w({0},", "torch.full_like({0}.flatten()[:1],0.5).expand(").replace("expand((", "expand(*(")
            for t in table.LAYERS
        ]
        templates = [t for t in templates if "idx" not in t] if self.part == "step" else templates
        return self._from(templates, [self.pick(lambda t: t.is_floating_point() and t.numel())])

    def _binary(self):
        a = self.pick()
        t = self.world.names.get(a)
        like = lambda u: u.shape == t.shape and u.dtype == t.dtype
        b = self.pick(like) if t is not None and self.r.random() < 0.4 else self.pick()
        return self._from(table.BINARY_PLAIN + ([] if self.plain else table.BINARY), [a, b])

    def _inplace(self):
        a = self.pick()
        templates = table.INPLACE_PLAIN + ([] if self.plain else table.INPLACE)
        if self.part == "step":
            templates = [
                t
                for t in templates
                if "idx" not in t and "set_" not in t and "requires_grad" not in t and "resize" not in t
            ]
        return self._from(templates, [a], assigns=False, writes=[a])

    def _write(self):
        a, b = self.pick(), self.pick()
        if a is None:
            return False
        x, y = self.world.names[a], self.world.names[b]
        tame = x.is_floating_point() or not y.is_floating_point()
        tame = tame and not (y.is_complex() and not x.is_complex())
        templates = [t for t in table.WRITES_PLAIN if tame or "copy" not in t and "]={1}" not in t]
        if self.part == "step":
            templates = [
                t for t in templates if "idx" not in t and "set_" not in t and ".data=" not in t and "grad=" not in t
            ]
        return self._from(templates, [a, b], assigns=False, writes=[a, b] if "foreach" in templates else [a])

    def _scalar(self):
        templates = table.SCALAR_PLAIN if self.plain else table.SCALAR_PLAIN + table.SCALAR
        templates = ["{0}+{s}", "{0}*{s}", "{s}-{0}"] if self.autocast else templates
        return self._from(templates, [self.pick()], s=self.r.choice(table.SCALARS))

    def _cast(self):
        name, dtype = self.pick(), self.r.choice(_DTYPES)
        if name is None:
            return False
        source = self.world.names[name]
        if source.is_complex() and dtype != "complex64":
            return False
        to_int = (
            not getattr(torch, dtype).is_floating_point
            and dtype not in ("bool", "complex64")
            and source.is_floating_point
        )
        if to_int and source.is_floating_point():
            clamp = _INT_CASTS.replace("clamp(-50,50)", "clamp(0,50)") if dtype == "uint8" else _INT_CASTS
            return self.put(f"{self.fresh()} = " + clamp.format(name, dtype))
        return self.put(f"{self.fresh()} = {name}.to(torch.{dtype}{self.r.choice(['', ', copy=True'])})")

    def _factory(self):
        templates = [t for t in table.FACTORIES if "tensor([" not in t] if self.part == "step" else table.FACTORIES
        return self._from(templates, [])

    def _draw(self):
        a = self.pick(lambda t: t.is_floating_point())
        if a is None:
            return False
        text = self.r.choice(table.DRAWS[:10] if self.plain else table.DRAWS).format(a)
        written = [a] if text.startswith(a) and "_(" in text else []
        head = "" if written else f"{self.fresh()} = "
        return self.put(head + text, written)

    def _host(self):
        return self._from(table.HOST, [self.pick()])

    def _kept(self):
        return self._from(table.KEPT, [self.pick()])

    def _keep(self):
        return self._from(table.KEEPS, [self.pick()], assigns=False)

    def _backward(self):
        return self._from(table.BACKWARD, [self.pick(lambda t: t.grad_fn is not None)], assigns=False)

    def _grad(self):
        a, b = self.pick(lambda t: t.grad_fn is not None), self.pick(lambda t: t.is_leaf and t.requires_grad)
        if a is None or b is None:
            return False
        text = self.r.choice(table.GRAD).format(a, b)
        if text.endswith(f"({b})") and "func" in text:
            return self.put(f"{self.fresh()} = {text}", (), self._errors())
        return self.put(f"{self.fresh()} = {text}[0]", (), self._errors())

    def _hook(self):
        return self._from(table.HOOKS, [self.pick(lambda t: t.requires_grad)], assigns=False)

    def _optimiser(self):
        r = self.r
        if self.counts["o"] and r.random() < 0.7:
            o = f"o{r.randrange(self.counts['o'])}"
            if o in self.world.names:
                return self.put(
                    r.choice([f"{o}.step()", f"{o}.step()", f"{o}.zero_grad()", f"{o}.zero_grad(set_to_none=False)"])
                )
        leaves = [n for n, t in self.world.tensors() if _meets(t, lambda t: t.is_leaf and t.requires_grad)]
        if not leaves or self.plain:
            return False
        chosen = r.sample(leaves, min(len(leaves), r.randint(1, 3)))
        text = r.choice(table.OPTIMISERS).format(f"[{', '.join(chosen)}]")
        text = text[:-1] + r.choice([", foreach=True", ", foreach=False"]) + ")"
        return self.put(f"{self.fresh('o')} = torch.optim.{text}")

    def _ambient(self):
        choices = ["enter('no_grad')", "enter('enable_grad')", "leave()", "torch.set_grad_enabled(True)"]
        if self.mode not in THREADS:
            choices += ["torch.set_default_dtype(torch.float64)", "torch.set_default_dtype(torch.float32)"]
        if not self.plain and self.r.random() < 0.3:
            self.autocast = True
            return self.put("enter('autocast')")
        return self.put(self.r.choice(choices))

    def _leave(self):
        self.autocast = False
        return self.put("leave()")

    def _autocast(self):
        a, b = self.pick(lambda t: t.dtype == torch.float32), self.pick(lambda t: t.is_floating_point())
        return self._from(
            ["{0}@{1}.mT", "F.linear({0},{1})", "{0}+{1}", "{0}*{1}", "{0}.relu()", "torch.mm({0},{1}.t())", "{0}-{1}"],
            [a, b],
        )

    def _barrier(self):
        return self.put(self.r.choice(["bar()", "bar()", "bar(True)"]))

    def _observe(self):
        return self._from(
            [
                "obs({0})",
                "obs({0}.flatten()[:2].tolist())",
                "obs({0}.sum().item())",
                "obs(bool(({0}>0).any()))",
                "obs({0}.shape)",
            ],
            [self.pick()],
            assigns=False,
        )

    def _fail(self):
        a, b = self.pick(), self.pick(lambda t: t.is_floating_point() and not t.requires_grad and t.numel())
        if a is None:
            return False
        text = self.r.choice(table.FAILS).format(a)
        if text.startswith(a) and not self.world.names[a].numel():
            return False
        behind = (
            f", {b + '.mul_(2)'!r}"
            if b is not None and self.r.random() < 0.6 and not self.world.names[b].is_inference()
            else ""
        )
        return self.put(f"fail({text!r}{behind})")

    def _del(self):
        a = self.pick()
        return a is not None and self.put(f"del {a}")

    def _seed(self):
        return self.put(f"torch.manual_seed({self.r.randrange(100)})")

    def _generator(self):
        if not self.counts["g"]:
            return self.put(f"{self.fresh('g')} = torch.Generator(dev).manual_seed({self.r.randrange(100)})")
        g = f"g{self.counts['g'] - 1}"
        if g not in self.world.names:
            return False
        draws = [
            "torch.rand(3,device=dev,generator={0})",
            "torch.randint(9,(2,),device=dev,generator={0})",
            "torch.randn(5,device=dev,generator={0})",
        ]
        return self.put(f"{self.fresh()} = " + self.r.choice(draws).format(g))


def _some(maker, n, limit=6):
    """About `n` statements."""
    tries = 0
    while len([s for s in maker.statements if s.part == maker.part]) < n and tries < n * limit:
        maker.one()
        tries += 1


def _compiled(r, environment, plain, mode):
    maker = Maker(r, mode, plain)
    for _ in range(r.randint(2, 4)):
        maker.new()
    _some(maker, r.randint(2, 8))
    maker.world._leave()
    maker.autocast = False
    maker.statements.append(Statement("leave()"))
    optimiser = r.random() < 0.5 and not plain
    if optimiser:
        for _ in range(4):
            maker.put(f"{maker.fresh()} = leaf('float32', {r.choice([(3,), (2, 3), (3, 3)])}, {r.randrange(50)})")
        leaves = [
            n
            for n, t in maker.world.tensors()
            if _meets(t, lambda t: t.is_leaf and t.requires_grad) and t.dtype == torch.float32
        ]
        text = (
            r.choice(table.OPTIMISERS).format(f"[{', '.join(leaves[-3:])}]")[:-1]
            + r.choice([", foreach=True", ", foreach=False"])
            + ")"
        )
        maker.put(f"o{maker.counts['o']} = torch.optim.{text}")
        maker.counts["o"] += 1
    # What is returned may be gone back through outside.
    flows = not optimiser and r.random() < 0.6
    if flows and not any(t.requires_grad for _, t in maker.world.tensors()):
        maker.put(f"{maker.fresh()} = leaf('float32', {r.choice([(3,), (2, 3), (3, 3)])}, {r.randrange(50)})")
    maker.part = "in"
    for i in range(r.randint(1, 3)):
        shape = r.choice([s for s in _SHAPES if len(s) < 3])
        seed = r.choice(["call", f"call + {i * 31}", str(i)])
        dtype = r.choice(["float32"] * 4 + ["int64", "bool", "float64"])
        wants = ".requires_grad_()" if flows and dtype.startswith("float") and r.random() < 0.4 else ""
        maker.put(f"x{i} = new({dtype!r}, {shape}, {seed}){wants}")
    maker.part = "step"
    start = set(dict(maker.world.tensors()))
    if optimiser:
        o = f"o{maker.counts['o'] - 1}"
        loss = " + ".join(
            f"({n} * {r.choice(['x0.float().sum()', n, '0.5'])})"
            f".{r.choice(['sum()', 'sigmoid().sum()', 'square().mean()'])}"
            for n in leaves[-3:]
        )
        maker.put(f"{o}.zero_grad({r.choice(['', 'set_to_none=False'])})")
        _some(maker, r.randint(1, 5))
        maker.put(f"{maker.fresh()} = {loss}")
        maker.put(f"t{maker.counts['t'] - 1}.sum().backward()")
        _some(maker, r.randint(1, 5))
        maker.put(f"{o}.step()")
    _some(maker, r.randint(2, 10))
    made = [(n, t) for n, t in maker.world.tensors() if n not in start]
    for n, t in made[-6:]:
        history = t.requires_grad and not (r.random() < (0.8 if flows else 0.03))
        maker.put(f"R.append({n}{'.detach()' if history else ''})")
    calls = r.randint(24, 34)
    for _ in range(r.choice([0, 0, 1, 1, 2]) if mode == "compiled" else 0):
        maker.part = f"after {r.randint(2, calls - 4)}"
        _event(maker, r, optimiser)
    style = r.choice(["globals", "object", "dict", "closure"])
    # Steps of several threads would leave their results in one place.
    leaves = r.choice(["attribute", "entry", "list", "both"]) if mode == "compiled" and r.random() < 0.4 else "returned"
    return Program(mode, tuple(maker.statements), environment, calls, style, leaves)


def _event(maker, r, optimiser):
    """Something that happens between two calls of a step."""
    a = maker.pick(lambda t: t.is_leaf)
    outside = [n for n, _ in maker.world.tensors() if any(s.made == n and s.part == "setup" for s in maker.statements)]
    a = r.choice(outside) if outside else a
    choices = [
        "torch.set_default_dtype(torch.float64)",
        "torch.set_grad_enabled(False)",
        "bar()",
        "torch.manual_seed(3)",
        "enter('no_grad')",
        "fail('torch.ones(2,device=dev)[idx([5])]')",
    ]
    if a is not None:
        choices += [
            f"{a}.zero_()",
            f"{a}.mul_(2)",
            f"{a}.requires_grad_(False)",
            f"{a}.data = {a}.data * 3",
            f"{a}.grad = None",
            f"obs({a})",
            f"{a}.set_({a}.detach().clone())",
            f"{a} = {a}.detach().clone()",
        ]
    if optimiser:
        o = f"o{maker.counts['o'] - 1}"
        choices += [
            f"{o}.param_groups[0]['lr'] = 0.5",
            f"{o}.param_groups[0]['lr'] *= 0.5",
            f"{o}.zero_grad()",
            f"{o}.state.clear()",
            f"{o}.param_groups[0]['weight_decay'] = 0.1",
            f"{o}.load_state_dict({o}.state_dict())",
        ] * 2
    maker.put(r.choice(choices))


def make(seed, mode=None):
    """The program of a seed."""
    quiet()
    r = random.Random(seed)
    mode = mode or r.choices(["recorded", "compiled", "threads", "steps"], [5, 5, 1, 1])[0]
    plain = r.random() < 0.3
    environment = {"LTC_FUSION": "1" if plain else "exact"}
    with World("cpu"):
        pass
    if mode in STEPS:
        with World("cpu"):
            return _compiled(r, environment, plain, mode)
    statements = []
    for k in range(1 if mode == "recorded" else r.randint(2, 4)):
        with World("cpu") as world:
            maker = Maker(r, mode, plain)
            maker.world = world
            maker.part = "setup" if mode == "recorded" else f"thread {k}"
            for _ in range(r.randint(1, 3)):
                maker.new()
            _some(maker, r.randint(5, 30))
            statements += maker.statements
    return Program(mode, tuple(statements), environment)
