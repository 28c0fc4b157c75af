"""Models of ``torchaudio``, small, with random weights."""

import torch
import torch.nn.functional as F
from torch import nn

from ..task import Task
from .small import several

_WORDS = 20


class _Recogniser(nn.Module):
    """A body of frames with a head of characters."""

    def __init__(self, body, width):
        super().__init__()
        self.body, self.head = body, nn.Linear(width, _WORDS)

    def forward(self, *inputs):
        frames, lengths = self.body(*inputs)
        return self.head(frames).log_softmax(-1), lengths


def _ctc(model, batch):
    *inputs, words, word_lengths = batch
    chances, lengths = model(*inputs)
    return F.ctc_loss(chances.transpose(0, 1), words, lengths, word_lengths, zero_infinity=True)


def _spoken(make):
    words = lambda: (torch.randint(1, _WORDS, (2, 6)), torch.tensor([6, 5]))
    return several(lambda: (*make(), *words()))


def _conformer():
    import torchaudio

    body = torchaudio.models.Conformer(32, num_heads=4, ffn_dim=64, num_layers=2, depthwise_conv_kernel_size=7)
    batches = _spoken(lambda: (torch.randn(2, 40, 32), torch.tensor([40, 32])))
    return Task(_Recogniser(body, 32), batches, _ctc)


def _emformer():
    import torchaudio

    body = torchaudio.models.Emformer(32, 4, 64, 2, segment_length=8, right_context_length=4)
    batches = _spoken(lambda: (torch.randn(2, 44, 32), torch.tensor([40, 32])))
    return Task(_Recogniser(body, 32), batches, _ctc)


def _wav2vec2():
    import torchaudio

    # Without dropout: it draws on the host whether a layer is left out, which moves the CPU's generator alone.
    model = torchaudio.models.wav2vec2_model(
        "layer_norm", [(32, 10, 5), (32, 3, 2)], True, 32, 0.0, 16, 4, 2, 4, 0.0, 64, 0.0, 0.0, True, 0.0, _WORDS
    )

    def loss(model, batch):
        sounds, words, word_lengths = batch
        chances = model(sounds)[0].log_softmax(-1).transpose(0, 1)
        lengths = torch.full((len(sounds),), len(chances))
        return F.ctc_loss(chances, words, lengths, word_lengths, zero_infinity=True)

    return Task(model, _spoken(lambda: (torch.randn(2, 1600),)), loss)


def _deep_speech():
    import torchaudio

    model = torchaudio.models.DeepSpeech(32, n_hidden=64, n_class=_WORDS, dropout=0.1)

    def loss(model, batch):
        frames, words, word_lengths = batch
        chances = model(frames).transpose(0, 1)
        return F.ctc_loss(chances, words, torch.full((2,), len(chances)), word_lengths, zero_infinity=True)

    return Task(model, _spoken(lambda: (torch.randn(2, 1, 40, 32),)), loss)


def _conv_tasnet():
    import torchaudio

    model = torchaudio.models.ConvTasNet(2, 16, 32, msk_num_feats=16, msk_num_hidden_feats=32, msk_num_layers=3,
                                         msk_num_stacks=1)  # fmt: skip
    batches = several(lambda: (torch.randn(2, 1, 1600), torch.randn(2, 2, 1600)))
    return Task(model, batches, lambda model, batch: F.l1_loss(model(batch[0]), batch[1]))


class _Keywords(nn.Module):
    """A spectrogram made on the device, and a network of one dimension on it."""

    def __init__(self):
        super().__init__()
        import torchaudio

        self.seen = torchaudio.transforms.MelSpectrogram(8000, n_fft=256, hop_length=128, n_mels=24)
        self.loud = torchaudio.transforms.AmplitudeToDB()
        self.net = nn.Sequential(
            nn.Conv1d(24, 32, 5), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(32, 32, 3), nn.ReLU()
        )
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.net(self.loud(self.seen(x))).mean(-1))


def _keywords():
    batches = several(lambda: (torch.randn(8, 4000), torch.randint(0, 10, (8,))))
    return Task(_Keywords(), batches, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]))


ENTRIES = {
    "conformer": _conformer,
    "emformer": _emformer,
    "wav2vec2": _wav2vec2,
    "deep speech": _deep_speech,
    "conv tasnet": _conv_tasnet,
    "keywords": _keywords,
}
