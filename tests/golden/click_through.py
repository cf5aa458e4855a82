"""Twenty steps of a small network with embedding tables (src/tasks/click_through.cpp): its losses."""

import torch
from torch import nn
from torch.nn import functional

import formula

STEPS, BATCH, ENTRIES, NUMBERS, WIDTH, HIDDEN = 20, 16, (7, 40, 3), 4, 8, (12, 6)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        for table, entries in enumerate(ENTRIES):
            self.add_module(f"table{table}", nn.Embedding(entries, WIDTH, sparse=True))
        self.numbers = nn.Linear(NUMBERS, WIDTH)
        rows = len(ENTRIES) + 1
        inputs = rows * WIDTH + rows * (rows - 1) // 2
        for layer, outputs in enumerate(HIDDEN):
            self.add_module(f"layer{layer}", nn.Linear(inputs, outputs))
            inputs = outputs
        self.output = nn.Linear(inputs, 1)

    def forward(self, categories, numbers):
        rows = [self.get_submodule(f"table{t}")(categories[:, t]) for t in range(len(ENTRIES))]
        rows.append(torch.relu(self.numbers(numbers)))
        stacked = torch.stack(rows, 1)
        below = torch.tril_indices(len(rows), len(rows), -1)
        pairs = (stacked @ stacked.transpose(1, 2))[:, below[0], below[1]]
        x = torch.cat([stacked.reshape(len(categories), -1), pairs], 1)
        for layer in range(len(HIDDEN)):
            x = torch.relu(self.get_submodule(f"layer{layer}")(x))
        return self.output(x)[:, 0]


def losses(dtype=torch.float64):
    """{"loss": [...]}, one of each step: SparseAdam, whose epsilon has another place than Adam's, and Adam for the rest."""
    torch.set_default_dtype(dtype)
    network = Network()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(formula.parameter(name, tuple(parameter.shape))))
    tables = [p for name, p in network.named_parameters() if name.startswith("table")]
    others = [p for name, p in network.named_parameters() if not name.startswith("table")]
    optimizers = [torch.optim.SparseAdam(tables, lr=1e-2, eps=1e-12), torch.optim.Adam(others, lr=1e-2, eps=1e-12)]
    result = {"loss": []}
    for step in range(STEPS):
        columns = [formula.labels(f"click.{step}.{t}", BATCH, entries) for t, entries in enumerate(ENTRIES)]
        categories = torch.stack([torch.from_numpy(column) for column in columns], 1)
        numbers = torch.from_numpy(formula.uniform(f"click.{step}.numbers", (BATCH, NUMBERS))).to(dtype)
        labels = torch.from_numpy(formula.labels(f"click.{step}.labels", BATCH, 2)).to(dtype)
        loss = functional.binary_cross_entropy_with_logits(network(categories, numbers), labels)
        result["loss"].append(loss.item())
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    torch.set_default_dtype(torch.float32)
    return result
