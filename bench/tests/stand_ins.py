"""Programs that a benchmark starts in place of the real ones, in a folder of their own."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest


class StandInTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write_program(self, name, text):
        """Its path, as a word of a command."""
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def measure(self, script, program, *words, code=0):
        """What a script said when it ran such a program, and the lines of its results."""
        said = io.StringIO()
        arguments = [*words, "--results", str(self.root), "--program", self.write_program("program", program)]
        with contextlib.redirect_stderr(said):
            self.assertEqual(script.main(arguments), code)
        paths = self.root.glob("*.jsonl")
        return said.getvalue(), [json.loads(text) for path in paths for text in path.read_text().splitlines()]
