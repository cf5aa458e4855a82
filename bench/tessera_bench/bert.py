"""BERT as an encoder, of the names and the arithmetic that transformers has: what its exports compute."""

import dataclasses
import importlib.util
import io
import math
import pathlib
import zipfile

import safetensors.torch
import torch
from torch import nn

from . import data  # Also makes tests/golden importable.

import formula

TOKENS = 128
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]


@dataclasses.dataclass(frozen=True)
class Sizes:
    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int = 30522
    positions: int = 512
    weights: str = ""  # the package whose file has them; "": by the golden formula


SIZES = {
    "bert_base": Sizes(768, 12, 12, 3072),
    "minilm_l6": Sizes(384, 6, 12, 1536, weights="all_minilm_l6_v2"),
}


class Embeddings(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.word_embeddings = nn.Embedding(sizes.vocabulary, sizes.width)
        self.position_embeddings = nn.Embedding(sizes.positions, sizes.width)
        self.token_type_embeddings = nn.Embedding(2, sizes.width)
        self.LayerNorm = nn.LayerNorm(sizes.width, eps=1e-12)

    def forward(self, tokens, types):  # both [batch, tokens]
        positions = self.position_embeddings(torch.arange(tokens.shape[1], device=tokens.device))
        return self.LayerNorm(self.word_embeddings(tokens) + self.token_type_embeddings(types) + positions)


class SelfAttention(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.heads = sizes.heads
        self.query, self.key, self.value = (nn.Linear(sizes.width, sizes.width) for _ in range(3))

    def forward(self, x, bias):  # x: [batch, tokens, width], bias: [batch, 1, 1, tokens]
        q, k, v = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


class Output(nn.Module):
    """A linear layer, and the sum with a residual normalized."""

    def __init__(self, inputs, sizes):
        super().__init__()
        self.dense = nn.Linear(inputs, sizes.width)
        self.LayerNorm = nn.LayerNorm(sizes.width, eps=1e-12)

    def forward(self, x, residual):
        return self.LayerNorm(self.dense(x) + residual)


class Layer(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.attention = nn.ModuleDict({"self": SelfAttention(sizes), "output": Output(sizes.width, sizes)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(sizes.width, sizes.inner)})
        self.output = Output(sizes.inner, sizes)

    def forward(self, x, bias):
        x = self.attention["output"](self.attention["self"](x, bias), x)
        return self.output(nn.functional.gelu(self.intermediate["dense"](x)), x)


class Bert(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.embeddings = Embeddings(sizes)
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))})

    def forward(self, tokens, mask, types):  # all [batch, tokens], int64
        visible = mask[:, None, None, :].to(self.embeddings.word_embeddings.weight.dtype)
        bias = (1.0 - visible) * torch.finfo(visible.dtype).min
        x = self.embeddings(tokens, types)
        for layer in self.encoder["layer"]:
            x = layer(x, bias)
        return x


def pretrained(package):
    """The weights that a package of sentence-transformers carries, by their names."""
    folder = pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0])
    with zipfile.ZipFile(folder / "model.zip") as archive:
        return safetensors.torch.load(archive.read("model.safetensors"))


def inputs(count):
    """By the golden formula: 0 and 1 are tokens and types, and what is seen."""
    shape = (count, TOKENS)
    return tuple(torch.from_numpy(formula.labels(name, math.prod(shape), 2).reshape(shape)) for name in INPUTS)
