"""Models as people download them (`transformers`, `torchvision`), small, with random weights: a training step with
AdamW each.

They are cases of `paired.py` by name only: `pip install -r ltc-python/benches/requirements.txt` brings the packages.
"""

import itertools

import torch
import torch.nn.functional as F

VOCABULARY, BATCH, LENGTH = 1000, 8, 64
_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 512,
}
_VISION = {k: v for k, v in _SIZES.items() if k != "vocab_size"} | {"image_size": 64, "patch_size": 8}
#: Name: its class in `transformers` (the configuration is called alike) and settings; the words are their own labels.
_LANGUAGE = {
    "bert": ("BertForMaskedLM", "BertConfig", _SIZES),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"vocab_size": VOCABULARY, "n_embd": 128, "n_layer": 4, "n_head": 4}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", _SIZES | {"num_key_value_heads": 2}),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", _SIZES | {"num_key_value_heads": 2, "num_local_experts": 4}),
    "mamba": (
        "MambaForCausalLM",
        "MambaConfig",
        {"vocab_size": VOCABULARY, "hidden_size": 128, "num_hidden_layers": 2},
    ),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {"vocab_size": VOCABULARY, "d_model": 128, "d_kv": 32, "d_ff": 512, "num_layers": 3, "num_heads": 4}
        | {"decoder_start_token_id": 0},
    ),
}
#: Models of `torchvision`, on pictures of 64 x 64.
_TORCHVISION = ("resnet18", "mobilenet_v3_small", "efficientnet_b0", "swin_t")
#: After the name of a language model: sentences of another length at each step.
_ANY = ", any length"
NAMES = tuple(
    f"hub {name}" for name in (*_LANGUAGE, "vit", *_TORCHVISION, *(f"{name}{_ANY}" for name in ("gpt2", "llama")))
)


def _words():
    return torch.randint(3, VOCABULARY, (BATCH, LENGTH))


def _pictures():
    return torch.randn(BATCH, 3, 64, 64), torch.randint(0, 10, (BATCH,))


def _model(name):
    """A model, a batch, and the loss of the two."""
    if name in _TORCHVISION:
        import torchvision

        model = torchvision.models.get_model(name, num_classes=10)
        return model, _pictures(), lambda model, x, y: F.cross_entropy(model(x), y)
    import transformers

    if name == "vit":
        model = transformers.ViTForImageClassification(transformers.ViTConfig(**_VISION, num_labels=10))
        return model, _pictures(), lambda model, x, y: model(pixel_values=x, labels=y).loss
    model, configuration, settings = _LANGUAGE[name]
    model = getattr(transformers, model)(getattr(transformers, configuration)(**settings))
    return model, (_words(),), lambda model, x: model(input_ids=x, labels=x).loss


def build(case, device, prepare, compiled):
    """The step function of a case, as in `cases.build`."""
    model, batch, loss = _model(case.removeprefix("hub ").removesuffix(_ANY))
    model.to(device).train()
    forward = prepare(model)
    batch = [x.to(device) for x in batch]
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

    @compiled
    def learn(*batch):
        opt.zero_grad()
        value = loss(forward, *batch)
        value.backward()
        opt.step()
        return value.detach()

    if not case.endswith(_ANY):
        return lambda: learn(*batch)
    lengths = itertools.cycle(torch.randint(16, LENGTH, (100,), generator=torch.Generator().manual_seed(0)).tolist())

    def step():
        length = next(lengths)
        return learn(*[x[:, :length].contiguous() for x in batch])

    return step
