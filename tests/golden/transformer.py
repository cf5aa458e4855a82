"""The Transformer as torch's own layers have it (src/models/transformer.cpp, src/tasks/translation.cpp): one pass of small
networks with logits, loss and gradients, and the losses of a hundred steps of training. Variables are named as fairseq names
them; positions and label smoothing are fairseq's.

    bench/.venv/bin/python tests/golden/transformer.py    # writes transformer.safetensors and translation.json
"""

import json
import math
import pathlib

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

import curves
import formula

FOLDER = pathlib.Path(__file__).resolve().parent
VOCABULARY, WIDTH, HEADS, INNER, ENCODER_LAYERS, DECODER_LAYERS = 29, 16, 2, 24, 2, 1
FIRST_PLACE = 2
ROWS, SOURCE, TARGET = 3, 7, 6
BATCH, TOKENS, SMOOTHING = 8, 9, 0.1
SAMPLES = 16
CASES = {"post_norm": False, "pre_norm": True}
# What fairseq calls the parts of torch's layers.
ENCODER = {"self_attn": "self_attn", "linear1": "fc1", "linear2": "fc2", "norm1": "self_attn_layer_norm",
           "norm2": "final_layer_norm"}
DECODER = {"self_attn": "self_attn", "multihead_attn": "encoder_attn", "linear1": "fc1", "linear2": "fc2",
           "norm1": "self_attn_layer_norm", "norm2": "encoder_attn_layer_norm", "norm3": "final_layer_norm"}
TABLE = "encoder.embed_tokens.weight"


def positions(places, width, dtype):
    half = width // 2
    frequencies = torch.exp(torch.arange(half, dtype=torch.float64) * -(math.log(10000) / (half - 1)))
    angles = (torch.arange(places, dtype=torch.float64) + FIRST_PLACE)[:, None] * frequencies[None]
    return torch.cat([angles.sin(), angles.cos()], 1).to(dtype)


class Network(nn.Module):
    def __init__(self, pre_norm, vocabulary=VOCABULARY, width=WIDTH, heads=HEADS, inner=INNER,
                 layers=(ENCODER_LAYERS, DECODER_LAYERS), dropout=0.0):
        super().__init__()
        self.width = width
        settings = dict(d_model=width, nhead=heads, dim_feedforward=inner, dropout=dropout, norm_first=pre_norm, batch_first=True)
        end = (lambda: nn.LayerNorm(width)) if pre_norm else (lambda: None)
        self.table = nn.Embedding(vocabulary, width)
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**settings), layers[0], end(), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**settings), layers[1], end())

    def embedded(self, tokens):
        x = self.table(tokens) * math.sqrt(self.width)
        return self.dropout(x + positions(tokens.shape[1], self.width, x.dtype))

    def forward(self, source, lengths, target):
        hidden = torch.arange(source.shape[1])[None, :] >= lengths[:, None]
        encoded = self.encoder(self.embedded(source), src_key_padding_mask=hidden)
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        decoded = self.decoder(self.embedded(target), encoded, tgt_mask=later, memory_key_padding_mask=hidden)
        return decoded @ self.table.weight.T


def parts_of(name, tensor):
    """(fairseq's name, its part of the tensor): queries, keys and values stand in one here."""
    if name == "table.weight":
        return [(TABLE, tensor)]
    side, *rest = name.split(".")
    if rest[0] == "norm":
        return [(f"{side}.layer_norm.{rest[1]}", tensor)]
    _, number, part, *last = rest
    names = (ENCODER if side == "encoder" else DECODER)[part]
    scope = f"{side}.layers.{number}.{names}"
    if last[0].startswith("in_proj_"):
        return [(f"{scope}.{part}_proj.{last[0].removeprefix('in_proj_')}", third)
                for part, third in zip("qkv", tensor.chunk(3))]
    return [(".".join([scope, *last]), tensor)]


def network(case, dtype):
    result = Network(CASES[case]).to(dtype)
    with torch.no_grad():
        for name, parameter in result.named_parameters():
            for own, part in parts_of(name, parameter):
                part.copy_(torch.from_numpy(formula.parameter(own, tuple(part.shape))))
    return result


def integers(name, shape, classes):
    return torch.from_numpy(formula.labels(name, int(np.prod(shape)), classes).reshape(shape))


def digest(tensor):
    """[34]: as in make_golden.py."""
    flat = tensor.detach().double().reshape(-1)
    parts = [flat[:SAMPLES], flat[:: max(1, flat.numel() // SAMPLES)][:SAMPLES]]
    padded = [functional.pad(part, (0, SAMPLES - part.numel())) for part in parts]
    return torch.cat([flat.sum()[None], flat.norm()[None], *padded])


def mean_loss(logits, target, lengths, smoothing):
    """fairseq's label_smoothed_cross_entropy, of all places of a translation but its first."""
    log_shares = functional.log_softmax(logits, -1)
    right = -log_shares.gather(-1, target[:, 1:, None])[..., 0]
    each = smoothing / (logits.shape[-1] - 1)
    losses = (1 - smoothing - each) * right - each * log_shares.sum(-1)
    counts = torch.arange(target.shape[1] - 1)[None, :] < lengths[:, None] - 1
    return losses[counts].mean()


def one_pass(case, dtype):
    model = network(case, dtype)
    source = integers("transformer.source", (ROWS, SOURCE), VOCABULARY)
    target = integers("transformer.target", (ROWS, TARGET), VOCABULARY)
    logits = model(source, torch.tensor([7, 4, 2]), target[:, :-1])
    loss = mean_loss(logits, target, torch.tensor([6, 5, 3]), 0.0)
    loss.backward()
    tensors = {"logits": logits.detach(), "loss": loss.detach()[None]}
    for name, parameter in model.named_parameters():
        tensors |= {"gradient." + own: digest(part) for own, part in parts_of(name, parameter.grad)}
    return tensors


def make_pass():
    tensors = {}
    for case in CASES:
        exact, single = one_pass(case, torch.float64), one_pass(case, torch.float32)
        errors = {name: ((single[name].double() - t).norm() / t.norm().clamp_min(1e-30)).item() for name, t in exact.items()}
        print(f"{case}: loss {exact['loss'].item():.6f}; float32 differs by {max(errors['logits'], errors['loss']):.1e}")
        assert max(errors["logits"], errors["loss"]) < 1e-5 and exact["logits"].std() > 0.1
        tensors |= {f"{case}/{name}": t.double().contiguous() for name, t in exact.items()}
    path = FOLDER / "transformer.safetensors"
    save_file(tensors, path, {"torch": torch.__version__.split("+")[0]})
    path.chmod(0o644)


def losses(case, precision):
    model = network(case, curves.dtype_of(precision))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98), eps=1e-9)
    training, result = curves.Training(optimizer, precision), []
    for step in range(curves.STEPS):
        name = f"translation.{step}"
        source = integers(name + ".source", (BATCH, TOKENS - 1), VOCABULARY)
        target = integers(name + ".target", (BATCH, TOKENS), VOCABULARY)
        lengths = [integers(name + part, (BATCH,), TOKENS - 2) + 2 for part in (".source_lengths", ".target_lengths")]
        with training.precision():
            loss = mean_loss(model(source, lengths[0], target[:, :-1]), target, lengths[1] + 1, SMOOTHING)
        result.append(loss.item())
        training.update(loss)
    return {"loss": result}


def make_curves():
    golden = {"torch": torch.__version__.split("+")[0]}
    for case in CASES:
        golden[case] = curves.golden(case, lambda precision, case=case: losses(case, precision))
    (FOLDER / "translation.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    make_pass()
    make_curves()
