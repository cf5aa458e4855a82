"""Losses of a hundred steps in each precision: what the programs here that train networks of language share."""

import contextlib

import torch

torch.set_num_threads(1)  # sums in one order

STEPS = 100
FIRST = 20  # of them, by which float32's deviation is told: it grows from step to step
SCALE = 1024.0  # of losses in fp16: so low that no gradient overflows, since curves part where a step is left out
HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def dtype_of(precision):
    """Of the weights: mixed precision keeps them in float32."""
    return torch.float64 if precision == "fp64" else torch.float32


class Training:
    """The steps of an optimizer, in 16 bits by autocast, those of fp16 with a loss scale."""

    def __init__(self, optimizer, precision):
        self.optimizer, self.half = optimizer, HALVES.get(precision)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=SCALE, enabled=precision == "fp16")

    def precision(self):
        """What a step's loss is computed under."""
        return torch.autocast("cpu", self.half) if self.half else contextlib.nullcontext()

    def update(self, loss):
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        assert self.scaler.get_scale() in (1, SCALE)  # 1: there is none


def golden(name, losses_of, falls=0.02):
    """Of losses_of(precision) -> {"loss": [...], ...}: those in float64, how far float32 is from them, and "loss" in 16 bits."""
    exact, single = losses_of("fp64"), losses_of("fp32")
    deviation = max(abs(a - b) for key in exact for a, b in zip(exact[key][:FIRST], single[key]))
    halves = {precision: losses_of(precision)["loss"] for precision in HALVES}
    far = {precision: max(abs(a - b) for a, b in zip(exact["loss"], curve)) for precision, curve in halves.items()}
    print(f"{name}: {exact['loss'][0]:.4f} to {exact['loss'][-1]:.4f}; float32 differs by {deviation:.1e}, "
          + ", ".join(f"{precision} by {distance:.1e}" for precision, distance in far.items()))
    assert deviation < 1e-3 and abs(exact["loss"][-1] - exact["loss"][0]) > falls
    return exact | {"float32_deviation": deviation, "halves": halves}
