"""Writes sound_augmentation.safetensors: a sound, and what torchaudio makes of it.

    python3 -m venv /tmp/torchaudio && /tmp/torchaudio/bin/pip install torch==2.11.0 torchaudio==2.11.0 safetensors
    /tmp/torchaudio/bin/python tests/nn/golden/make_sound_augmentation.py

(It was run with torchaudio 2.11.0 on torch 2.15.0; both functions are plain torch, in double.)

Tensors by name, of two rows of which the second is shorter:
    sounds, noise       fp32 [2, 1200]
    lengths             int32 [2]
    resampled_FROM_TO   fp32 [2, ceil(1200 * TO / FROM)]: torchaudio.functional.resample of all samples
    decibels            fp32 [2]
    noisy               fp32 [2, 1200]: torchaudio.functional.add_noise
"""

import pathlib

import torch
import torchaudio.functional
from safetensors.torch import save_file

RATES = ((9, 10), (11, 10), (100, 95), (3, 2), (1, 2))


def main():
    generator = torch.Generator().manual_seed(7)
    times = torch.arange(1200, dtype=torch.float64) / 8000
    chirp = torch.sin(2 * torch.pi * (200 * times + 9000 * times**2))
    noise = torch.randn((2, 1200), generator=generator, dtype=torch.float64)
    sounds = torch.stack([0.7 * chirp, 0.3 * chirp.flip(0)]) + 0.05 * torch.randn((2, 1200), generator=generator, dtype=torch.float64)
    lengths = torch.tensor([1200, 777], dtype=torch.int32)
    sounds = sounds.float().double() * (torch.arange(1200) < lengths[:, None])
    noise = noise.float().double()
    decibels = torch.tensor([20.0, -3.0])
    tensors = {"sounds": sounds, "noise": noise, "decibels": decibels,
               "noisy": torchaudio.functional.add_noise(sounds, noise, decibels.double(), lengths)}
    for rate, target in RATES:
        tensors[f"resampled_{rate}_{target}"] = torchaudio.functional.resample(sounds, rate, target)
    tensors = {name: tensor.float().contiguous() for name, tensor in tensors.items()}
    save_file(tensors | {"lengths": lengths}, pathlib.Path(__file__).with_name("sound_augmentation.safetensors"))


if __name__ == "__main__":
    main()
