#!/usr/bin/env python3
"""Runs models here and by ONNX Runtime on the same inputs, and prints how far the outputs are apart.

Inputs are drawn: real numbers from a normal distribution, integers below --below, symbolic extents of --size. Needs the
packages `onnxruntime` and `numpy`:

    python3 -m venv venv && venv/bin/pip install onnxruntime numpy
    venv/bin/python tests/onnx/against_onnxruntime.py --program build/release/bin/tessera model.onnx

With --weights SEED weights are drawn as well, in copies of the models, and what a last softmax reads is compared too; that
needs the package `onnx`.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnxruntime

TYPES = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(float16)": "f2", "tensor(bool)": "?",
         "tensor(uint8)": "u1", "tensor(int8)": "i1", "tensor(int16)": "i2", "tensor(int32)": "i4", "tensor(int64)": "i8"}


def draw(generator, declared, size, below, deviation=1.0):
    """Of the first symbolic extent, the batch, few; of 16 bits samples of sound."""
    shape = [extent if isinstance(extent, int) else 3 if axis == 0 else size for axis, extent in enumerate(declared.shape)]
    kind = numpy.dtype(TYPES[declared.type])
    if kind.kind == "f":
        return generator.normal(0, deviation, shape).astype(kind)
    if kind == numpy.int16:
        return generator.normal(0, 3000, shape).astype(kind)
    return generator.integers(0, 2 if kind.kind == "b" else below, shape).astype(kind)


def here(program, model, inputs, folder):
    words = [program, "run", model, "--output-folder", folder]
    for name, array in inputs.items():
        path = folder / f"input{len(words)}.npy"
        numpy.save(path, array)
        words += ["--input", f"{name}={path}"]
    subprocess.run(list(map(str, words)), check=True, stdout=subprocess.DEVNULL)
    return {path.stem: numpy.load(path) for path in folder.glob("*.npy")}


def session_of(model, level=onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 3  # errors
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def apart(own, theirs):
    """The largest difference as a share of theirs' largest number."""
    difference = numpy.abs(own.astype("f8") - theirs.astype("f8")).max(initial=0)
    scale = max(numpy.abs(theirs.astype("f8")).max(initial=0), 1e-30)
    return difference / scale if numpy.isfinite(difference) else numpy.inf


def compare(arguments, model, session=None):
    """By another session than ONNX Runtime's, such as that of `onnx.reference`, if one is given."""
    session = session or session_of(model)
    generator = numpy.random.default_rng(1)
    inputs = {one.name: draw(generator, one, arguments.size, arguments.below, arguments.deviation) for one in session.get_inputs()}
    expected = dict(zip((one.name for one in session.get_outputs()), session.run(None, inputs)))
    with tempfile.TemporaryDirectory() as folder:
        actual = here(arguments.program, model, inputs, Path(folder))
    each = {}
    for name, array in expected.items():
        own = actual[name.replace("/", "_")]
        if own.shape != array.shape or own.dtype != array.dtype:
            sys.exit(f"{model}: '{name}' is {own.dtype}{own.shape} here, {array.dtype}{array.shape} there")
        if not numpy.isfinite(array.astype("f8")).all():
            sys.exit(f"{model}: '{name}' is not finite there: draw other inputs")
        each[name] = apart(own, array)
    return each


def compare_seeded(arguments, model):
    import seeded_weights

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "model.onnx"
        if seeded_weights.write(model, copy, arguments.weights) == 0:
            sys.exit(f"{model}: no weights that could be drawn")
        return compare(arguments, copy)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="tessera")
    parser.add_argument("--size", type=int, default=3, help="of symbolic extents but the first axis', which are 3")
    parser.add_argument("--below", type=int, default=100, help="integers are drawn below")
    parser.add_argument("--deviation", type=float, default=1, help="of real numbers; what was never trained may overflow fp16 beyond some")
    parser.add_argument("--most", type=float, default=1e-4, help="largest difference / largest output that passes")
    parser.add_argument("--weights", type=int, metavar="SEED", help="draw the weights, in copies of the models")
    parser.add_argument("models", nargs="+")
    arguments = parser.parse_args()
    failed = 0
    for model in arguments.models:
        each = compare(arguments, model) if arguments.weights is None else compare_seeded(arguments, model)
        worst = max(each.values(), default=0)
        failed += worst > arguments.most
        outputs = "".join(f", {name} {own:.2g}" for name, own in each.items()) if len(each) > 1 else ""
        print(f"{model}: {worst:.2g}{outputs}{'  TOO FAR' if worst > arguments.most else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
