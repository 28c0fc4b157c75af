"""What is shown of Python functions from their code: that they change nothing but the object whose methods they are."""

import functools
import math
from math import exp

import pytest
from torch.optim import lr_scheduler
from torch_ltc import _effects

SEEN = [1.0, 2.0]


def changes(function, owner=None):
    """As `_effects.changes`, without the places that the answer relies on."""
    return _effects.changes(function, owner, [])


def plain(n):
    return SEEN[n] if n < 2 else max(0.0, 0.5 * (1.0 + math.cos(math.pi * float(n)))) + exp(-n)


def with_options(n, *, warm=3, scale=1.0):
    if n < warm:
        return float(n) / float(max(1, warm))
    rest = [i * scale for i in range(n) if i % 2]
    return sum(rest) / (len(rest) or 1)


def again(n):
    return plain(n - 1) + (again(n - 2) if n > 2 else 0)


class Own(lr_scheduler.LRScheduler):
    def get_lr(self):
        self.calls = self.last_epoch
        return [self.scaled(base) for base in self.base_lrs]

    def scaled(self, base):
        return base * max(1, self.last_epoch) / math.sqrt(2)

    def step(self, epoch=None):
        super().step()


def name(function):
    return getattr(function, "__name__", type(function).__name__)


@pytest.mark.parametrize(
    "function", [plain, again, math.cos, lambda n: 1 / (1 + n), functools.partial(with_options, warm=5)], ids=name
)
def test_what_computes_changes_nothing(function):
    assert changes(function) == ""


def test_methods_may_change_their_object():
    assert [changes(getattr(Own, name), Own) for name in ("get_lr", "scaled", "step")] == ["", "", ""]
    assert changes(Own.get_lr) != "", "of an object whose class is not known"


def appends(n):
    SEEN.append(n)


def item(n):
    SEEN[0] = n


def added(n):
    seen = SEEN
    seen += [n]
    return n


def by_another(n):
    return appends(n) or plain(n)


def prints(n):
    print(n)


def sets_a_global(n):
    global SEEN
    SEEN = n


def calls_what_it_is_given(n):
    return n()


def calls_a_method_of_what_it_is_given(n):
    return n.pop()


def calls_what_a_list_holds(n):
    return SEEN[0](n)


def hands_a_function_on(n):
    return max([n, 1], key=appends)


ITERATOR = iter([1.0, 2.0])


def goes_on(n):
    return sum(ITERATOR) + n


def goes_on_in_a_default(n, given=ITERATOR):
    return sum(given) + n


def goes_on_in_a_cell():
    given = iter([1.0])
    return lambda n: n + sum(given)


def hides_its_change(n):
    return [SEEN.append(i) for i in range(n)]


def imports(n):
    import antigravity_of_ltc  # noqa: F401

    return n


def attribute(n):
    n.x = 1


def with_a_counter():
    count = 0

    def counts(n):
        nonlocal count
        count = count + 1
        return count * n

    return counts


class OwnThatCounts(Own):
    def scaled(self, base):
        SEEN.append(base)
        return base


class Called:
    def __call__(self, n):
        return n


@pytest.mark.parametrize(
    "function",
    [
        *(
            appends,
            item,
            added,
            by_another,
            prints,
            sets_a_global,
            calls_what_it_is_given,
            hides_its_change,
            imports,
            hands_a_function_on,
        ),
        *(
            calls_a_method_of_what_it_is_given,
            calls_what_a_list_holds,
            attribute,
            with_a_counter(),
            SEEN.append,
            Called(),
        ),
        *(functools.partial(appends, 1), lambda n: SEEN.append(n)),
    ],
    ids=name,
)
def test_what_may_change_something_is_not_shown_to_change_nothing(function):
    assert changes(function)


OTHER = type("Other", (), {"all": []})()


class OwnThatGivesAway(Own):
    def step(self, epoch=None):
        super().step()
        return self.seen().scaled(1.0)

    def seen(self):
        return SEEN


def test_only_what_super_gives_has_the_methods_of_the_class():
    assert changes(OwnThatGivesAway.step, OwnThatGivesAway).startswith("it calls scaled of what it is given (")


class OwnThatIsAnother(Own):
    def step(self, epoch=None):
        self = OTHER  # noqa: PLW0642 - what is tested
        self.count = 1

    def get_lr(self):
        return [self.scaled(1.0) for self in OTHER.all]


@pytest.mark.parametrize("name", ["step", "get_lr"])
def test_another_object_by_the_name_of_its_own(name):
    assert changes(getattr(OwnThatIsAnother, name), OwnThatIsAnother)


def test_a_method_that_a_class_overrides_counts():
    assert changes(OwnThatCounts.get_lr, OwnThatCounts).startswith("it calls append of what it is given (")
