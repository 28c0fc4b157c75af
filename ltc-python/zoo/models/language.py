"""Language models of ``transformers``: encoders, decoders, sequence to sequence; tiny, with random weights."""

import torch

from ..task import Task
from .small import several

WORDS, WIDTH, BATCH, LENGTH = 200, 64, 4, 32
_SIZES = dict(vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
_FEW = _SIZES | {"num_key_value_heads": 2}
#: Name: class, configuration's class, settings. Labels are the words themselves.
_MODELS = {
    "bert": ("BertForMaskedLM", "BertConfig", _SIZES),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", _SIZES | {"max_position_embeddings": 64}),
    "electra": ("ElectraForMaskedLM", "ElectraConfig", _SIZES | {"embedding_size": 32}),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", _SIZES | {"embedding_size": 32}),
    "distilbert": (
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        dict(vocab_size=WORDS, dim=WIDTH, n_layers=2, n_heads=4, hidden_dim=128),
    ),
    "deberta": ("DebertaV2ForMaskedLM", "DebertaV2Config", _SIZES | {"relative_attention": True}),
    "modernbert": ("ModernBertForMaskedLM", "ModernBertConfig", _SIZES | {"pad_token_id": 0}),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", dict(vocab_size=WORDS, n_embd=WIDTH, n_layer=2, n_head=4)),
    "gpt neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", _SIZES),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        dict(vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128),
    ),
    "bloom": ("BloomForCausalLM", "BloomConfig", dict(vocab_size=WORDS, hidden_size=WIDTH, n_layer=2, n_head=4)),
    "llama": ("LlamaForCausalLM", "LlamaConfig", _FEW),
    "mistral": ("MistralForCausalLM", "MistralConfig", _FEW | {"sliding_window": 16}),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", _FEW),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", _FEW | {"head_dim": 16}),
    "phi": ("PhiForCausalLM", "PhiConfig", _SIZES),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", _FEW | {"num_local_experts": 4}),
    "mamba": ("MambaForCausalLM", "MambaConfig", dict(vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=2)),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        dict(vocab_size=WORDS, d_model=WIDTH, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0),
    ),
    **{
        name: (
            f"{prefix}{rest}",
            f"{prefix}Config",
            dict(vocab_size=WORDS, d_model=WIDTH, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4)
            | dict(decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_position_embeddings=64)
            | dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2),
        )
        for name, prefix, rest in (
            ("bart", "Bart", "ForConditionalGeneration"),
            ("marian", "Marian", "MTModel"),
        )
    },
}


def _padded():
    """Words, and which of them are none: sentences are of different lengths, the batch is not."""
    words = torch.randint(3, WORDS, (BATCH, LENGTH))
    lengths = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH, 1))
    mask = (torch.arange(LENGTH) < lengths).long()
    return {"input_ids": words, "attention_mask": mask, "labels": words.masked_fill(mask == 0, -100)}


def _whole():
    words = torch.randint(3, WORDS, (BATCH, LENGTH))
    return {"input_ids": words, "labels": words}


def given(model, batch):
    """The loss that the model computes itself."""
    return model(**batch).loss


def built(model, configuration, settings):
    """A model of ``transformers``."""
    import transformers

    return getattr(transformers, model)(getattr(transformers, configuration)(**settings))


def _entry(what, batch):
    return lambda: Task(built(*what), several(batch), given)


ENTRIES = {
    **{name: _entry(what, _whole) for name, what in _MODELS.items()},
    **{f"{name}, padded": _entry(_MODELS[name], _padded) for name in ("bert", "llama", "t5")},
}
