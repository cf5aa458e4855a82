"""Inputs and labels of every case, without torch: from the golden formula, so that Tessera can make the same."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"))
import formula  # noqa: E402


def classes(model):
    return 10 if model == "mlp" else 1000


def inputs(model, count):
    """float32 [N, 784] or [N, 3, 224, 224]."""
    return formula.uniform("input", (count, 784) if model == "mlp" else (count, 3, 224, 224))


def labels(model, count):
    return formula.labels("labels", count, classes(model))
