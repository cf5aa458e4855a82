"""PyTorch, eager and compiled: channels-last, momentum SGD for training, inference mode otherwise.

On a GPU with cudnn.benchmark, automatic mixed precision for the 16-bit types (with a loss scale for fp16), and TF32 only
where the case asks for it.
"""

import contextlib
import itertools
import re

import torch
from torch.nn import functional as F

from . import data, late, models

LOW = {"fp16": torch.float16, "bf16": torch.bfloat16}


def versions():
    onednn = re.search(r"MKL-DNN v([\d.]+)", torch.__config__.show())
    found = {"torch": torch.__version__, "onednn": onednn[1] if onednn else None}
    if torch.cuda.is_available():
        found |= {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "gpu": torch.cuda.get_device_name()}
    return found


def device_peak_bytes():
    return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None


def prepare(case):
    """The case's arithmetic, as a context for the forward pass."""
    low = LOW.get(case["precision"])
    if case["device"] == "cuda":
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case["precision"] == "tf32"
    return torch.autocast(case["device"], low) if low else contextlib.nullcontext()


class Loss:
    """A loss on its way to the host, after the work that is enqueued when it is made and ahead of all later work."""

    def __init__(self, loss):
        self.value, self.arrived = loss.detach(), None
        if loss.is_cuda:
            self.value = torch.empty((), dtype=loss.dtype, pin_memory=True).copy_(self.value, non_blocking=True)
            self.arrived = torch.cuda.Event()
            self.arrived.record()

    def read(self):
        if self.arrived is not None:
            self.arrived.synchronize()
        return self.value.item()


def image_training(case, parallel):
    """(the loss of a batch, the batches, the optimizer, whether dropout makes losses random) of a classifier."""
    network = parallel(models.network(case["model"]).to(memory_format=torch.channels_last, device=case["device"]).train())
    batches = [models.batch(case["model"], case["batch"], case["image_size"], index) for index in range(case["batches"])]
    batches = [(inputs.to(case["device"]), labels.to(case["device"])) for inputs, labels in batches]
    optimizer = torch.optim.SGD(network.parameters(), lr=case["learning_rate"], momentum=0.9, weight_decay=5e-5, fused=True)
    random = any(isinstance(module, torch.nn.Dropout) for module in network.modules())
    return lambda inputs, labels: F.cross_entropy(network(inputs), labels), batches, optimizer, random


def language_training(case):
    from . import torch_language  # its library is needed by no other case

    network, batch, optimizer = torch_language.training(case)
    return network, [batch], optimizer, True


class Training:
    def __init__(self, case, compiled, parallel=lambda network: network):
        self.arithmetic = prepare(case)
        loss_of, batches, self.optimizer, self.random = language_training(case) if case.get("recipe") else image_training(case, parallel)
        self.batches = itertools.cycle(batches)
        self.scaler = torch.amp.GradScaler(case["device"], enabled=case["precision"] == "fp16")
        self.late = late.Late()

        def loss(*batch):
            with self.arithmetic:
                return loss_of(*batch)

        self.loss = torch.compile(loss) if compiled else loss

    def iterate(self):
        loss = self.loss(*next(self.batches))
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        mine = Loss(loss)
        self.late.push(mine)
        return mine

    def finish(self):
        self.late.finish()

    def check(self, results):
        return None if self.random else {"losses": [loss.read() for loss in results]}


class Inference:
    def __init__(self, case, compiled):
        self.gpu = case["device"] == "cuda"
        self.arithmetic = prepare(case)
        self.of_file = case["onnx"]
        self.network = models.network(case["model"]).to(memory_format=torch.channels_last, device=case["device"]).eval()
        self.inputs = [tensor.to(case["device"]) for tensor in models.inputs(case["model"], case["batch"])]
        if self.gpu and case["precision"] in LOW:
            # Weights and images in the type itself: faster than casting at every run.
            low = LOW[case["precision"]]
            self.network = self.network.to(low)
            self.inputs = [tensor.to(low) if tensor.is_floating_point() else tensor for tensor in self.inputs]
            self.arithmetic = contextlib.nullcontext()
        if compiled:
            # Weights become constants: batch norms fold, layouts are chosen once. The strongest setting for inference.
            from torch._inductor import config

            config.freezing = True
            self.network = torch.compile(self.network, mode=self.mode())

    def mode(self):
        """What a server's network is compiled with may take minutes."""
        if not self.gpu:
            return None
        return "max-autotune" if self.of_file else "reduce-overhead"

    @torch.inference_mode()
    def iterate(self):
        with self.arithmetic:
            result = self.network(*self.inputs)
        return result.float().cpu() if self.gpu else result

    def check(self, results):
        return {"outputs": data.shown(results[0], self.of_file)}


def make(name, case, threads):
    torch.set_num_threads(threads)
    return (Training if case["train"] else Inference)(case, compiled=name == "torch-compile")
