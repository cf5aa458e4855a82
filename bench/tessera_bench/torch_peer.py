"""PyTorch, eager and compiled: channels-last, momentum SGD for training, inference mode otherwise."""

import re

import torch
from torch.nn import functional as F

from . import models


def versions():
    onednn = re.search(r"MKL-DNN v([\d.]+)", torch.__config__.show())
    return {"torch": torch.__version__, "onednn": onednn[1] if onednn else None}


class Training:
    def __init__(self, case, compiled):
        network = models.network(case["model"]).to(memory_format=torch.channels_last).train()
        self.inputs, self.labels = models.batch(case["model"], case["batch"])
        self.optimizer = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-5, fused=True)
        self.random = any(isinstance(module, torch.nn.Dropout) for module in network.modules())

        def loss(inputs, labels):
            return F.cross_entropy(network(inputs), labels)

        self.loss = torch.compile(loss) if compiled else loss

    def iterate(self):
        loss = self.loss(self.inputs, self.labels)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()  # Read each step, as a training loop does.

    def check(self, results):
        return None if self.random else {"losses": results}


class Inference:
    def __init__(self, case, compiled):
        self.network = models.network(case["model"]).to(memory_format=torch.channels_last).eval()
        self.inputs, _ = models.batch(case["model"], case["batch"])
        if compiled:
            # Weights become constants: batch norms fold, layouts are chosen once. The strongest setting for inference.
            from torch._inductor import config

            config.freezing = True
            self.network = torch.compile(self.network)

    @torch.inference_mode()
    def iterate(self):
        return self.network(self.inputs)

    def check(self, results):
        return {"outputs": results[0][0, :10].tolist()}


def make(name, case, threads):
    torch.set_num_threads(threads)
    return (Training if case["train"] else Inference)(case, compiled=name == "torch-compile")
