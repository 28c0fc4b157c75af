"""Models of ``diffusers``, tiny, with random weights, and what they are trained for: to tell the noise."""

import torch
import torch.nn.functional as F

from ..task import Task
from .small import several


def _noised(size, channels, extra=dict):
    """A noised picture, its time, and the noise."""

    def batch():
        noise, time = torch.randn(2, channels, size, size), torch.randint(0, 1000, (2,))
        share = (1 - time / 1000).sqrt().view(-1, 1, 1, 1)
        clean = torch.rand(2, channels, size, size)
        return share * clean + (1 - share.square()).sqrt() * noise, time, noise, extra()

    return several(batch)


def _loss(model, batch):
    noisy, time, noise, extra = batch
    return F.mse_loss(model(noisy, timestep=time, return_dict=False, **extra)[0], noise)


def _unet():
    import diffusers

    model = diffusers.UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
    )  # fmt: skip
    return Task(model, _noised(16, 3), _loss)


def _conditional_unet():
    import diffusers

    model = diffusers.UNet2DConditionModel(
        sample_size=16, layers_per_block=1, block_out_channels=(32, 64), cross_attention_dim=32, norm_num_groups=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        attention_head_dim=4,
    )  # fmt: skip
    return Task(model, _noised(16, 4, lambda: {"encoder_hidden_states": torch.randn(2, 7, 32)}), _loss)


def _dit():
    import diffusers

    model = diffusers.DiTTransformer2DModel(
        num_attention_heads=4, attention_head_dim=16, in_channels=4, out_channels=4, num_layers=2, sample_size=16,
        num_embeds_ada_norm=10,
    )  # fmt: skip
    return Task(model, _noised(16, 4, lambda: {"class_labels": torch.randint(0, 10, (2,))}), _loss)


def _sd3():
    import diffusers

    model = diffusers.SD3Transformer2DModel(
        sample_size=16, patch_size=2, in_channels=4, out_channels=4, num_layers=2, attention_head_dim=16,
        num_attention_heads=4, joint_attention_dim=32, caption_projection_dim=64, pooled_projection_dim=32,
    )  # fmt: skip
    extra = lambda: {"encoder_hidden_states": torch.randn(2, 7, 32), "pooled_projections": torch.randn(2, 32)}
    return Task(model, _noised(16, 4, extra), _loss)


def _vae():
    import diffusers

    model = diffusers.AutoencoderKL(
        block_out_channels=(16, 32), layers_per_block=1, latent_channels=4, norm_num_groups=8,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip

    def loss(model, x):
        return F.mse_loss(model(x, sample_posterior=True).sample, x)

    return Task(model, several(lambda: torch.rand(2, 3, 32, 32)), loss)


def _vq():
    import diffusers

    model = diffusers.VQModel(
        block_out_channels=(16, 32), layers_per_block=1, latent_channels=4, norm_num_groups=8, num_vq_embeddings=32,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip

    def loss(model, x):
        made, commitment = model(x, return_dict=False)
        return F.mse_loss(made, x) + commitment.mean()

    return Task(model, several(lambda: torch.rand(2, 3, 32, 32)), loss)


ENTRIES = {
    "unet": _unet,
    "conditional unet": _conditional_unet,
    "dit": _dit,
    "sd3": _sd3,
    "autoencoder": _vae,
    "vq autoencoder": _vq,
}
