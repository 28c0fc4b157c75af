"""Detectors of ``torchvision`` over a small body: how many boxes they look at depends on what they see."""

import itertools
from collections import OrderedDict

import torch
from torch import nn

from ..task import Task
from .small import several

_SIZE, _CLASSES, _WIDTH = 96, 5, 32


def _boxes(count):
    corner = torch.rand(count, 2) * (_SIZE / 2)
    return torch.cat([corner, corner + 8 + torch.rand(count, 2) * (_SIZE / 2 - 10)], 1)


def _batches(masks=False):
    """Two pictures each, with three boxes and two."""

    def batch():
        targets = []
        for count in (3, 2):
            target = {"boxes": _boxes(count), "labels": torch.randint(1, _CLASSES, (count,))}
            if masks:
                target["masks"] = (torch.rand(count, _SIZE, _SIZE) < 0.5).to(torch.uint8)
            targets.append(target)
        return [torch.rand(3, _SIZE, _SIZE) for _ in range(2)], targets

    return several(batch)


def _loss(model, batch):
    return sum(model(*batch).values())


def _sgd(parameters):
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)


def _settings():
    return dict(num_classes=_CLASSES, min_size=_SIZE, max_size=_SIZE)


def _stage(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, 2, 1), nn.BatchNorm2d(outputs), nn.ReLU())


def _body():
    """Four stages, each half as large as the one before."""
    widths = (16, 16, 32, 64)
    first = ("stem", nn.Sequential(_stage(3, 16), _stage(16, 16)))
    rest = [(f"stage{i}", _stage(a, b)) for i, (a, b) in enumerate(itertools.pairwise(widths))]
    return nn.Sequential(OrderedDict([first, *rest])), widths[1:]


def _pyramid(extra=None):
    from torchvision.models.detection.backbone_utils import BackboneWithFPN

    body, widths = _body()
    return BackboneWithFPN(body, {f"stage{i}": str(i) for i in range(3)}, list(widths), _WIDTH, extra)


def _anchors(count):
    from torchvision.models.detection.anchor_utils import AnchorGenerator

    return AnchorGenerator(tuple((8 * 2**i,) for i in range(count)), ((0.5, 1.0, 2.0),) * count)


def _two_stages(kind, masks=False):
    def make():
        from torchvision.models import detection
        from torchvision.models.detection.faster_rcnn import TwoMLPHead
        from torchvision.ops import MultiScaleRoIAlign

        pool = lambda size: MultiScaleRoIAlign(["0", "1", "2"], size, 2)
        options = dict(rpn_anchor_generator=_anchors(4), rpn_post_nms_top_n_train=50, box_batch_size_per_image=32)
        options |= dict(box_roi_pool=pool(7), box_head=TwoMLPHead(_WIDTH * 49, 128), num_classes=None)
        options |= dict(box_predictor=detection.faster_rcnn.FastRCNNPredictor(128, _CLASSES))
        if masks:
            options |= dict(mask_roi_pool=pool(14), mask_head=detection.mask_rcnn.MaskRCNNHeads(_WIDTH, [32, 32], 1))
            options |= dict(mask_predictor=detection.mask_rcnn.MaskRCNNPredictor(32, 32, _CLASSES))
        model = getattr(detection, kind)(_pyramid(), **(_settings() | options))
        # It draws one of its sizes, of which there is one, on the host. Draws of boxes on the device would be others
        # then: a device has a generator of its own, which draws on the host do not move.
        model.transform.torch_choice = lambda sizes: sizes[0]
        return Task(model, _batches(masks), _loss, _sgd)

    return make


def _one_stage(kind, ratios):
    def make():
        from torchvision.models import detection
        from torchvision.models.detection.anchor_utils import AnchorGenerator
        from torchvision.ops.feature_pyramid_network import LastLevelP6P7

        anchors = AnchorGenerator(((8,), (16,), (32,), (64,), (96,)), (ratios,) * 5)
        backbone = _pyramid(LastLevelP6P7(_WIDTH, _WIDTH))
        return Task(
            getattr(detection, kind)(backbone, anchor_generator=anchors, **_settings()), _batches(), _loss, _sgd
        )

    return make


class _Features(nn.Module):
    """The stages' results by name."""

    def __init__(self):
        super().__init__()
        self.body, self.widths = _body()

    def forward(self, x):
        seen = OrderedDict()
        for name, part in self.body.named_children():
            x = part(x)
            if name != "stem":
                seen[name] = x
        return seen


def _ssd():
    from torchvision.models.detection.anchor_utils import DefaultBoxGenerator
    from torchvision.models.detection.ssd import SSD, SSDHead

    features = _Features()
    boxes = DefaultBoxGenerator([[2]] * 3)
    head = SSDHead(list(features.widths), boxes.num_anchors_per_location(), _CLASSES)
    return Task(SSD(features, boxes, (_SIZE, _SIZE), _CLASSES, head=head), _batches(), _loss, _sgd)


ENTRIES = {
    "faster rcnn": _two_stages("FasterRCNN"),
    "mask rcnn": _two_stages("MaskRCNN", masks=True),
    "retinanet": _one_stage("RetinaNet", (0.5, 1.0, 2.0)),
    "fcos": _one_stage("FCOS", (1.0,)),
    "ssd": _ssd,
}
