"""What PyTorch programs expect of any device, beside right values: reading, copying, saving, modules, data loading."""

import copy
import io
import multiprocessing
import pickle

import numpy
import pytest
import torch
import torch_ltc  # noqa: F401
from citizen import batch, close, model, same
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# Reading values


def test_cpu_item_tolist_bool_len_iterate():
    t = torch.tensor([1.0, 2.5, -3.0], device="ltc")
    assert t.cpu().tolist() == t.tolist() == [1.0, 2.5, -3.0]
    assert t[1].item() == 2.5 and float(t[2]) == -3.0 and int(t[0]) == 1
    assert bool((t > -4).all()) and len(t) == 3 and [v.item() for v in t] == [1.0, 2.5, -3.0]
    assert [10, 20, 30][torch.tensor(1, device="ltc")] == 20
    assert f"{t[1]:.1f}" == "2.5"


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(6.0).reshape(2, 3),
        lambda: torch.arange(3000).reshape(30, 100),
        lambda: torch.tensor([True, False]),
        lambda: torch.tensor(3),
        lambda: torch.zeros(0, 3),
        lambda: torch.ones(2, dtype=torch.complex64),
        lambda: torch.tensor([1e-9, 1e9, float("nan"), float("inf")]),
        lambda: torch.ones(2, dtype=torch.bfloat16),
    ],
)
def test_prints_as_on_the_cpu_with_its_device(make):
    text = repr(make().to("ltc"))
    assert "device='ltc:0'" in text
    body = text.replace(", device='ltc:0'", "").replace("\n      ", "")
    assert body.split() == repr(make()).replace("\n      ", "").split()


def test_prints_parameters_and_grad_fn():
    assert "requires_grad=True" in repr(nn.Parameter(torch.ones(2, device="ltc")))
    assert "grad_fn=<MulBackward0>" in repr(torch.ones(2, device="ltc", requires_grad=True) * 2)


def test_numpy_only_through_cpu():
    t = torch.arange(4.0, device="ltc")
    assert numpy.array_equal(t.cpu().numpy(), numpy.arange(4, dtype=numpy.float32))
    with pytest.raises(TypeError):
        t.numpy()
    same(torch.from_numpy(numpy.ones(3)).to("ltc"), torch.ones(3, dtype=torch.float64))
    same(torch.as_tensor(numpy.ones(3), device="ltc"), torch.ones(3, dtype=torch.float64))


def test_dlpack_through_cpu():
    t = torch.arange(4.0, device="ltc")
    same(torch.from_dlpack(t.cpu()).to("ltc"), t)
    with pytest.raises((BufferError, RuntimeError, ValueError, NotImplementedError, TypeError)):
        torch.utils.dlpack.to_dlpack(t)


def test_cpu_copy_does_not_follow_later_writes():
    t = torch.ones(3, device="ltc")
    before = t.cpu()
    t.add_(1)
    same(before, torch.ones(3))
    same(t, torch.full((3,), 2.0))


# Factories and devices


def test_factories():
    for make in (
        lambda d: torch.tensor([1.0, 2.0], device=d),
        lambda d: torch.full((2,), 3.0, device=d),
        lambda d: torch.arange(5, device=d),
        lambda d: torch.linspace(0, 1, 4, device=d),
        lambda d: torch.eye(3, device=d),
        lambda d: torch.tril_indices(3, 3, device=d),
        lambda d: torch.zeros(2, device=d).new_ones(3),
        lambda d: torch.ones_like(torch.zeros(2, device=d)),
        lambda d: torch.scalar_tensor(2.0, device=d),
    ):
        value = make("ltc")
        assert value.device.type == "ltc"
        same(value, make("cpu"))


def test_default_device():
    with torch.device("ltc"):
        layer = nn.Linear(2, 2)
        y = layer(torch.ones(1, 2))
    assert y.device.type == "ltc" and layer.weight.device.type == "ltc"


def test_device_methods_and_module():
    assert torch.ones(2).ltc().is_ltc and nn.Linear(2, 2).ltc().weight.is_ltc
    assert torch.ltc.is_available() and torch.ltc.device_count() >= 1
    assert torch.device("ltc") != torch.device("cpu") and torch.ones(1, device="ltc").get_device() == 0
    with torch.ltc.device(0):
        assert torch.ltc.current_device() == 0
    torch.ltc.synchronize()


def test_scalars_mix_and_tensors_do_not():
    t = torch.ones(3, device="ltc")
    same(t + torch.tensor(2.0), torch.full((3,), 3.0))
    with pytest.raises(RuntimeError, match="device"):
        (t + torch.ones(3)).cpu()
    t[torch.tensor([1])] = 7.0
    t[0] = torch.tensor(5.0)
    same(t, torch.tensor([5.0, 7.0, 1.0]))


# Copies and files


def test_deepcopy_of_tensors_and_modules():
    m = model().to("ltc")
    twin = copy.deepcopy(m)
    with torch.no_grad():
        twin[0].weight.add_(1)
    assert twin[0].weight.is_leaf and twin[0].weight.device.type == "ltc"
    close(twin[0].weight - 1, m[0].weight)
    t = torch.arange(3.0, device="ltc")
    pair = copy.deepcopy([t, t[1:]])
    pair[0].add_(1)
    same(pair[1], torch.tensor([2.0, 3.0]))


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("device", ["cpu", "ltc"])
def test_files_in_the_format_from_before_torch_1_6(device, real, tmp_path):
    """As those of many model collections are: written and read, views and dtypes kept."""
    held = {"w": torch.arange(6.0).reshape(2, 3), "n": torch.arange(3), "h": torch.ones(2, dtype=torch.bfloat16)}
    held = {name: t.to(device) for name, t in held.items()}
    held["row"] = held["w"][1]
    with open(tmp_path / "old.pt", "wb+") if real else io.BytesIO() as file:
        torch.save(held, file, _use_new_zipfile_serialization=False)
        for to in ("cpu", "ltc", None):
            file.seek(0)
            found = torch.load(file, map_location=to)
            assert all(t.device.type == (to or device) for t in found.values())
            for name, t in found.items():
                same(t, held[name].cpu())
            found["w"].zero_()
            assert found["row"].tolist() == [0.0, 0.0, 0.0]


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("where", [None, "cpu", "ltc", "ltc:0", {"ltc:0": "cpu"}])
def test_state_dict_roundtrip(where):
    m = model().to("ltc")
    opt = torch.optim.Adam(m.parameters())
    m(batch()[0].to("ltc")).sum().backward()
    opt.step()
    state = torch.load(saved({"m": m.state_dict(), "o": opt.state_dict()}), map_location=where)
    expected = "cpu" if where in ("cpu", {"ltc:0": "cpu"}) else "ltc"
    assert {t.device.type for t in state["m"].values()} == {expected}
    other = model(seed=1).to("ltc")
    other.load_state_dict(state["m"])
    again = torch.optim.Adam(other.parameters())
    again.load_state_dict(state["o"])
    for a, b in zip(m.parameters(), other.parameters()):
        same(b, a)
        same(again.state[b]["exp_avg"], opt.state[a]["exp_avg"])


def test_cpu_file_loads_onto_ltc():
    t = torch.load(saved(torch.arange(3.0)), map_location="ltc")
    assert t.device.type == "ltc"
    same(t, torch.arange(3.0))


def test_saved_views_share_memory_again():
    t = torch.arange(10.0, device="ltc")
    whole, part = torch.load(saved([t, t[2:5]]))
    whole.add_(1)
    same(part, torch.tensor([3.0, 4.0, 5.0]))


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickle(protocol):
    t = torch.arange(6.0, device="ltc").reshape(2, 3).t()
    again = pickle.loads(pickle.dumps(t, protocol))
    assert again.device.type == "ltc" and again.stride() == t.stride()
    same(again, t)
    p = pickle.loads(pickle.dumps(nn.Parameter(t), protocol))
    assert isinstance(p, nn.Parameter) and p.requires_grad


def test_storage():
    t = torch.arange(4.0, device="ltc")
    s = t.untyped_storage()
    assert s.nbytes() == 16 and s.device.type == "ltc"
    assert bytes(s.cpu().tolist()) == numpy.arange(4, dtype=numpy.float32).tobytes()


# Modules


def test_to_keeps_parameter_identity_and_ties():
    m = nn.ModuleDict({"a": nn.Embedding(5, 4), "b": nn.Linear(4, 5, bias=False)})
    m["b"].weight = m["a"].weight
    weight = m["a"].weight
    opt = torch.optim.SGD(m.parameters(), lr=1.0)
    m.to("ltc")
    assert m["a"].weight is weight is m["b"].weight and weight.device.type == "ltc"
    before = weight.detach().clone()
    m["b"](m["a"](torch.tensor([1, 2], device="ltc"))).sum().backward()
    opt.step()
    assert not torch.equal(weight.cpu(), before.cpu())
    m.cpu()
    assert m["b"].weight is weight and weight.device.type == "cpu"


def test_to_moves_gradients_and_buffers():
    m = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    m(torch.randn(3, 4)).sum().backward()
    m.to("ltc")
    assert m[0].weight.grad.device.type == "ltc" and m[1].running_mean.device.type == "ltc"
    m.zero_grad(set_to_none=False)
    same(m[0].weight.grad, torch.zeros(4, 4))


def test_forward_and_backward_hooks():
    seen = []
    m = model().to("ltc")
    m[0].register_forward_pre_hook(lambda mod, args: seen.append("pre"))
    m[0].register_forward_hook(lambda mod, args, out: seen.append("forward") or out * 2)
    m[2].register_full_backward_hook(lambda mod, gin, gout: seen.append("backward"))
    m[0].weight.register_hook(lambda g: seen.append("tensor") or g * 0)
    m[0].bias.register_post_accumulate_grad_hook(lambda p: seen.append("accumulated"))
    m(batch()[0].to("ltc")).sum().backward()
    assert set(seen) == {"pre", "forward", "backward", "tensor", "accumulated"}
    same(m[0].weight.grad, torch.zeros(8, 4))


@pytest.mark.parametrize("make", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_and_packed_sequences(make):
    torch.manual_seed(0)
    cpu = make(3, 4, 2, bidirectional=True)
    ltc = copy.deepcopy(cpu).to("ltc")
    x = torch.randn(5, 2, 3)
    for m, t in ((cpu, x), (ltc, x.to("ltc"))):
        packed = nn.utils.rnn.pack_padded_sequence(t, torch.tensor([5, 3]))
        out, _ = m(packed)
        m.value = nn.utils.rnn.pad_packed_sequence(out)[0]
        m.value.sum().backward()
    close(ltc.value, cpu.value)
    close(ltc.weight_hh_l0.grad, cpu.weight_hh_l0.grad)


def test_transformer_layer_trains_and_infers():
    torch.manual_seed(0)
    cpu = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    ltc = copy.deepcopy(cpu).to("ltc")
    x = torch.randn(2, 5, 8)
    close(ltc(x.to("ltc")), cpu(x), 1e-4)
    with torch.inference_mode():
        close(ltc.eval()(x.to("ltc")), cpu.eval()(x), 1e-4)


# Data loading


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_dataloader_workers(context):
    data = TensorDataset(torch.arange(12.0).view(6, 2), torch.arange(6))
    torch.ones(2, device="ltc").sum().item()  # the device is in use before the workers start
    total = 0
    for x, y in DataLoader(data, batch_size=2, num_workers=2, multiprocessing_context=context):
        total += (x.to("ltc", non_blocking=True).sum() + y.to("ltc").sum()).item()
    assert total == 66 + 15


def _double_in_child(queue):
    queue.put((torch.ones(3, device="ltc") * 2).sum().item())


def _spawned(queue):
    import torch_ltc  # noqa: F401, F811  (a spawned process has no device yet)

    _double_in_child(queue)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_device_in_a_child_process(context):
    """Works, or says clearly that it cannot (as CUDA does after fork); it never hangs."""
    torch.ones(2, device="ltc").sum().item()
    ctx = multiprocessing.get_context(context)
    queue = ctx.SimpleQueue()
    child = ctx.Process(target=_spawned, args=(queue,))
    child.start()
    child.join(60)
    hung = child.is_alive()
    if hung:
        child.kill()
    assert not hung, "the child hangs"
    if context == "fork" and child.exitcode == 1:
        return  # it raised
    assert child.exitcode == 0 and queue.get() == 6.0


def _works(rank, net, x, storage, queue):
    queue.put((rank, net(x).device.type, net(x).tolist(), len(storage)))


@pytest.mark.timeout(120)
def test_spawned_processes_are_given_models_and_tensors():
    """Copies: what a process is handed with its arguments has to last until it is there."""
    net, x = nn.Linear(3, 2).to("ltc"), torch.arange(3.0, device="ltc")
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    torch.multiprocessing.spawn(_works, args=(net, x, x.untyped_storage(), queue), nprocs=2)
    found = sorted(queue.get() for _ in range(2))
    assert [(rank, device, size) for rank, device, _, size in found] == [(0, "ltc", 12), (1, "ltc", 12)]
    assert found[0][2] == found[1][2] == pytest.approx(net(x).tolist())


def test_dataset_on_the_device():
    t = torch.arange(6.0, device="ltc")
    assert sum(x.sum().item() for (x,) in DataLoader(TensorDataset(t), batch_size=4)) == 15
