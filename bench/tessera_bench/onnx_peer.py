"""ONNX Runtime on the CPU: the network as torch.onnx writes it, all graph optimisations."""

import onnxruntime

from . import data, onnx_files


def versions():
    return {"onnxruntime": onnxruntime.__version__}


class Inference:
    def __init__(self, case, threads):
        self.inputs = {"input": data.inputs(case["model"], case["batch"])}
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        path = str(onnx_files.path_of(case["model"], case["batch"]))
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def iterate(self):
        return self.session.run(None, self.inputs)[0]

    def check(self, results):
        return {"outputs": results[0][0, :10].tolist()}


def make(_, case, threads):
    if case["train"]:
        raise ValueError("ONNX Runtime is compared for inference only")
    return Inference(case, threads)
