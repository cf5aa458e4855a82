"""The peers' networks, filled by the golden formula."""

import torch
import torchvision
from torch import nn

from . import bert, data  # Also makes tests/golden importable.

import networks


class Mlp(nn.Module):
    def __init__(self, sizes=(784, 256, 128, 10)):
        super().__init__()
        for i, (inputs, outputs) in enumerate(zip(sizes, sizes[1:]), 1):
            setattr(self, f"fc{i}", nn.Linear(inputs, outputs))

    def forward(self, x):  # x: [N, 784]
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


def build(model):
    if model == "mlp":
        return Mlp()
    return bert.Bert(bert.SIZES[model]) if model in bert.SIZES else getattr(torchvision.models, model)(weights=None)


def network(model):
    with torch.device("meta"):
        made = build(model)
    made = made.to_empty(device="cpu")
    if model in bert.SIZES and bert.SIZES[model].weights:
        weights = bert.pretrained(bert.SIZES[model].weights)
        made.load_state_dict({name: weights[name] for name in made.state_dict()})
        return made
    networks.fill(made, model)
    for name, buffer in made.named_buffers():
        if name.endswith("num_batches_tracked"):
            buffer.zero_()
    return made


def inputs(model, count):
    """What a run of the network reads."""
    return bert.inputs(count) if model in bert.SIZES else (batch(model, count)[0],)


def batch(model, count, size=0, index=0):
    """Inputs in channels-last memory, and labels [N]."""
    inputs = torch.from_numpy(data.inputs(model, count, size, index))
    if inputs.ndim == 4:
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    return inputs, torch.from_numpy(data.labels(model, count, index))
