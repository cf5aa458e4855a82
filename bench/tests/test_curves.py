"""bench/curves: against stand-ins, and Tessera's own steps against losses that PyTorch gave."""

import contextlib
import io
import json
import math
import os
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tessera_bench import curves, peer, picture  # noqa: E402

TORCH = """#!/bin/sh
echo '{"losses": %s, "versions": {"torch": "2"}}'
"""
PROGRAM = """#!/bin/sh
case "$*" in
  doctor*) echo '{"version": "0.1", "devices": []}' ;;
  *) echo '{"losses": %s}' ;;
esac
"""
SMALL = ("--model", "mlp", "--device", "cpu", "--batch", "4", "--batches", "2", "--steps", "3", "--learning-rate", "0.05")
# Of PyTorch 2.15 on a CPU, with the settings of SMALL.
LOSSES = [1.3816028833389282, 2.794553518295288, 0.021963009610772133]


class CurvesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def script(self, name, text):
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def curves(self, program, python, *arguments):
        """(exit status, stdout, the JSON line)"""
        out, results = io.StringIO(), self.root / "results.jsonl"
        words = [*SMALL, "--program", program, "--python", python, "--results", results, *arguments]
        with contextlib.redirect_stdout(out):
            status = curves.main([str(word) for word in words])
        return status, out.getvalue(), json.loads(results.read_text().splitlines()[-1])

    def stand_ins(self, mine, theirs, *arguments):
        return self.curves(self.script("tessera", PROGRAM % json.dumps(mine)), self.script("python", TORCH % json.dumps(theirs)), *arguments)

    def test_the_largest_difference_of_any_step_is_found(self):
        status, out, record = self.stand_ins([4, 2, 1.0005], [4, 2, 1], "--precisions", "fp32,bf16")
        self.assertEqual(status, 0)
        self.assertIn("fp32 largest relative difference 5.0e-04, goal 1e-03 met; last losses 1.0005 and 1.0000\n", out)
        self.assertIn("bf16 largest relative difference 5.0e-04; last", out)
        self.assertEqual(record["curves"]["bf16"]["torch"], [4, 2, 1])
        self.assertEqual(record["versions"], {"tessera": {"tessera": "0.1"}, "torch-eager": {"torch": "2"}})
        self.assertEqual(record["settings"]["steps"], 3)
        self.assertLessEqual({"device", "commit", "machine", "time"}, record.keys())

    def test_only_fp32_has_a_goal(self):
        self.assertEqual(self.stand_ins([4, 2, 1.1], [4, 2, 1], "--precisions", "bf16")[0], 0)
        status, out, _ = self.stand_ins([4, 2, 1.1], [4, 2, 1], "--precisions", "fp32")
        self.assertEqual(status, 1)
        self.assertIn("MISSED", out)

    def test_failures_are_told_and_no_result(self):
        good = self.script("tessera", PROGRAM % LOSSES)
        broken = self.script("broken", "#!/bin/sh\necho 'no such thing' >&2\nexit 3\n")
        torch = self.script("python", TORCH % LOSSES)
        for program, python, words in ((broken, torch, "tessera: "), (good, broken, "torch: ")):
            status, out, record = self.curves(program, python, "--precisions", "fp16")
            self.assertEqual(status, 1)
            self.assertIn(f"fp16 error: {words}", out)
            self.assertIn("no such thing", record["curves"]["fp16"]["error"])
        self.assertIn("printed 2 losses, not 3", self.stand_ins([4, 2], [4, 2, 1])[1])
        status, out, _ = self.stand_ins([4, 2, math.nan], [4, 2, 1], "--precisions", "bf16")
        self.assertEqual(status, 1)
        self.assertIn("bf16 error: tessera: the loss of step 3 is not finite", out)

    def test_wrong_use(self):
        for words in (("--precisions", "fp17"), ("--steps", "0"), ("--image-size", "64"), ("--picture", "/nowhere/curves.svg")):
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()):
                curves.main([*SMALL, *words])
            self.assertEqual(ended.exception.code, 2)

    def test_the_picture_holds_a_panel_for_each_precision(self):
        drawing = self.root / "curves.svg"
        self.stand_ins([4, 2, 1], [4, 2, 1], "--precisions", "fp32,tf32,bf16", "--picture", drawing)
        svg = xml.etree.ElementTree.parse(drawing).getroot()
        lines = [element for element in svg if element.tag.endswith("polyline")]
        self.assertEqual(len(lines), 2 * 3)
        width, height = float(svg.get("width")), float(svg.get("height"))
        for element in lines:
            points = [tuple(map(float, point.split(","))) for point in element.get("points").split()]
            self.assertEqual(len(points), 3)
            self.assertEqual(points, sorted(points))  # to the right, and down as the loss falls
            self.assertTrue(all(0 < x < width and 0 < y < height for x, y in points))

    def test_a_picture_of_nothing(self):
        failed = {"curves": {"fp32": {"error": "x"}}, "settings": {"model": "a<b", "batch": 1}, "device": "cpu"}
        xml.etree.ElementTree.fromstring(picture.draw_record(failed))

    def test_ticks_are_round_and_inside(self):
        self.assertEqual(picture.ticks(0, 10), [0, 2, 4, 6, 8, 10])
        self.assertEqual(picture.ticks(1, 100), [20, 40, 60, 80, 100])
        self.assertEqual(len(picture.ticks(5.2, 7.4)), 4)

    @unittest.skipUnless("TESSERA_PROGRAM" in os.environ, "TESSERA_PROGRAM names no program")
    def test_our_losses_are_those_of_pytorch(self):
        torch = self.script("python", TORCH % LOSSES)
        status, out, record = self.curves(os.environ["TESSERA_PROGRAM"], torch, "--precisions", "fp32")
        self.assertEqual(status, 0, out)
        self.assertLess(record["curves"]["fp32"]["difference"], 1e-4)

    @unittest.skipUnless("TESSERA_PROGRAM" in os.environ and peer.PYTHON.exists(), "no bench/.venv: bench/setup makes it")
    def test_beside_pytorch_itself(self):
        python = self.script("python", f'#!/bin/sh\nexec {peer.PYTHON} "$@"\n')
        status, out, record = self.curves(os.environ["TESSERA_PROGRAM"], python, "--precisions", "fp32")
        self.assertEqual(status, 0, out)
        self.assertLess(curves.difference(record["curves"]["fp32"]["torch"], LOSSES), 1e-4)


if __name__ == "__main__":
    unittest.main()
