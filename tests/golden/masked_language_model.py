"""Twenty steps of a small masked language model (src/tasks/masked_language_model.cpp): its losses, on tokens and random
numbers that both sides make."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import formula
import random_words

STEPS, BATCH, TOKENS, VOCABULARY, WIDTH, HEADS, LAYERS, MASKED, SEED = 20, 8, 12, 29, 16, 2, 2, 0.25, 1


class Layer(nn.Module):
    """Attention and two linear layers, each after a normalization."""

    def __init__(self):
        super().__init__()
        self.norm0 = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.fc0 = nn.Linear(WIDTH, 4 * WIDTH)
        self.fc1 = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm0(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.fc1(functional.gelu(self.fc0(self.norm1(x))))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY + 1, WIDTH)
        self.positions = nn.Embedding(TOKENS, WIDTH)
        self.neighbors = nn.Conv1d(WIDTH, WIDTH, 5, padding=2)
        for layer in range(LAYERS):
            self.add_module(f"layer{layer}", Layer())
        self.norm = nn.LayerNorm(WIDTH)
        self.bias = nn.Parameter(torch.zeros(VOCABULARY + 1))
        self.pooler = nn.Linear(WIDTH, WIDTH)
        self.order = nn.Linear(WIDTH, 1)

    def forward(self, tokens):
        x = self.words(tokens) + self.positions.weight
        x = x + functional.gelu(self.neighbors(x.transpose(1, 2)).transpose(1, 2))
        for layer in range(LAYERS):
            x = self.get_submodule(f"layer{layer}")(x)
        x = self.norm(x)
        order = self.order(torch.tanh(self.pooler(x.mean(1))))
        return x @ self.words.weight.T + self.bias, order[:, 0]


def puzzle(tokens, step):
    """Tokens with gaps, what was there, where to fill in, which rows were exchanged."""
    draws = [random_words.uniform("puzzle.", i, SEED, step, (BATCH, 1 if i == 0 else TOKENS)) for i in range(4)]
    exchanged = draws[0] < np.float32(0.5)
    half = TOKENS // 2
    labels = np.where(exchanged, np.concatenate([tokens[:, half:], tokens[:, :half]], 1), tokens)
    chosen = draws[1] < np.float32(MASKED)
    random = np.minimum(np.floor(draws[3] * np.float32(VOCABULARY)).astype(np.int64), VOCABULARY - 1)
    gap = np.where(draws[2] < np.float32(0.8), VOCABULARY, np.where(draws[2] < np.float32(0.9), random, labels))
    parts = (np.where(chosen, gap, labels), labels, chosen, exchanged[:, 0])
    return [torch.from_numpy(part) for part in parts]


def decaying_adamw(network):
    """Biases and normalizations do not decay."""
    decaying = [p for p in network.parameters() if p.dim() > 1]
    others = [p for p in network.parameters() if p.dim() == 1]
    return torch.optim.AdamW([{"params": decaying, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=2e-3)


def losses(dtype=torch.float64):
    """{"loss": [...], "masked": [...], "order": [...]}, one of each step."""
    torch.set_default_dtype(dtype)
    network = Network()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(formula.parameter(name, tuple(parameter.shape))))
    optimizer = decaying_adamw(network)
    result = {"loss": [], "masked": [], "order": []}
    for step in range(STEPS):
        tokens = formula.labels(f"masked.{step}", BATCH * TOKENS, VOCABULARY).reshape(BATCH, TOKENS)
        gapped, labels, chosen, exchanged = puzzle(tokens, step)
        logits, order = network(gapped)
        masked = functional.cross_entropy(logits[chosen], labels[chosen])
        halves = functional.binary_cross_entropy_with_logits(order, exchanged.to(dtype))
        loss = masked + halves
        for name, value in (("loss", loss), ("masked", masked), ("order", halves)):
            result[name].append(value.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.set_default_dtype(torch.float32)
    return result
