"""Models of pictures and sounds of ``transformers``, tiny, with random weights."""

import torch

from ..task import Task, sgd
from .language import built, given
from .small import several

_SIZES = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
_PICTURE = _SIZES | dict(image_size=32, patch_size=8, num_labels=10)
#: Whether a layer is left out is drawn on the host, which moves the CPU's generator and not a device's: draws of
#: dropout would be others then.
_DRY = {f"{what}_dropout": 0.0 for what in ("hidden", "attention", "activation", "feat_proj", "final")}
_SOUND = (
    _SIZES
    | _DRY
    | dict(vocab_size=32, conv_dim=(32, 32), conv_kernel=(10, 3), conv_stride=(5, 2), num_feat_extract_layers=2)
    | dict(num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, mask_time_prob=0.0, pad_token_id=0)
)


def _pictures():
    return {"pixel_values": torch.randn(8, 3, 32, 32), "labels": torch.randint(0, 10, (8,))}


def _spoken():
    return {"input_values": torch.randn(2, 2000), "labels": torch.randint(1, 32, (2, 12))}


def _heard():
    return {"input_features": torch.randn(2, 16, 64), "labels": torch.randint(3, 100, (2, 12))}


def _captioned():
    words = torch.randint(3, 99, (4, 12))
    words[:, -1] = 99  # the end of a sentence, which it is read at
    return {"pixel_values": torch.randn(4, 3, 32, 32), "input_ids": words, "return_loss": True}


def _pixels():
    return {"pixel_values": torch.randn(2, 3, 64, 64), "labels": torch.randint(0, 5, (2, 64, 64))}


def _clip():
    import transformers

    text = _SIZES | dict(vocab_size=100, max_position_embeddings=16, eos_token_id=99, bos_token_id=1, pad_token_id=0)
    vision = _SIZES | dict(image_size=32, patch_size=8)
    settings = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=32)
    return Task(transformers.CLIPModel(settings), several(_captioned), given)


def _entry(model, configuration, settings, batch, **options):
    return lambda: Task(built(model, configuration, settings), several(batch), given, **options)


ENTRIES = {
    "vit": _entry("ViTForImageClassification", "ViTConfig", _PICTURE, _pictures),
    "dinov2": _entry("Dinov2ForImageClassification", "Dinov2Config", _PICTURE, _pictures),
    "beit": _entry("BeitForImageClassification", "BeitConfig", _PICTURE | {"drop_path_rate": 0.0}, _pictures),
    "swin": _entry(
        "SwinForImageClassification",
        "SwinConfig",
        dict(image_size=32, patch_size=2, embed_dim=32, depths=(1, 1), num_heads=(2, 4), window_size=4, num_labels=10),
        _pictures,
    ),
    "convnext": _entry(
        "ConvNextForImageClassification",
        "ConvNextConfig",
        dict(hidden_sizes=(16, 32, 48, 64), depths=(1, 1, 2, 1), num_labels=10, drop_path_rate=0.1),
        _pictures,
    ),
    "resnet": _entry(
        "ResNetForImageClassification",
        "ResNetConfig",
        dict(embedding_size=16, hidden_sizes=(16, 32, 48, 64), depths=(1, 1, 1, 1), layer_type="basic", num_labels=10),
        _pictures,
        optimiser=sgd,
    ),
    "segformer": _entry(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        dict(hidden_sizes=(16, 32, 48, 64), depths=(1, 1, 1, 1), decoder_hidden_size=32, num_labels=5),
        _pixels,
    ),
    "clip": _clip,
    "wav2vec2": _entry("Wav2Vec2ForCTC", "Wav2Vec2Config", _SOUND, _spoken),
    "hubert": _entry("HubertForCTC", "HubertConfig", _SOUND, _spoken),
    "whisper": _entry(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        dict(vocab_size=100, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4)
        | dict(decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, num_mel_bins=16)
        | dict(max_source_positions=32, max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2)
        | dict(decoder_start_token_id=1),
        _heard,
    ),
}
