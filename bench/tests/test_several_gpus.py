"""bench/several_gpus against a program that stands in for Tessera."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tessera_bench import several_gpus  # noqa: E402

# A GPU alone takes 100 or 125 ms for a batch, both together 128 ms for two; the commands are kept.
PROGRAM = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/commands"
case "$*" in
  doctor*) echo '{"version": "0.1", "devices": []}' ;;
  launch*) echo '{"milliseconds": [1, 128, 1000]}' ;;
  *cuda:0*) echo '{"milliseconds": [100]}' ;;
  *) %s ;;
esac
"""
SECOND = """echo '{"milliseconds": [125]}'"""


class ScalingTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def run_scaling(self, second, code, *words):
        program = self.root / "program"
        program.write_text(PROGRAM % second)
        program.chmod(0o755)
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            given = ["resnet50-train-b256-fp16", "--program", str(program), "--peers", "", "--results", str(self.root), *words]
            self.assertEqual(several_gpus.main(given), code)
        (path,) = self.root.glob("*-several-gpus.jsonl")
        return json.loads(path.read_text()), errors.getvalue(), (self.root / "commands").read_text()

    def test_together_over_the_sum_of_those_alone(self):
        line, errors, commands = self.run_scaling(SECOND, 0, "--options", "--bucket-mib 10")
        side = line["sides"]["tessera"]
        self.assertEqual(side["alone"], [2560, 2048])
        self.assertEqual(side["together"], 4000)
        self.assertAlmostEqual(side["scaling"], 4000 / 4608)
        self.assertIn("scaling 86.8 %", errors)
        self.assertEqual(line["case"], "cuda-x2/resnet50-train-b256-fp16")
        self.assertEqual(commands.count("--bucket-mib 10"), 3)
        self.assertIn("launch --ranks 2 -- bench resnet50 --batch 256 --train --device cuda ", commands)

    def test_what_fails_is_said(self):
        line, errors, _ = self.run_scaling("echo 'tessera: no GPU 1' >&2; exit 7", 1)
        self.assertEqual(line["sides"], {})
        self.assertIn("ended with 7", line["errors"][0])
        self.assertIn("no GPU 1", errors)


if __name__ == "__main__":
    unittest.main()
