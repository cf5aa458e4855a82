"""Programs that a benchmark starts in place of the real ones, in a folder of their own."""

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
