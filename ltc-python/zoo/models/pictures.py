"""Classifiers of pictures of ``torchvision`` and ``timm``, the smallest of each kind, on small pictures."""

import torch
import torch.nn.functional as F

from ..task import Task, sgd
from .small import classify, several

_TORCHVISION = (
    "resnet18",
    "squeezenet1_1",
    "shufflenet_v2_x0_5",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "efficientnet_b0",
)
#: Name: settings beside the number of classes.
_TIMM = {
    "resnet10t": {},
    "mobilenetv3_small_050": {},
    "tinynet_e": {},
    "ghostnet_050": {},
    "regnetx_002": {},
    "convnext_atto": {},
    "edgenext_xx_small": {},
    "repghostnet_050": {},
    "poolformer_s12": {},
    "mobilevit_xxs": {},
    "vit_tiny_patch16_224": {"img_size": 64, "patch_size": 8, "depth": 4},
    "deit_tiny_distilled_patch16_224": {"img_size": 64, "depth": 4},
    "levit_128s": {"img_size": 64},
}
#: Those without batch norm.
_TRANSFORMERS = ("vit_tiny", "deit_tiny", "convnext", "poolformer")


def _pictures():
    return torch.randn(4, 3, 64, 64), torch.randint(0, 10, (4,))


def _optimiser(name):
    """Rates so small that roundings, which batch norm over a few pictures magnifies, stay roundings for the steps that
    are compared."""
    if name.startswith(_TRANSFORMERS):
        return lambda parameters: torch.optim.AdamW(parameters, lr=1e-4)
    return lambda parameters: torch.optim.SGD(parameters, lr=1e-5, momentum=0.9)


def _torchvision(name):
    def make():
        import torchvision

        model = torchvision.models.get_model(name, num_classes=10)
        return Task(model, several(_pictures), classify, _optimiser(name))

    return make


def _timm(name, settings):
    def make():
        import timm

        model = timm.create_model(name, num_classes=10, **settings)
        return Task(model, several(_pictures), classify, _optimiser(name))

    return make


def _swin():
    from torchvision.models import SwinTransformer

    model = SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.1, num_classes=10)
    return Task(model, several(_pictures), classify)


def _mixer():
    from timm.models.mlp_mixer import MlpMixer

    model = MlpMixer(num_classes=10, img_size=64, patch_size=8, num_blocks=3, embed_dim=64)
    return Task(model, several(_pictures), classify)


def _lraspp():
    import torchvision

    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=5
    )
    batches = several(lambda: (torch.randn(2, 3, 64, 64), torch.randint(0, 5, (2, 64, 64))))
    return Task(model, batches, lambda model, batch: F.cross_entropy(model(batch[0])["out"], batch[1]), sgd)


ENTRIES = {
    **{f"torchvision {name}": _torchvision(name) for name in _TORCHVISION},
    "torchvision swin": _swin,
    "torchvision lraspp": _lraspp,
    "timm mixer": _mixer,
    **{f"timm {name}": _timm(name, settings) for name, settings in _TIMM.items()},
}
