"""Twenty steps of a small language model (src/tasks/language_model.cpp): its losses, on tokens that both sides make."""

import torch
from torch import nn
from torch.nn import functional

import formula
from masked_language_model import decaying_adamw

STEPS, BATCH, TOKENS, VOCABULARY, WIDTH, HEADS, LAYERS = 20, 8, 12, 29, 16, 2, 2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm0 = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.fc0 = nn.Linear(WIDTH, 4 * WIDTH)
        self.fc1 = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm0(x)
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        x = x + self.attention(y, y, y, attn_mask=hidden, need_weights=False)[0]
        return x + self.fc1(functional.gelu(self.fc0(self.norm1(x)), approximate="tanh"))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(TOKENS, WIDTH)
        for layer in range(LAYERS):
            self.add_module(f"layer{layer}", Layer())
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        x = self.words(tokens) + self.positions.weight
        for layer in range(LAYERS):
            x = self.get_submodule(f"layer{layer}")(x)
        return self.norm(x) @ self.words.weight.T


def losses(dtype=torch.float64):
    """{"loss": [...]}, one of each step."""
    torch.set_default_dtype(dtype)
    network = Network()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(formula.parameter(name, tuple(parameter.shape))))
    optimizer = decaying_adamw(network)
    result = {"loss": []}
    for step in range(STEPS):
        tokens = torch.from_numpy(formula.labels(f"language.{step}", BATCH * TOKENS, VOCABULARY).reshape(BATCH, TOKENS))
        logits = network(tokens)[:, :-1]
        loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
        result["loss"].append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.set_default_dtype(torch.float32)
    return result
