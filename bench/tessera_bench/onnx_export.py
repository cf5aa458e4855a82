"""python -m tessera_bench.onnx_export MODEL BATCH PATH: a process of its own, so that ONNX Runtime's holds no torch."""

import sys

import torch

from . import bert, data, models


def main(model, count, path):
    if model in bert.SIZES:
        names, inputs = bert.INPUTS, bert.inputs(int(count))
    else:
        names, inputs = ["input"], (torch.from_numpy(data.inputs(model, int(count))),)
    torch.onnx.export(models.network(model).eval(), inputs, path, input_names=names, dynamo=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
