"""A throw-away source tree that a check is run on."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class TreeTest(unittest.TestCase):
    """Offers write(path, text) and run(check, ...) -> (exit code, output) on a fresh tree."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, path, text, executable=False):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if executable:
            file.chmod(0o755)

    def run_check(self, check, *options):
        result = subprocess.run([ROOT / "tools" / check, "--root", self.root, *options], text=True, check=False,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=self.environment())
        return result.returncode, result.stdout

    def environment(self):
        """A memory of passed checks of its own, so that none is skipped."""
        return {**os.environ, "XDG_CACHE_HOME": str(self.root / ".cache")}

    def assert_passes(self, check, *options):
        code, output = self.run_check(check, *options)
        self.assertEqual(code, 0, output)
        return output

    def assert_fails(self, check, expected, *options):
        code, output = self.run_check(check, *options)
        self.assertEqual(code, 1, output)
        self.assertIn(expected, output)
