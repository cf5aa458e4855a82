"""Twenty steps of a small DCGAN (src/tasks/gan.cpp) in float64: its losses, on pictures and noise that both sides make."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import formula
import random_words

STEPS, BATCH, SIZE, NOISE, WIDTH, SEED = 20, 8, 12, 8, 4, 1
SMALL = SIZE // 4
KERNEL = {"kernel_size": 4, "stride": 2, "padding": 1}


def noise(counter):
    """What random_normal gives the generator when the state random_counter is {SEED, counter}."""
    count = BATCH * NOISE
    words = random_words.words("generator.", 0, SEED, counter, count).reshape(-1, 2).astype(np.float64)
    radius = np.sqrt(-2 * np.log((words[:, 0] + 1) * 2.0**-32))
    angle = 2 * np.pi * words[:, 1] * 2.0**-32
    normal = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)[:count]
    return torch.from_numpy(normal).reshape(BATCH, NOISE).to(torch.get_default_dtype())


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(NOISE, SMALL * SMALL * 2 * WIDTH)
        self.bn0 = nn.BatchNorm2d(2 * WIDTH)
        self.conv1 = nn.ConvTranspose2d(2 * WIDTH, WIDTH, **KERNEL, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTH)
        self.conv2 = nn.ConvTranspose2d(WIDTH, 1, **KERNEL)

    def forward(self, z):
        x = self.fc(z).reshape(BATCH, SMALL, SMALL, 2 * WIDTH).permute(0, 3, 1, 2)
        x = functional.relu(self.bn0(x))
        return torch.tanh(self.conv2(functional.relu(self.bn1(self.conv1(x)))))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, WIDTH, **KERNEL)
        self.conv2 = nn.Conv2d(WIDTH, 2 * WIDTH, **KERNEL)
        self.bn2 = nn.BatchNorm2d(2 * WIDTH)
        self.fc = nn.Linear(SMALL * SMALL * 2 * WIDTH, 1)

    def forward(self, x):
        x = functional.leaky_relu(self.conv1(x), 0.2)
        x = functional.leaky_relu(self.bn2(self.conv2(x)), 0.2)
        return self.fc(x.permute(0, 2, 3, 1).reshape(BATCH, -1))


def fill(network, scope):
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(formula.parameter(f"{scope}.{name}", tuple(parameter.shape))))
    return network


def against(logits, target):
    return functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))


def losses(dtype=torch.float64):
    """{"discriminator": [...], "generator": [...]}, one of each step."""
    torch.set_default_dtype(dtype)
    generator, discriminator = fill(Generator(), "generator"), fill(Discriminator(), "discriminator")
    rate = {"lr": 2e-3, "betas": (0.5, 0.999)}
    of_generator = torch.optim.Adam(generator.parameters(), **rate)
    of_discriminator = torch.optim.Adam(discriminator.parameters(), **rate)
    result = {"discriminator": [], "generator": []}
    for step in range(STEPS):
        real = torch.from_numpy(formula.uniform(f"gan.{step}", (BATCH, 1, SIZE, SIZE))).to(dtype)
        samples = generator(noise(2 * step)).detach()
        loss = against(discriminator(samples), 0.0) + against(discriminator(real), 1.0)
        result["discriminator"].append(loss.item())
        of_discriminator.zero_grad()
        loss.backward()
        of_discriminator.step()

        loss = against(discriminator(generator(noise(2 * step + 1))), 1.0)
        result["generator"].append(loss.item())
        of_generator.zero_grad()
        loss.backward()
        of_generator.step()
    torch.set_default_dtype(torch.float32)
    return result
