"""python -m tessera_bench.onnx_export MODEL BATCH PATH: a process of its own, so that ONNX Runtime's holds no torch."""

import sys

import torch

from . import data, models


def main(model, count, path):
    inputs = torch.from_numpy(data.inputs(model, int(count)))
    torch.onnx.export(models.network(model).eval(), (inputs,), path, input_names=["input"], dynamo=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
