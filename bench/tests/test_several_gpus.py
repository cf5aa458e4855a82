"""bench/several_gpus against a program that stands in for Tessera."""

import contextlib
import io
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from stand_ins import StandInTest  # noqa: E402
from tessera_bench import several_gpus  # noqa: E402

# A GPU alone takes 100 or 125 ms for a batch, both together 128 ms for two; the commands are kept.
PROGRAM = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/commands"
case "$*" in
  doctor*) echo '{"version": "0.1", "devices": []}' ;;
  *--check*) echo '{"losses": [7.0, 6.5]}' ;;
  launch*) echo '{"milliseconds": [1, 128, 1000]}' ;;
  *cuda:0*) echo '{"milliseconds": [100]}' ;;
  *) %s ;;
esac
"""
SECOND = """echo '{"milliseconds": [125]}'"""

# In place of Python with PyTorch: 200 ms alone, 250 together; the losses are put in.
PEER = """#!/bin/sh
case "$*" in
  *torch.distributed.run*) echo '{"milliseconds": [250], "losses": %s}' ;;
  *) echo '{"milliseconds": [200], "losses": %s}' ;;
esac
"""


class ScalingTest(StandInTest):
    def run_scaling(self, second, code, *words, case="resnet50-train-b256-fp16", peers=""):
        program = self.write_program("program", PROGRAM % second)
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            given = [case, "--program", program, "--peers", peers, "--results", str(self.root), *words]
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

    def beside_a_peer(self, together, alone, code, case="cuda-x2/alexnet-train-b512-fp16"):
        python = self.write_program("python", PEER % (together, alone))
        return self.run_scaling(SECOND, code, "--python", python, case=case, peers="ddp,ddp-compile")

    def test_the_ratio_and_the_losses_beside_peers(self):
        line, errors, commands = self.beside_a_peer("[7.01, 6.5]", "[7.0, 6.5]", 0)
        self.assertAlmostEqual(line["scaling"], 8000 / 9216)
        self.assertAlmostEqual(line["speed_ratio"], 8000 / 4096)
        self.assertIn("scaling 86.8 %, ratio 1.953 to ddp", errors)
        self.assertIn("losses equal", errors)
        self.assertEqual(sorted(line["check"]["differences"]), sorted(
            f"{side} {way}" for side in ("tessera", "ddp", "ddp-compile") for way in ("alone", "together")))
        self.assertIn("launch --ranks 2 -- bench alexnet --batch 512 --train --device cuda --precision fp16 --nondeterministic --json --check", commands)

    def test_losses_that_differ_are_no_result(self):
        line, errors, _ = self.beside_a_peer("[7.0, 6.5]", "[7.0, 6.0]", 1)
        self.assertFalse(line["check"]["ok"])
        self.assertEqual(line["errors"], ["check: the losses differ"])
        self.assertIn("losses DIFFERENT", errors)

    def test_random_losses_are_not_compared(self):
        line, errors, commands = self.beside_a_peer("null", "null", 0)
        self.assertIsNone(line["check"])
        self.assertIn("speed_ratio", line)
        self.assertNotIn("--check", commands)

    def test_cases_by_pattern_and_number_of_gpus(self):
        names = list(several_gpus.CASES)
        self.assertEqual(several_gpus.find(["*"], 2), [(name, 2) for name in names])
        self.assertEqual(several_gpus.find(["cuda-x4/alexnet-*", "resnet101-*"], 8),
                         [("alexnet-train-b512-fp16", 4), ("resnet101-train-b128-fp16", 8)])
        for wrong in ("cuda/alexnet-*", "cuda-x2/lenet*", "vgg"):
            with self.assertRaises(KeyError):
                several_gpus.find([wrong], 2)


if __name__ == "__main__":
    unittest.main()
