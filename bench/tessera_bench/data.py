"""Inputs and labels of every case, without torch: from the golden formula, so that Tessera can make the same."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"))
import formula  # noqa: E402


def classes(model):
    return 10 if model == "mlp" else 1000


def of_batch(name, index):
    """Batch 0 is the one of the golden values."""
    return f"{name}.{index}" if index else name


def inputs(model, count, size=0, index=0):
    """float32 [N, 784] or [N, 3, size, size], 224 unless told."""
    size = size or 224
    return formula.uniform(of_batch("input", index), (count, 784) if model == "mlp" else (count, 3, size, size))


def labels(model, count, index=0):
    return formula.labels(of_batch("labels", index), count, classes(model))
