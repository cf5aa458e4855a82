"""bench/language_curves: what it makes of the losses that tests keep, against a stand-in for the tests."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tessera_bench import language_curves  # noqa: E402

# Keeps what its folder is given, and ends as it is told.
TESTS = """#!/bin/sh
cp {kept}/*.json "$TESSERA_CURVES"
exit {status}
"""


class LanguageCurvesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.kept = self.root / "kept"
        self.kept.mkdir()

    def keep(self, network, precision, mine, theirs, device="cpu"):
        kept = {"network": network, "precision": precision, "device": device, "tessera": mine, "torch": theirs}
        (self.kept / f"{device}-{network}-{precision}.json").write_text(json.dumps(kept))

    def script(self, name, text):
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run_it(self, *arguments, status=0):
        """(exit status, stdout, the JSON lines)"""
        out, results = io.StringIO(), self.root / "results.jsonl"
        tests = self.script("tests", TESTS.format(kept=self.kept, status=status))
        program = self.script("tessera", """#!/bin/sh\necho '{"version": "0.1", "devices": []}'\n""")
        words = ["--device", "cpu", "--tests", tests, "--program", program, "--results", results, *arguments]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            ended = language_curves.main([str(word) for word in words])
        lines = results.read_text().splitlines() if results.exists() else []
        return ended, out.getvalue(), [json.loads(line) for line in lines]

    def test_a_line_for_each_network_and_a_panel_for_each_precision(self):
        self.keep("gpt2", "fp32", [4, 2, 1.0005], [4, 2, 1])
        self.keep("gpt2", "fp16", [4, 2, 1.1], [4, 2, 1])
        self.keep("bert", "fp32", [3, 2, 1], [3, 2, 1])
        self.keep("bert", "fp32", [3, 2, 9], [3, 2, 1], device="cuda")  # of another device
        drawing = self.root / "curves.svg"
        for source in ((), ("--kept", self.kept)):
            status, out, lines = self.run_it("--picture", drawing, *source)
            self.assertEqual(status, 0)
            self.assertIn("gpt2 fp32 largest relative difference 5.0e-04, goal 1e-03 met", out)
            bert, gpt2 = lines[-2:]
            self.assertEqual(gpt2["case"], "cpu/gpt2-curves")
            self.assertEqual(gpt2["settings"], {"model": "gpt2", "steps": 3})
            self.assertAlmostEqual(gpt2["curves"]["fp16"]["difference"], 0.1)
            self.assertEqual(bert["curves"]["fp32"]["difference"], 0)
            svg = xml.etree.ElementTree.parse(drawing).getroot()
            self.assertEqual(sum(element.tag.endswith("polyline") for element in svg), 2 * 3)

    def test_what_misses_its_goal_is_told(self):
        self.keep("gpt2", "fp32", [4, 2, 1.1], [4, 2, 1])
        status, out, _ = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("MISSED", out)

    def test_tests_that_fail_are_told(self):
        self.keep("gpt2", "bf16", [4, 2, 1], [4, 2, 1])
        self.assertEqual(self.run_it(status=1)[0], 1)
        self.assertEqual(self.run_it()[0], 0)

    def test_nothing_kept_is_no_success(self):
        self.keep("gpt2", "bf16", [4, 2, 1], [4, 2, 1], device="cuda")
        status, _, lines = self.run_it()
        self.assertEqual((status, lines), (1, []))


if __name__ == "__main__":
    unittest.main()
