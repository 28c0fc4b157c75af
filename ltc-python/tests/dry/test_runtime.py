"""What libtorch's host code does over the stand-in: memory, streams, events, captures, waits, failures, choices."""

import ctypes
import re
import subprocess
from pathlib import Path

import pytest
import stand_in
import torch
from stand_in import LATE, run

LIBRARIES = Path(torch.__file__).parent / "lib"


@pytest.fixture(autouse=True)
def fresh():
    torch.cuda.synchronize()
    stand_in.reset()
    yield
    torch.cuda.synchronize()


def test_every_entry_point_that_libtorch_imports_is_the_stand_ins():
    def symbols(kind, library):
        out = subprocess.run(["nm", "-D", kind, library], capture_output=True, text=True, check=True).stdout
        return {line.split()[-1].split("@")[0] for line in out.splitlines()}

    there = symbols("--defined-only", stand_in.LIBRARY)
    for library in ("libc10_cuda", "libtorch_cuda", "libtorch_python", "libtorch_cpu", "libcaffe2_nvrtc"):
        needed = {name for name in symbols("--undefined-only", LIBRARIES / f"{library}.so") if is_of_cuda(name)}
        assert needed <= there, (library, sorted(needed - there))


def is_of_cuda(name):
    runtime, driver = name.startswith(("cuda", "__cuda")), name[:2] == "cu" and name[2:3].isupper()
    # cuFile is a library of its own.
    return runtime or (driver and not name.startswith("cuFile"))


def test_devices():
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2
    assert torch.cuda.get_device_capability() == (9, 0)
    with torch.cuda.device(1):
        assert torch.empty(3, device="cuda").get_device() == 1
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.empty(3, device="cuda:2")
    there = torch.arange(5.0).cuda().to("cuda:1")
    assert there.get_device() == 1 and there.cpu().tolist() == [0, 1, 2, 3, 4]


def test_memory_that_nobody_wrote_is_nan():
    torch.cuda.empty_cache()
    x = torch.empty(1 << 22, device="cuda")
    assert x.cpu().isnan().all()
    # Kernels of libtorch are noted, and do not run.
    stand_in.reset()
    x.fill_(1).add_(1)
    assert ["Fill" in stand_in.launches()[0], "add" in stand_in.launches()[1].lower()] == [True, True]
    assert x.cpu().isnan().all()


def test_the_caching_allocator_keeps_blocks():
    torch.cuda.empty_cache()
    stand_in.reset()
    for _ in range(3):
        x = torch.empty(1 << 22, device="cuda")
        assert torch.cuda.memory_allocated() >= x.nbytes
        del x
    assert stand_in.count("allocations") == 1 and stand_in.count("frees") == 0
    torch.cuda.empty_cache()
    assert stand_in.count("frees") == 1


def test_pinned_memory_is_read_and_written_when_the_stream_gets_there():
    x = torch.arange(6.0).cuda()
    pinned = torch.full((6,), -1.0).pin_memory()
    assert pinned.is_pinned()
    event = torch.cuda.Event()
    stand_in.reset()
    pinned.copy_(x, non_blocking=True)
    event.record()
    assert stand_in.waits() == 0
    assert pinned.tolist() == ([-1] * 6 if LATE else list(range(6)))
    event.synchronize()
    assert pinned.tolist() == list(range(6))
    assert stand_in.count("event_waits") == 1 and stand_in.count("bytes_down") == 24


def test_waits_and_bytes_are_counted():
    host = torch.arange(8.0).pin_memory()
    x = torch.empty(8, device="cuda")
    stand_in.reset()
    x.copy_(host, non_blocking=True)
    x.copy_(torch.arange(8.0), non_blocking=True)
    assert stand_in.waits() == 0 and stand_in.count("bytes_up") == 64
    x.cpu()
    torch.cuda.synchronize()
    torch.cuda.current_stream().synchronize()
    assert stand_in.count("device_waits") == 1 and stand_in.count("stream_waits") >= 1
    assert stand_in.count("bytes_down") == 32


def test_events_order_streams_and_are_asked():
    side, done = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    begun = torch.cuda.Event(enable_timing=True)
    host, back = torch.arange(4.0).pin_memory(), torch.zeros(4).pin_memory()
    with torch.cuda.stream(side):
        begun.record()
        x = torch.empty(4, device="cuda").copy_(host, non_blocking=True)
        done.record()
    assert done.query() is not LATE
    torch.cuda.current_stream().wait_event(done)
    back.copy_(x, non_blocking=True)
    # Only the stream that waits is waited for: the other one runs as far as its event.
    torch.cuda.current_stream().synchronize()
    assert back.tolist() == [0, 1, 2, 3] and done.query()
    assert begun.elapsed_time(done) >= 0


def test_queries_come_to_an_end():
    x, pinned = torch.ones(4).cuda(), torch.zeros(4).pin_memory()
    for _ in range(5):
        pinned.copy_(x, non_blocking=True)
    asked = 0
    while not torch.cuda.current_stream().query():
        asked += 1
    assert pinned.tolist() == [1] * 4 and (asked >= 5 if LATE else asked == 0)


def test_a_capture_is_replayed():
    a, b = torch.ones(4).cuda(), torch.empty(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        b.copy_(a)
    assert b.cpu().isnan().all()
    for value in (2.0, 3.0):
        a.copy_(torch.full((4,), value))
        graph.replay()
        assert b.cpu().tolist() == [value] * 4


def test_streams_join_a_capture_by_events():
    a, b = torch.ones(4).cuda(), torch.empty(4, device="cuda")
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            b.copy_(a)
        torch.cuda.current_stream().wait_stream(side)
    graph.replay()
    assert b.cpu().tolist() == [1] * 4


CAPTURE_ERRORS = {
    "a.cpu()": "Cannot copy between CPU and CUDA tensors during CUDA graph capture",
    "torch.cuda.synchronize()": "not permitted when stream is capturing",
    "torch.ones(4).cuda()": "Cannot copy between CPU and CUDA tensors during CUDA graph capture",
    "a.nonzero()": "not permitted when stream is capturing",
    "event = torch.cuda.Event(); event.record(); event.synchronize()": "capturing",
    "side.wait_stream(torch.cuda.current_stream()); torch.cuda.stream(side).__enter__(); a.add_(1)": "not joined",
}


@pytest.mark.parametrize("statement", CAPTURE_ERRORS)
def test_what_a_capture_refuses(statement):
    text = f"""
a, side, graph = torch.ones(4).cuda(), torch.cuda.Stream(), torch.cuda.CUDAGraph()
stream = torch.cuda.Stream()
torch.cuda.synchronize()
torch.cuda.set_stream(stream)
graph.capture_begin()
try:
    {statement}
    torch.cuda.set_stream(stream)
    graph.capture_end()
except Exception as e:
    print(str(e).splitlines())
"""
    printed = run(text)
    assert re.search(CAPTURE_ERRORS[statement], printed), printed


def test_modes_of_captures_and_other_threads():
    text = """
import threading
a, graph = torch.ones(4).cuda(), torch.cuda.CUDAGraph()
said = []
def allocate():
    try:
        torch.empty(1 << 26, device="cuda")
        said.append("allocated")
    except Exception as e:
        said.append("refused")
for mode in ("global", "thread_local", "relaxed"):
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode=mode):
            a.add_(1)
            thread = threading.Thread(target=allocate)
            thread.start(), thread.join()
    except RuntimeError as e:
        said.append("invalidated" if "previous error during capture" in str(e) else str(e))
    torch.cuda.empty_cache()
print(said)
"""
    assert run(text) == "['refused', 'invalidated', 'allocated', 'allocated']"


def test_no_memory_is_an_error_of_one_call():
    torch.cuda.empty_cache()
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 40, device="cuda", dtype=torch.uint8)
    # The allocator gives back what it keeps, and tries again.
    stand_in.fail_allocation(1)
    assert torch.empty(1 << 25, device="cuda").numel() == 1 << 25
    torch.cuda.empty_cache()
    text = """
fail_allocation(1)
import itertools
held, failed = [], 0
torch.cuda.set_per_process_memory_fraction(0.01)
for i in range(12):
    try: held.append(torch.empty(1 << 22, device="cuda"))
    except torch.OutOfMemoryError: failed += 1
del held
print(failed > 0, torch.ones(3).cuda().tolist())
"""
    assert run(text) == "True [1.0, 1.0, 1.0]"


def test_a_lost_device_stays_lost():
    text = """
x = torch.ones(3).cuda()
fail_launch(2)
said = []
for call in (lambda: x.add_(1), lambda: x.add_(1), torch.cuda.synchronize, lambda: torch.ones(3).cuda(), lambda: x + 1):
    try:
        call()
        said.append("")
    except torch.AcceleratorError as e:
        said.append(str(e).splitlines()[0])
print(said)
"""
    lost = "CUDA error: an illegal memory access was encountered"
    # The launch itself may still be answered; whoever waits is told.
    assert run(text) in (str(["", "", lost, lost, lost]), str(["", lost, lost, lost, lost]))


def test_launches_are_checked():
    stream = torch.cuda.Stream(device=1)
    function = kernel("int main;", "f")
    with pytest.raises(RuntimeError, match="400"):  # a stream of another device than the current one
        launch(function, 1, 32, stream=stream)
    with pytest.raises(RuntimeError, match="9"):  # more threads than a block may have
        launch(function, 1, 2048)


# Kernels by number: 0 math, 1 flash, 2 efficient, 3 cuDNN; of floats, and of halves without cuDNN and with it.
CHOICES = {"75": (2, 2, 2), "80": (2, 1, 1), "90": (2, 1, 3)}


@pytest.mark.parametrize("arch", CHOICES)
def test_attention_is_chosen_as_for_the_chip(arch):
    text = """
def qkv(dtype):
    return [torch.empty(2, 4, 33, 64, dtype=dtype, device="cuda") for _ in "qkv"]
torch.backends.cudnn.enabled = True
with_cudnn = torch._fused_sdp_choice(*qkv(torch.float16))
torch.backends.cudnn.enabled = False
torch.backends.cuda.enable_cudnn_sdp(False)
chosen = [torch._fused_sdp_choice(*qkv(dtype)) for dtype in (torch.float32, torch.float16)]
reset()
torch.nn.functional.scaled_dot_product_attention(*qkv(torch.float16))
fused = ["flash" if "flash_fwd" in n else "efficient" for n in launches() if "flash_fwd" in n or "fmha_cutlass" in n]
print(torch.cuda.get_device_capability(), (*chosen, with_cudnn), fused)
"""
    capability, fused = (int(arch[:-1]), int(arch[-1])), ["flash"] if CHOICES[arch][1] == 1 else ["efficient"]
    assert run(text, DRY_CUDA_ARCH=arch) == f"{capability} {CHOICES[arch]} {fused}"


HOST_KERNEL = """
extern "C" const unsigned scale_parameters = 3;
extern "C" const bool scale_pointers[] = {true, false, false};
extern "C" void scale_run(const unsigned grid[3], const unsigned block[3], unsigned, void** parameters) {
  float* x = *(float**)parameters[0];
  const double by = *(double*)parameters[1];
  const long n = *(long*)parameters[2];
  for (unsigned i = 0; i < grid[0] * block[0]; i++) if (i < n) x[i] *= by;
}
"""


def kernel(source, name):
    """A kernel of a module: the host's version of it if the source has one, else one of which launches are noted."""
    image = b"\\x7fELF no path"
    if "extern" in source:
        file = stand_in.LIBRARY.with_name("host_kernel.so")
        subprocess.run(["c++", "-shared", "-fPIC", "-x", "c++", "-", "-o", file], input=source, text=True, check=True)
        image = str(file).encode()
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert stand_in.driver.cuModuleLoadData(ctypes.byref(module), image) == 0
    assert stand_in.driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()) == 0
    return function


def launch(function, grid, block, *values, stream=None):
    kinds = {int: ctypes.c_long, float: ctypes.c_double}
    held = [ctypes.c_void_p(x.data_ptr()) if isinstance(x, torch.Tensor) else kinds[type(x)](x) for x in values]
    parameters = (ctypes.c_void_p * len(held))(*(ctypes.addressof(x) for x in held))
    handle = ctypes.c_void_p((stream or torch.cuda.current_stream()).cuda_stream)
    status = stand_in.driver.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, handle, parameters, None)
    if status:
        raise RuntimeError(f"cuLaunchKernel: {status}")


def test_a_kernel_with_a_host_version_runs_in_stream_order_and_in_graphs():
    scale = kernel(HOST_KERNEL, "scale")
    x = torch.arange(5.0).cuda()
    launch(scale, 2, 4, x, 3.0, x.numel())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch(scale, 2, 4, x, 2.0, x.numel())
    graph.replay(), graph.replay()
    assert x.cpu().tolist() == [0, 12, 24, 36, 48]
    assert "scale" in stand_in.launches()


def test_a_kernel_that_is_given_memory_of_the_host_ends_the_device():
    text = """
from test_runtime import HOST_KERNEL, kernel, launch
pinned, pageable, elsewhere = torch.ones(5).pin_memory(), torch.ones(5), torch.ones(5, device="cuda:1")
scale = kernel(HOST_KERNEL, "scale")
launch(scale, 2, 4, pinned, 3.0, 5)
torch.cuda.synchronize()
print(pinned.tolist()[0])
try:
    # Work that is done at once is answered by its launch.
    launch(scale, 2, 4, eval(os.environ["GIVEN"]), 3.0, 5)
    assert LATE
except RuntimeError as e:
    assert "700" in str(e) and not LATE
try:
    torch.cuda.synchronize()
except torch.AcceleratorError as e:
    print(str(e).splitlines()[0])
"""
    for given in ("pageable", "elsewhere"):
        assert run(text, GIVEN=given).split("\n") == ["3.0", "CUDA error: an illegal memory access was encountered"]
