"""Networks in the ONNX format, for ONNX Runtime and whoever reads the same file: PyTorch writes it, from weights by the golden formula."""

import os
import shutil
import subprocess

from . import machine

FOLDER = machine.ROOT / "build" / "bench" / "onnx"


def path_of(model, batch):
    return FOLDER / f"{model}-b{batch}" / "network.onnx"


def ensure(case, python):
    """Writes the file of a case where it is not there yet."""
    path = path_of(case.model, case.batch)
    if path.exists():
        return
    # The weights lie in a second file beside the first, which names it.
    part = path.parent.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    variables = os.environ | {"PYTHONPATH": str(machine.ROOT / "bench")}
    export = [str(python), "-m", "tessera_bench.onnx_export", case.model, str(case.batch), str(part / path.name)]
    subprocess.run(export, check=True, env=variables, stdout=subprocess.DEVNULL)
    part.rename(path.parent)
