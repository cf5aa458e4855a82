"""ONNX Runtime on the CPU: the network of a file, all graph optimisations."""

import math
import re

import numpy
import onnxruntime

from . import data, onnx_files  # data also makes tests/golden importable

import formula


def versions():
    return {"onnxruntime": onnxruntime.__version__}


def by_formula(declared, case):
    """As ours makes inputs: numbers by the formula of the name, whole ones below a bound; open extents come first, or have a size."""
    sizes = dict(case["sizes"])
    shape = [extent if isinstance(extent, int) and extent > 0 else sizes.get(extent, case["batch"]) for extent in declared.shape]
    name = re.sub(r"[^A-Za-z0-9_./-]", "_", declared.name)  # ours of the input of a graph
    if declared.type == "tensor(float)":
        return formula.uniform(name, shape)
    whole = {"tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32}[declared.type]
    return formula.labels(name, math.prod(shape), case["below"]).reshape(shape).astype(whole)


class Inference:
    def __init__(self, case, threads):
        self.of_file = case["onnx"]
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        path = str(onnx_files.path_of(case["model"], case["batch"], case["package"]))
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = {declared.name: by_formula(declared, case) for declared in self.session.get_inputs()}

    def iterate(self):
        return self.session.run(None, self.inputs)[0]

    def check(self, results):
        return {"outputs": data.shown(results[0], self.of_file)}


def make(_, case, threads):
    if case["train"]:
        raise ValueError("ONNX Runtime is compared for inference only")
    return Inference(case, threads)
