"""What the tests of writing leave behind, read by the format's own checker: its native part alone, which needs no package."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = os.environ["TESSERA_ONNX_TEST_PROGRAM"]
PACKAGE = Path(os.environ["TESSERA_ONNX_PACKAGE"])


def load_checker():
    path = next(PACKAGE.glob("onnx_cpp2py_export*.so"))
    specification = importlib.util.spec_from_file_location("onnx_cpp2py_export", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


class CheckerTest(unittest.TestCase):
    def test_the_formats_own_checker_agrees(self):
        package = load_checker()
        with tempfile.TemporaryDirectory(prefix="tessera-onnx-") as folder:
            environment = {**os.environ, "TESSERA_ONNX_FOLDER": folder}
            subprocess.run([TESTS, "--gtest_filter=OnnxSave.*"], env=environment, check=True, stdout=subprocess.DEVNULL)
            models = sorted(Path(folder).glob("*.onnx"))
            self.assertGreater(len(models), 300)
            for model in models:
                with self.subTest(model=model.name):
                    package.checker.check_model_path(str(model), True)  # with types, shapes and the file beside it
            broken = models[0].read_bytes()[:-10]
            with self.assertRaises(package.checker.ValidationError):
                package.checker.check_model(broken, True)


if __name__ == "__main__":
    sys.exit(unittest.main())
