"""bench/recipes, with a stand-in for the program."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tessera_bench import machine, recipes  # noqa: E402

PROGRAM = """#!/bin/sh
mkdir "$4"
echo '%s' > "$4/summary.json"
"""


class RecipesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def recipes(self, numbers, *names, program=PROGRAM):
        """(exit status, stdout, the JSON lines)"""
        path, results, out = self.root / "tessera", self.root / "results.jsonl", io.StringIO()
        path.write_text(program % json.dumps(numbers | {"versions": {}}) if "%s" in program else program)
        path.chmod(0o755)
        with contextlib.redirect_stdout(out):
            status = recipes.main([*names, "--program", str(path), "--results", str(results)])
        lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
        return status, out.getvalue(), lines

    def test_what_is_reached_is_recorded(self):
        status, out, lines = self.recipes({"test_auc": 0.99, "test_loss": 0.1, "epochs": 3}, "flights")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^cpu/flights test_auc 0\.9900 \(at least 0\.\d+\), 0\.0\d minutes of each of \d threads \(at most 3\): ok\n$")
        self.assertEqual((lines[0]["case"], lines[0]["bounds"][0]["reached"], lines[0]["ok"]), ("cpu/flights", 0.99, True))
        self.assertEqual(lines[0]["numbers"], {"test_auc": 0.99, "test_loss": 0.1})

    def test_too_little_fails_and_is_recorded(self):
        status, out, lines = self.recipes({"test_auc": 0.5}, "flights")
        self.assertEqual((status, lines[0]["ok"]), (1, False))
        self.assertIn("MISSED", out)

    def test_every_number_counts_and_of_a_distance_less_is_better(self):
        self.assertEqual(self.recipes({"test_mean_distance": 0.01, "test_spread": 0.95}, "gan")[0], 0)
        self.assertEqual(self.recipes({"test_mean_distance": 0.9, "test_spread": 0.95}, "gan")[0], 1)
        self.assertEqual(self.recipes({"test_mean_distance": 0.01, "test_spread": 0.01}, "gan")[0], 1)

    def test_examples_are_made_for_those_who_read_them(self):
        make = mock.Mock()
        with mock.patch.dict(recipes.MADE, texts=make):
            self.assertEqual(self.recipes({"test_auc": 0.99}, "flights")[0], 0)
            make.assert_not_called()
            self.assertEqual(self.recipes({"test_accuracy": 0.9}, "topics")[0], 0)
            make.assert_called_once()

    def test_too_slow_fails(self):
        slow = {"flights": recipes.Stated(0, (recipes.Bound("test_auc", 0.5),))}
        with mock.patch.object(recipes, "STATED", slow):
            self.assertEqual(self.recipes({"test_auc": 0.99}, "flights")[0], 1)

    def test_a_program_that_fails_fails(self):
        status, out, lines = self.recipes({}, "flights", program="#!/bin/sh\nexit 5\n")
        self.assertEqual((status, out, lines), (1, "cpu/flights failed with status 5\n", []))

    def test_one_is_held_against_itself_as_it_stands(self):
        # 0.3 points are allowed.
        program = """#!/bin/sh
mkdir "$4"
case "$*" in *data.kind=image_folder*) reached=%s;; *) reached=0.9;; esac
echo "{\\"test_accuracy\\": $reached, \\"versions\\": {}}" > "$4/summary.json"
"""
        for reached, status in (("0.8971", 0), ("0.8969", 1)):
            with mock.patch.dict(recipes.MADE, jpeg=mock.Mock()):
                found, _, lines = self.recipes({}, "lenet_jpeg", program=program.replace("%s", reached))
            self.assertEqual(found, status)
            self.assertAlmostEqual(lines[-1]["bounds"][0]["value"], 0.897)
            self.assertEqual(lines[-1]["each"], {"reached": [float(reached)] * 3, "beside": [0.9] * 3})

    def test_one_is_held_against_another(self):
        program = """#!/bin/sh
mkdir "$4"
case "$*" in
  *folder-fast.toml*data.path=*) reached=%s epochs=5;;
  *lenet.toml*model.name=resnet_small*) reached=0.9 epochs=10;;
esac
echo "{\\"test_accuracy\\": $reached, \\"epochs\\": $epochs, \\"versions\\": {}}" > "$4/summary.json"
"""
        for reached, status in (("0.8971", 0), ("0.8969", 1)):
            with mock.patch.dict(recipes.MADE, jpeg=mock.Mock()):
                found, _, lines = self.recipes({}, "folder-fast", program=program.replace("%s", reached))
            self.assertEqual(found, status)
            self.assertEqual(lines[-1]["epochs"], {"reached": 5, "beside": 10})
            self.assertEqual(lines[-1]["beside"]["recipe"], "lenet")

    def test_stated_are_recipes(self):
        for name, stated in recipes.STATED.items():
            recipe = stated.beside.recipe if stated.beside else name
            self.assertTrue((machine.ROOT / "recipes" / f"{recipe}.toml").exists(), name)


if __name__ == "__main__":
    unittest.main()
