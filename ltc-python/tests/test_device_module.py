"""The device module, ``torch.ltc``, and ``torch.accelerator`` over it: streams, events, memory, properties."""

import inspect
import time

import pytest
import torch
import torch_ltc

ltc = torch.ltc

# What torch.cuda and torch.xpu have in common and torch.ltc has not.
NOT_THERE = {
    # Another device's kernels and graphs.
    *("MemPool", "use_mem_pool", "change_current_allocator", "graph", "graph_pool_handle", "make_graphed_callables"),
    *("is_current_stream_capturing", "get_arch_list", "get_gencode_flags", "get_stream_from_external"),
    *("can_device_access_peer", "is_tf32_supported"),
    # Sensors of a card, and who uses it, which later versions of torch tell of two others.
    *("utilization", "power_draw", "device_memory_used", "temperature", "clock_rate", "memory_usage"),
    "list_gpu_processes",
    # Limits of a process, and snapshots.
    *("set_per_process_memory_fraction", "get_per_process_memory_fraction", "memory_snapshot"),
}


def public(module):
    """Functions and classes of a module's own."""
    names = {name for name in dir(module) if not name.startswith("_")}
    own = {name for name in names if getattr(getattr(module, name), "__module__", "").startswith("torch.")}
    return {name for name in own if callable(getattr(module, name))}


def test_the_module_has_what_others_share():
    shared = (public(torch.cuda) & public(torch.xpu)) - {"Device"}
    missing = {name for name in shared if not hasattr(ltc, name)}
    assert missing == NOT_THERE & shared
    assert all(inspect.getdoc(f) for name, f in vars(ltc).items() if inspect.isfunction(f) and name[0] != "_")


def test_an_event_without_a_time_sends_nothing_until_it_is_asked_for():
    event = torch.Event(device="ltc")
    assert event.query(), "it was not recorded"
    x = torch.ones(8, device="ltc") + 1
    pending = torch_ltc._ltc.pending_count()
    event.record()
    assert torch_ltc._ltc.pending_count() == pending > 0
    event.synchronize()
    assert torch_ltc._ltc.pending_count() == 0 and event.query()
    y = x + 1
    event.record()
    while not event.query():
        pass
    assert torch_ltc._ltc.pending_count() == 0
    assert y.sum().item() == 24


def test_times_between_events_are_those_of_the_work():
    start, middle, end = (ltc.Event(enable_timing=True) for _ in range(3))
    x = torch.randn(256, 256, device="ltc")
    torch_ltc.mark_step(wait=True)
    begin = time.perf_counter()
    start.record()
    for _ in range(40):
        x = torch.tanh(x @ x)
    middle.record()
    x = x + 1
    end.record()
    end.synchronize()
    wall = (time.perf_counter() - begin) * 1e3
    total, first, second = start.elapsed_time(end), start.elapsed_time(middle), middle.elapsed_time(end)
    assert 0 < second < first <= total <= wall
    assert end.elapsed_time(start) == -total


def test_events_that_have_no_time_say_so():
    timed, plain = ltc.Event(enable_timing=True), ltc.Event()
    with pytest.raises(ValueError, match="must be recorded"):
        timed.elapsed_time(ltc.Event(enable_timing=True))
    timed.record()
    plain.record()
    timed.synchronize()
    plain.synchronize()
    with pytest.raises(ValueError, match="enable_timing"):
        timed.elapsed_time(plain)


def test_a_failed_program_passes_its_event_and_its_error_is_kept():
    table = torch.ones(3, device="ltc")
    bad = table.index_select(0, torch.tensor([9], device="ltc"))
    event = torch.Event(device="ltc")
    event.record()
    event.synchronize()
    with pytest.raises(IndexError):
        bad.cpu()


def test_streams_are_one_per_device():
    stream = ltc.current_stream()
    assert stream == torch.accelerator.current_stream() == ltc.default_stream() == torch.Stream(device="ltc")
    x = torch.ones(4, device="ltc") * 2
    while not stream.query():
        pass
    assert torch_ltc._ltc.pending_count() == 0, "who polls sends what is recorded"
    x = x + 1
    other = ltc.Stream(device="ltc")
    other.wait_stream(stream)
    with ltc.stream(other), other, ltc.stream(None):
        x = x + 1
    x.record_stream(other)
    event = other.record_event()
    stream.wait_event(event)
    ltc.set_stream(other)
    other.synchronize()
    assert torch_ltc._ltc.pending_count() == 0 and event.query()
    assert x.sum().item() == 16
    with pytest.raises(ValueError, match="stream of an ltc device"):
        ltc.set_stream(torch.Stream(device="cpu"))


def test_a_step_that_records_an_event_is_recorded_each_time():
    event = torch.Event(device="ltc")

    def add(x):
        y = x + 1
        event.record()
        return y

    step = torch_ltc.compile(add)
    for _ in range(8):
        step(torch.ones(2, device="ltc"))
    assert step.counts == (0, 8) and "it calls Event.record()" in step.explain()


def test_memory_is_counted_in_bytes():
    def measured():
        torch_ltc.mark_step(wait=True)
        return ltc.memory_allocated()

    before = measured()
    ltc.reset_peak_memory_stats()
    ltc.reset_accumulated_memory_stats()
    x = torch.ones(1 << 18, device="ltc")
    assert measured() == before + (1 << 20)
    y = x.double()
    assert measured() == before + (3 << 20)
    del y
    assert measured() == before + (1 << 20)
    stats = ltc.memory_stats()
    assert stats == torch.accelerator.memory_stats()
    taken, freed = (stats[f"allocated_bytes.all.{name}"] for name in ("allocated", "freed"))
    assert taken - freed == (1 << 20) and freed >= (2 << 20)
    assert ltc.max_memory_allocated() >= before + (3 << 20)
    assert ltc.max_memory_reserved() >= ltc.memory_reserved() >= ltc.memory_allocated()
    ltc.reset_peak_memory_stats()
    assert ltc.max_memory_allocated() == measured()
    nested = ltc.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == torch.accelerator.memory_allocated() == measured()


def test_memory_that_is_kept_is_given_back_and_programs_are_not_forgotten():
    x = torch.randn(1 << 20, device="ltc")
    for _ in range(4):
        x = torch.sort(x * 2).values
        torch_ltc.mark_step(wait=True)
    programs = torch_ltc._ltc.cached_programs()
    assert programs > 0
    torch.accelerator.empty_cache()
    assert ltc.memory_reserved() == ltc.memory_allocated()
    ltc.empty_cache()
    assert torch_ltc._ltc.cached_programs() == programs


def test_the_device_has_a_name_memory_and_dtypes():
    properties = ltc.get_device_properties("ltc:0")
    free, total = ltc.mem_get_info()
    assert 0 < free <= total == properties.total_memory
    assert torch.accelerator.get_memory_info()[1] == total
    assert properties.name == ltc.get_device_name() != ""
    dtypes = ltc.get_device_capability()["supported_dtypes"]
    assert dtypes == torch.accelerator.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.complex64, torch.bool, torch.int64} <= dtypes
    for dtype in dtypes:
        assert torch.empty(2, dtype=dtype, device="ltc").dtype == dtype
    assert torch.qint8 not in dtypes
    with pytest.raises(RuntimeError, match="invalid device index 99"):
        ltc.memory_allocated(99)
    with pytest.raises(ValueError, match="expected an ltc device"):
        ltc.get_device_name("cpu")


def test_default_generators_are_those_that_factories_draw_from():
    (generator, *_) = ltc.default_generators
    assert len(ltc.default_generators) == ltc.device_count() and generator.device == torch.device("ltc:0")
    ltc.manual_seed(7)
    assert generator.initial_seed() == 7
    expected = torch.rand(3, device="ltc").cpu()
    generator.manual_seed(7)
    assert torch.equal(torch.rand(3, device="ltc", generator=generator).cpu(), expected)
    assert torch.equal(generator.get_state(), ltc.get_rng_state())
    with pytest.raises(AttributeError, match="no attribute 'default_generator'"):
        _ = ltc.default_generator


def test_contexts_of_devices():
    x = torch.ones(1, device="ltc")
    with ltc.device_of(x), ltc.device(0), ltc.device_of(torch.ones(1)), ltc.device(None):
        assert ltc.current_device() == 0
