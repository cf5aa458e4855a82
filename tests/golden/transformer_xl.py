"""Transformer-XL in plain torch, as the paper has it (Dai et al. 2019; src/models/transformer_xl.cpp,
src/tasks/transformer_xl.cpp): two segments of small networks, of which the second remembers the first, with losses,
logarithms of probabilities and gradients; torch's own adaptive softmax; and the losses of a hundred steps of training.

    bench/.venv/bin/python tests/golden/transformer_xl.py    # writes transformer_xl.safetensors and .json
"""

import json
import math
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

import curves
import formula
from transformer import digest, integers

FOLDER = pathlib.Path(__file__).resolve().parent
VOCABULARY, WIDTH, HEADS, INNER, LAYERS = 29, 16, 2, 24, 2
ROWS, TOKENS, MEMORY = 3, 5, 7
BATCH, STEP_TOKENS, STEP_MEMORY, BEGINS = 8, 6, 9, 10
# Cutoffs, by which each cluster is narrower, and the farthest distance.
CASES = {"plain": ([], 4, 0), "adaptive": ([8, 17], 2, 0), "of_one_width": ([11], 1, 0), "clamped": ([], 4, 6)}


class Network(nn.Module):
    """Its parameters are named in files as in the reference implementation; dots of names are double underscores here."""

    def __init__(self, case):
        super().__init__()
        self.cutoffs, narrowing, self.farthest = CASES[case]
        bounds = [0, *self.cutoffs, VOCABULARY]
        self.parts = list(zip(bounds, bounds[1:]))
        self.widths = [WIDTH // narrowing**i for i in range(len(self.parts))]
        self.own = nn.ParameterDict()
        for i, ((first, end), width) in enumerate(zip(self.parts, self.widths)):
            self.add(f"word_emb.emb_layers.{i}.weight", end - first, width)
            self.add(f"crit.out_layers.{i}.bias", end - first)
            if width != WIDTH:
                self.add(f"word_emb.emb_projs.{i}", width, WIDTH)
        if self.cutoffs:
            self.add("crit.cluster_weight", len(self.cutoffs), WIDTH)
            self.add("crit.cluster_bias", len(self.cutoffs))
        self.add("r_w_bias", HEADS, WIDTH // HEADS)
        self.add("r_r_bias", HEADS, WIDTH // HEADS)
        for layer in range(LAYERS):
            attention, inner = f"layers.{layer}.dec_attn", f"layers.{layer}.pos_ff"
            self.add(f"{attention}.qkv_net.weight", 3 * WIDTH, WIDTH)
            self.add(f"{attention}.r_net.weight", WIDTH, WIDTH)
            self.add(f"{attention}.o_net.weight", WIDTH, WIDTH)
            self.add(f"{inner}.CoreNet.0.weight", INNER, WIDTH)
            self.add(f"{inner}.CoreNet.0.bias", INNER)
            self.add(f"{inner}.CoreNet.3.weight", WIDTH, INNER)
            self.add(f"{inner}.CoreNet.3.bias", WIDTH)
            for name in (attention, inner):
                self.add(f"{name}.layer_norm.weight", WIDTH)
                self.add(f"{name}.layer_norm.bias", WIDTH)

    def add(self, name, *shape):
        self.own[name.replace(".", "__")] = nn.Parameter(torch.from_numpy(formula.parameter(name, shape)))

    def __getitem__(self, name):
        return self.own[name.replace(".", "__")]

    def named(self):
        return {name.replace("__", "."): parameter for name, parameter in self.own.items()}

    def embedded(self, tokens):
        result = torch.zeros(*tokens.shape, WIDTH, dtype=self["r_w_bias"].dtype)
        for i, (first, end) in enumerate(self.parts):
            here = (tokens >= first) & (tokens < end)
            rows = self[f"word_emb.emb_layers.{i}.weight"][tokens[here] - first]
            if self.widths[i] != WIDTH:
                rows = rows @ self[f"word_emb.emb_projs.{i}"]
            result = result.masked_scatter(here[..., None], rows.to(result.dtype))
        return result * math.sqrt(WIDTH)

    def scores_of_positions(self, layer, q, keys):
        """[rows, heads, queries, keys]: one distance after another, without a shift."""
        queries = q.shape[2]
        vectors = []
        for i in range(queries):
            distances = keys - queries + i - torch.arange(keys)
            far = distances.clamp(max=self.farthest) if self.farthest else distances
            angles = far[:, None].double() * 10000.0 ** (-torch.arange(0, WIDTH, 2).double() / WIDTH)
            vectors.append(torch.cat([angles.sin(), angles.cos()], 1))
        positions = torch.stack(vectors).to(q.dtype) @ self[f"layers.{layer}.dec_attn.r_net.weight"].T
        positions = positions.view(queries, keys, HEADS, -1)
        return torch.einsum("bhid,ijhd->bhij", q + self["r_r_bias"][None, :, None], positions)

    def attended(self, layer, x, memory):
        name = f"layers.{layer}.dec_attn"
        all_keys = torch.cat([memory, x], 1)
        by_head = lambda t: t.view(*t.shape[:2], HEADS, -1).transpose(1, 2)
        q, k, v = (by_head(t) for t in (all_keys @ self[f"{name}.qkv_net.weight"].T).chunk(3, -1))
        q = q[:, :, -x.shape[1] :]
        content = (q + self["r_w_bias"][None, :, None]) @ k.transpose(2, 3)
        scores = (content + self.scores_of_positions(layer, q, k.shape[2])) / math.sqrt(WIDTH // HEADS)
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1 + memory.shape[1])
        y = scores.masked_fill(later, -math.inf).softmax(-1) @ v
        y = y.transpose(1, 2).reshape(x.shape) @ self[f"{name}.o_net.weight"].T
        return self.norm(name, x + y)

    def norm(self, name, x):
        return functional.layer_norm(x, (WIDTH,), self[f"{name}.layer_norm.weight"], self[f"{name}.layer_norm.bias"])

    def transformed(self, layer, x):
        name = f"layers.{layer}.pos_ff"
        inner = functional.linear(x, self[f"{name}.CoreNet.0.weight"], self[f"{name}.CoreNet.0.bias"]).relu()
        return self.norm(name, x + functional.linear(inner, self[f"{name}.CoreNet.3.weight"], self[f"{name}.CoreNet.3.bias"]))

    def log_probabilities(self, x):
        bias = lambda i: self[f"crit.out_layers.{i}.bias"]
        table = lambda i: self[f"word_emb.emb_layers.{i}.weight"]
        if not self.cutoffs:
            return functional.linear(x, table(0), bias(0)).log_softmax(-1)
        head = functional.linear(x, torch.cat([table(0), self["crit.cluster_weight"]]),
                                 torch.cat([bias(0), self["crit.cluster_bias"]])).log_softmax(-1)
        parts = [head[..., : self.cutoffs[0]]]
        for i in range(1, len(self.parts)):
            narrow = x @ self[f"word_emb.emb_projs.{i}"].T if self.widths[i] != WIDTH else x
            cluster = self.cutoffs[0] + i - 1
            parts.append(functional.linear(narrow, table(i), bias(i)).log_softmax(-1) + head[..., cluster : cluster + 1])
        return torch.cat(parts, -1)

    def forward(self, tokens, memories, length):
        """Logarithms of probabilities, and the memories for the next segment."""
        x, kept = self.embedded(tokens), []
        for layer, memory in enumerate(memories):
            kept.append(torch.cat([memory, x], 1)[:, -length:].detach())
            x = self.transformed(layer, self.attended(layer, x, memory))
        return self.log_probabilities(x), kept


def network(case, dtype):
    return Network(case).to(dtype)


def nothing(rows, dtype):
    return [torch.zeros(rows, 0, WIDTH, dtype=dtype) for _ in range(LAYERS)]


def mean_loss(logarithms, labels):
    return functional.nll_loss(logarithms.reshape(-1, VOCABULARY), labels.reshape(-1))


def two_segments(case, dtype):
    model, memories, tensors = network(case, dtype), nothing(ROWS, dtype), {}
    for number in range(2):
        tokens = integers(f"transformer_xl.tokens.{number}", (ROWS, TOKENS), VOCABULARY)
        labels = integers(f"transformer_xl.labels.{number}", (ROWS, TOKENS), VOCABULARY)
        logarithms, memories = model(tokens, memories, MEMORY)
        loss = mean_loss(logarithms, labels)
        tensors |= {f"logits.{number}": logarithms.detach(), f"loss.{number}": loss.detach()[None]}
    loss.backward()
    return tensors | {"gradient." + name: digest(p.grad) for name, p in model.named().items()}


def adaptive_softmax(dtype):
    """torch.nn.AdaptiveLogSoftmaxWithLoss by itself: losses, all probabilities, and gradients of the mean loss."""
    model = nn.AdaptiveLogSoftmaxWithLoss(WIDTH, VOCABULARY, cutoffs=[8, 17], div_value=2.0, head_bias=True).to(dtype)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(formula.parameter(name, tuple(parameter.shape))))
    x = torch.from_numpy(formula.uniform("adaptive.x", (12, WIDTH))).to(dtype).requires_grad_()
    said = model(x, integers("adaptive.labels", (12,), VOCABULARY))
    said.loss.backward()
    tensors = {"losses": -said.output.detach(), "log_probabilities": model.log_prob(x).detach(), "gradient.x": digest(x.grad)}
    return tensors | {"gradient." + name: digest(p.grad) for name, p in model.named_parameters()}


def make_pass():
    tensors = {}
    made = {case: lambda dtype, case=case: two_segments(case, dtype) for case in CASES} | {"softmax": adaptive_softmax}
    for case, make in made.items():
        exact, single = make(torch.float64), make(torch.float32)
        errors = {name: ((single[name].double() - t).norm() / t.norm().clamp_min(1e-30)).item() for name, t in exact.items()}
        worst = max(error for name, error in errors.items() if not name.startswith("gradient."))
        print(f"{case}: float32 differs by {worst:.1e}, of gradients {max(errors.values()):.1e}")
        assert worst < 1e-5
        tensors |= {f"{case}/{name}": t.double().contiguous() for name, t in exact.items()}
    path = FOLDER / "transformer_xl.safetensors"
    save_file(tensors, path, {"torch": torch.__version__.split("+")[0]})
    path.chmod(0o644)


def losses(case, precision):
    dtype = curves.dtype_of(precision)
    model, memories = network(case, dtype), nothing(BATCH, dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    training, result = curves.Training(optimizer, precision), []
    for step in range(curves.STEPS):
        if step % BEGINS == 0:
            memories = nothing(BATCH, dtype)
        tokens = integers(f"transformer_xl.{step}.tokens", (BATCH, STEP_TOKENS), VOCABULARY)
        labels = integers(f"transformer_xl.{step}.labels", (BATCH, STEP_TOKENS), VOCABULARY)
        with training.precision():
            logarithms, memories = model(tokens, memories, STEP_MEMORY)
            loss = mean_loss(logarithms, labels)
        result.append(loss.item())
        training.update(loss)
    return {"loss": result}


def make_curves():
    golden = {"torch": torch.__version__.split("+")[0]}
    for case in ("plain", "adaptive"):
        golden[case] = curves.golden(case, lambda precision, case=case: losses(case, precision))
    (FOLDER / "transformer_xl.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    make_pass()
    make_curves()
