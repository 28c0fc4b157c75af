"""Mistakes with memory and streams give wrong values over the stand-in when work is done late. Work that is done at
once hides them, as a GPU does with luck. Each pipeline here is right, and planted mistakes in it are seen."""

import ctypes

import pytest
import stand_in
import torch
from stand_in import LATE


def upload(planted=None):
    """Batches from one pinned buffer, that is written again when the copy from it is done."""
    stage, arrived, got = torch.empty(4).pin_memory(), torch.cuda.Event(), []
    for batch in range(3):
        if planted != "written too early":
            arrived.synchronize()
        stage.fill_(batch)
        got.append(torch.empty(4, device="cuda").copy_(stage, non_blocking=True))
        arrived.record()
    return [x.cpu().tolist() for x in got] == [[batch] * 4 for batch in range(3)]


def read_back(planted=None):
    """A result read in pinned memory once its event is done."""
    pinned, done = torch.zeros(4).pin_memory(), torch.cuda.Event()
    pinned.copy_(torch.ones(4).cuda(), non_blocking=True)
    done.record()
    if planted != "read before its event":
        done.synchronize()
    return pinned.tolist() == [1] * 4


def copy_stream(planted=None):
    """A batch that is uploaded on a stream of its own and used on another one, which waits for its event."""
    compute, copies, arrived = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Event()
    stage = torch.ones(4).pin_memory()
    with torch.cuda.stream(copies):
        x = torch.empty(4, device="cuda").copy_(stage, non_blocking=True)
        arrived.record()
    with torch.cuda.stream(compute):
        if planted != "a dropped event":
            compute.wait_event(arrived)
        x.record_stream(compute)
        return x.cpu().tolist() == [1] * 4


def freed_block(planted=None):
    """A block of one stream that another one still reads when it is freed."""
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    x = torch.ones(4).cuda()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        y = torch.empty(4, device="cuda").copy_(x)
        done.record()
    if planted != "freed without record_stream":
        x.record_stream(side)
    del x
    # The allocator gives the block to the next who asks for it.
    torch.full((4,), 2.0).cuda()
    torch.cuda.synchronize()
    return y.cpu().tolist() == [1] * 4


def freed_stage(planted=None):
    """A pinned buffer that is given back before the copy from it is done. libtorch knows of its own copies."""
    stage, x = torch.ones(4).pin_memory(), torch.empty(4, device="cuda")
    if planted == "a freed stage":
        to, of, stream = (ctypes.c_void_p(at) for at in (x.data_ptr(), stage.data_ptr(), stream_of(x)))
        assert stand_in.driver.cudaMemcpyAsync(to, of, ctypes.c_size_t(x.nbytes), 4, stream) == 0
    else:
        x.copy_(stage, non_blocking=True)
    del stage
    torch.full((4,), 2.0).pin_memory()
    return x.cpu().tolist() == [1] * 4


def stream_of(x):
    return torch.cuda.current_stream(x.device).cuda_stream


PLANTED = {
    "written too early": upload,
    "read before its event": read_back,
    "a dropped event": copy_stream,
    "freed without record_stream": freed_block,
    "a freed stage": freed_stage,
}


@pytest.mark.parametrize("pipeline", PLANTED.values())
def test_pipelines_are_right(pipeline):
    assert pipeline()


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_mistake_is_seen_when_work_is_late(planted):
    assert PLANTED[planted](planted) is not LATE
