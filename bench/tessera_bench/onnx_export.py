"""python -m tessera_bench.onnx_export MODEL BATCH PATH: a process of its own, so that ONNX Runtime's holds no torch."""

import sys

import torch

from . import bert, models


def main(model, count, path):
    names = bert.INPUTS if model in bert.SIZES else ["input"]
    torch.onnx.export(models.network(model).eval(), models.inputs(model, int(count)), path, input_names=names, dynamo=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
