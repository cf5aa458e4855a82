"""Inputs and labels of every case, without torch: from the golden formula, so that Tessera can make the same."""

import math
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


SHOWN = 10  # outputs that are compared


def shown(outputs, of_file):
    """The first logits of the first sample; of a file that ours reads too, from all of the output at equal distances."""
    if not of_file:
        return outputs[0, :SHOWN].tolist()
    flat = outputs.reshape(-1)
    count = min(SHOWN, math.prod(flat.shape))
    return [float(flat[i * len(flat) // count]) for i in range(count)]
