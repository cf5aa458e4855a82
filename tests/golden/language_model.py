"""Twenty steps of a small language model (src/tasks/language_model.cpp): its losses, on tokens that both sides make."""

import torch
from torch import nn
from torch.nn import functional

import formula
from masked_language_model import BATCH, LAYERS, STEPS, TOKENS, VOCABULARY, WIDTH, Layer, decaying_adamw


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(TOKENS, WIDTH)
        for layer in range(LAYERS):
            self.add_module(f"layer{layer}", Layer(causal=True, gelu="tanh"))
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
