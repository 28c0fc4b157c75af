"""Packages that choose the device themselves, as ``docs/frameworks.md`` says to use them."""

import copy
import logging

import accelerate
import lightning
import peft
import pytest
import torch
import torch_ltc
import torch_ltc.lightning
import torchmetrics
import transformers
from safetensors.torch import load_file, save_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.distributed import checkpoint
from torch.utils.tensorboard import SummaryWriter


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))


def data():
    return torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))


@pytest.fixture
def chosen(monkeypatch):
    """Chooses the device of accelerate, and its precision, as environment variables do at the start of a program."""

    def choose(device, precision="no"):
        accelerate.state.AcceleratorState._reset_state(True)
        accelerate.state.GradientState._reset_state()
        monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", device)
        monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", precision)

    yield choose
    accelerate.state.AcceleratorState._reset_state(True)
    accelerate.state.GradientState._reset_state()


def accelerated(directory):
    """Losses of an epoch by accelerate, and the dtypes that its layers computed in."""
    accelerator = accelerate.Accelerator(gradient_accumulation_steps=2)
    model, dtypes = network(), set()
    model[0].register_forward_hook(lambda module, inputs, result: dtypes.add(result.dtype))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = torch.utils.data.DataLoader(data(), batch_size=8, shuffle=True)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 2)
    model, optimiser, loader, schedule = accelerator.prepare(model, optimiser, loader, schedule)
    losses = []
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
            losses.append(accelerator.gather(loss.detach()))
    accelerator.save_state(str(directory))
    accelerator.load_state(str(directory))
    assert {t.device.type for t in model.parameters()} == {accelerator.device.type} == {losses[0].device.type}
    return [loss.item() for loss in losses], dtypes


@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_accelerate_trains_on_the_device_that_the_environment_names(chosen, tmp_path, precision):
    chosen("cpu", precision)
    expected, dtypes = accelerated(tmp_path / "cpu")
    chosen("ltc", precision)
    assert accelerate.Accelerator().device.type == "ltc"
    losses, ours = accelerated(tmp_path / "ltc")
    assert ours == dtypes == {torch.float32 if precision == "no" else torch.bfloat16}
    assert losses == pytest.approx(expected, rel=1e-5 if precision == "no" else 1e-2)


def test_a_step_of_accelerate_is_replayed(chosen):
    """Forward, backward, clipping and the optimiser; the schedule moves between steps."""
    found = {}
    for device in ("cpu", "ltc"):
        chosen(device)
        accelerator, model = accelerate.Accelerator(), network()
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda i: 1 / (1 + i))
        model, optimiser, schedule = accelerator.prepare(model, optimiser, schedule)

        def step(x, y, accelerator=accelerator, model=model, optimiser=optimiser):
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            return loss.detach()

        call, found[device] = torch_ltc.compile(step) if device == "ltc" else step, []
        draws = torch.Generator().manual_seed(1)
        for _ in range(14):
            x, y = torch.randn(8, 8, generator=draws), torch.randint(0, 2, (8,), generator=draws)
            found[device].append(call(x.to(device), y.to(device)).item())
            schedule.step()
    assert found["ltc"] == pytest.approx(found["cpu"], rel=1e-5)
    assert call.counts[0] >= 8, call.explain()


def trained(directory, **options):
    """What Trainer says of a small BERT."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = transformers.BertForSequenceClassification(config)
    rows = [{"input_ids": torch.randint(0, 50, (12,)), "labels": torch.tensor(i % 2)} for i in range(24)]
    arguments = transformers.TrainingArguments(
        output_dir=str(directory),
        per_device_train_batch_size=8,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        **options,
    )
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows[:8])
    loss = trainer.train().training_loss
    return next(model.parameters()).device.type, loss, trainer.evaluate()["eval_loss"]


@pytest.mark.parametrize("options", [{}, {"gradient_checkpointing": True}], ids=["plain", "checkpoints"])
def test_trainer_of_transformers_trains_on_it(chosen, tmp_path, options):
    chosen("cpu")
    _, *expected = trained(tmp_path, num_train_epochs=2, **options)
    chosen("ltc")
    device, *ours = trained(tmp_path, num_train_epochs=2, **options)
    assert device == "ltc" and ours == pytest.approx(expected, rel=1e-5)


class Classifier(lightning.LightningModule):
    """A network, and what its first layer computes in and on."""

    def __init__(self):
        super().__init__()
        self.network, self.seen = network(), set()
        self.network[0].register_forward_hook(
            lambda m, inputs, result: self.seen.add((result.dtype, result.device.type))
        )

    def loss(self, batch, name):
        x, y = batch
        loss = nn.functional.cross_entropy(self.network(x), y)
        self.log(name, loss)
        return loss

    def training_step(self, batch, index):
        return self.loss(batch, "loss")

    def validation_step(self, batch, index):
        self.loss(batch, "validation")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def fitted(**options):
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    model = Classifier()
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    trainer = lightning.Trainer(max_epochs=2, gradient_clip_val=1.0, **dict.fromkeys(quiet, False), **options)
    rows = data()
    loaders = (torch.utils.data.DataLoader(rows, batch_size=8) for _ in range(2))
    trainer.fit(model, *loaders)
    return model.seen, {name: value.item() for name, value in trainer.callback_metrics.items()}


@pytest.mark.parametrize(
    "precision, dtype",
    [("32-true", torch.float32), ("bf16-mixed", torch.bfloat16), ("16-mixed", torch.float16)],
)
@pytest.mark.filterwarnings("ignore")
def test_lightning_trains_on_it_in_the_precision_that_is_asked_for(precision, dtype):

    _, expected = fitted(accelerator="cpu")
    seen, ours = fitted(accelerator="ltc", strategy="ltc", precision=precision)
    assert seen == {(dtype, "ltc")}
    assert ours == pytest.approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-2)


@pytest.mark.filterwarnings("ignore")
def test_lightning_never_takes_another_device_silently():

    with pytest.raises(ValueError, match='strategy="ltc"'):
        fitted(accelerator="ltc")


def test_peft_adapts_a_model_on_it(tmp_path):
    def adapted(device):
        torch.manual_seed(0)
        sizes = dict(vocab_size=50, n_embd=32, n_layer=2, n_head=2, n_positions=32)
        model = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(**sizes, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
        )
        config = peft.LoraConfig(r=4, target_modules=["c_attn"], lora_dropout=0.0, fan_in_fan_out=True)
        model = peft.get_peft_model(model, config).to(device)
        optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
        tokens, losses = torch.randint(0, 50, (4, 16)).to(device), []
        for _ in range(4):
            loss = model(input_ids=tokens, labels=tokens).loss
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            losses.append(loss.item())
        model.save_pretrained(tmp_path / device)
        assert (tmp_path / device / "adapter_model.safetensors").exists()
        mask = torch.ones(4, 4, dtype=torch.int64, device=device)
        written = model.generate(tokens[:, :4], attention_mask=mask, pad_token_id=0, max_new_tokens=4, do_sample=False)
        return losses, written.cpu(), {name: p.cpu() for name, p in model.merge_and_unload().state_dict().items()}

    (losses, written, weights), (ours, our_written, our_weights) = adapted("cpu"), adapted("ltc")
    assert ours == pytest.approx(losses, rel=1e-5) and torch.equal(written, our_written)
    for name, weight in weights.items():
        torch.testing.assert_close(our_weights[name], weight, rtol=1e-4, atol=1e-5)


def test_metrics_and_files(tmp_path):
    metric, ours = (torchmetrics.classification.MulticlassAccuracy(3).to(device) for device in ("cpu", "ltc"))
    for _ in range(3):
        scores, labels = torch.randn(5, 3), torch.randint(0, 3, (5,))
        metric.update(scores, labels)
        ours.update(scores.to("ltc"), labels.to("ltc"))
    assert ours.compute().item() == metric.compute().item()

    model = network().to("ltc")
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    other = copy.deepcopy(model)
    for p in other.parameters():
        nn.init.zeros_(p)
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_tensorboard_takes_values_of_it(tmp_path):
    values = torch.rand(3, 8, 8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("sum", values.to("ltc").sum(), 1)
        writer.add_histogram("values", values.to("ltc"), 1)
        writer.add_image("image", values.to("ltc"), 1)
    events = EventAccumulator(str(tmp_path)).Reload()
    assert events.Scalars("sum")[0].value == pytest.approx(values.sum().item())
    assert events.Histograms("values")[0].histogram_value.num == values.numel()
    assert events.Images("image")[0].width == 8


@pytest.mark.parametrize("device", ["cpu", "ltc"])
def test_distributed_checkpoints_of_one_process(tmp_path, device):

    model, other = network().to(device), network().to(device)
    for p in other.parameters():
        nn.init.zeros_(p)
    checkpoint.save({"model": model.state_dict()}, checkpoint_id=tmp_path / "now")
    checkpoint.async_save({"model": model.state_dict()}, checkpoint_id=tmp_path / "later").result()
    for name in ("now", "later"):
        state = {"model": other.state_dict()}
        checkpoint.load(state, checkpoint_id=tmp_path / name)
        other.load_state_dict(state["model"])
        assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(model.parameters(), other.parameters(), strict=True))
        torch_ltc.mark_step()
