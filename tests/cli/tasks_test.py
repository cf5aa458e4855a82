"""The tasks that are no image classification: their recipes and the example programs, on small data."""

import json
import os
import random
import struct
import subprocess
import time
import unittest
import zipfile
from pathlib import Path

from program import PROGRAM, ROOT, ProgramTest, checkpoint, npy
from task_data import write_pictures, write_table, write_texts

RECIPES = {"flights": "table.csv", "fortunes": "texts", "gan": "pictures", "transformer_xl": "texts"}


class TasksTest(ProgramTest):
    def setUp(self):
        super().setUp()
        write_table(self.root / "table.csv")
        write_texts(self.root / "texts")
        write_pictures(self.root / "pictures")

    def words_of_recipe(self, name, out, *words):
        return ["train", ROOT / "recipes" / f"{name}.toml", "--out", self.root / out, "--quiet",
                "--set", f"data.path={self.root / RECIPES[name]}", "--set", "train.device=cpu",
                "--set", "train.epochs=1", *words]

    def train_recipe(self, name, out, *words):
        self.call(*self.words_of_recipe(name, out, *words))
        return self.root / out

    def test_recipes_train_and_resume_to_the_same_bytes(self):
        for name, number in (("flights", "auc"), ("fortunes", "masked_accuracy"), ("gan", "mean_distance"),
                             ("transformer_xl", "bits_per_character")):
            straight = self.train_recipe(name, f"{name}-straight")
            summary = json.loads((straight / "summary.json").read_text())
            self.assertIn(f"test_{number}", summary)
            stopped = self.train_recipe(name, f"{name}-stopped", "--max-steps", 3)
            self.assertFalse((stopped / "summary.json").exists())
            self.call("train", stopped / "recipe.toml", "--out", stopped, "--resume", "--quiet")
            tensors = [checkpoint(run / "checkpoints/last.safetensors")[1] for run in (stopped, straight)]
            self.assertEqual(tensors[0], tensors[1], name)
            self.assertIn(f"test_{number}", json.loads((stopped / "summary.json").read_text()))

    def test_recipes_that_are_killed_go_on_to_the_same_bytes(self):
        for name in ("flights", "gan"):
            often = ("--set", "train.batch=16", "--set", "train.checkpoint_steps=1")
            straight = self.train_recipe(name, f"{name}-straight", *often)
            killed = self.root / f"{name}-killed"
            last = killed / "checkpoints/last.safetensors"
            process = self.start(*self.words_of_recipe(name, killed.name, *often))
            self.addCleanup(process.communicate)
            while process.poll() is None and not last.exists():
                time.sleep(0.001)
            process.kill()
            self.assertEqual(process.wait(), -9, name)
            self.assertLess(int(checkpoint(last)[0]["step"]), int(checkpoint(straight / "checkpoints/last.safetensors")[0]["step"]))
            self.call("train", killed / "recipe.toml", "--out", killed, "--resume", "--quiet")
            tensors = [checkpoint(run / "checkpoints/last.safetensors")[1] for run in (killed, straight)]
            self.assertEqual(tensors[0], tensors[1], name)

    def test_balanced_rows_resume_to_the_same_bytes(self):
        balanced = ("--set", "data.balanced=true")
        straight = self.train_recipe("flights", "straight", *balanced)
        stopped = self.train_recipe("flights", "stopped", *balanced, "--max-steps", 3)
        self.call("train", stopped / "recipe.toml", "--out", stopped, "--resume", "--quiet")
        others = self.train_recipe("flights", "others")
        tensors = [checkpoint(run / "checkpoints/last.safetensors")[1] for run in (straight, stopped, others)]
        self.assertEqual(tensors[0], tensors[1])
        self.assertNotEqual(tensors[0], tensors[2])
        self.refuses(["train", ROOT / "recipes/flights.toml", "--out", self.root / "run", *balanced,
                      "--set", "data.shuffle=false"], 2, "'data.balanced'", "random order")

    def test_arrays_of_numpy_are_a_table(self):
        source = random.Random(1)
        hours = [source.randrange(24) for _ in range(600)]
        columns = {"hour": struct.pack("<600i", *hours), "distance": struct.pack("<600i", *reversed(hours)),
                   "late": struct.pack("<600i", *(hour > 12 for hour in hours))}
        with zipfile.ZipFile(self.root / "flights.npz", "w", zipfile.ZIP_DEFLATED) as file:
            for name, data in columns.items():
                file.writestr(f"{name}.npy", npy((600,), data, "<i4"))
        table = ["--set", "data.kind=npz", "--set", f"data.path={self.root / 'flights.npz'}", "--set", "data.categories=['hour']",
                 "--set", "data.numbers=['distance']", "--set", "data.above=0", "--set", "train.batch=32", "--set", "train.device=cpu",
                 "--set", "train.epochs=10", "--quiet"]
        run = self.root / "run"
        self.call("train", ROOT / "recipes/flights.toml", "--out", run, *table, "--set", "data.label=late")
        self.assertGreater(json.loads((run / "summary.json").read_text())["test_auc"], 0.95)
        self.refuses(["train", ROOT / "recipes/flights.toml", "--out", self.root / "other", *table, "--set", "data.label=lat"], 2, "did you mean 'late'")

    def test_eval_of_what_is_trained_in_phases(self):
        gan = self.train_recipe("gan", "gan")
        summary = json.loads((gan / "summary.json").read_text())
        # The same weights and noise on the same device: the same number.
        self.assertEqual(json.loads(self.call("eval", gan, "--json"))["spread"], summary["test_spread"])

    def test_predictions_of_what_each_serves(self):
        rates = r"(?s)^row 0: \d+\.\d %, and it (happened|did not happen)\n.*\d of 3 on the right side of 50 %\n$"
        texts = r"(?s)^row 0:\n  [ a-z_]+\n  .*\nrow 2:\n.*\n\d+ of \d+ gaps filled with what was there\n$"
        pictures = r"(?s)^(  .{28}\n){14}sample 0\n\n.*sample 2\n\n$"
        for name, told, served, numbers in (("flights", rates, r"probabilities: fp32\[7\]", 7),
                                   ("fortunes", texts, r"logits: fp32\[7, 64, 257\]", 7 * 64 * 257),
                                   ("gan", pictures, r"samples: fp32\[7, 28, 28, 1\]", 7 * 28 * 28)):
            run = self.train_recipe(name, name, "--set", "train.batch=32")
            self.assertRegex(self.call("predict", run, "--count", 3), told)
            file = self.root / f"{name}.safetensors"
            self.assertRegex(self.call("predict", run, "--count", 7, "--out", file), f"^{served}\n$")
            self.assertEqual(len(checkpoint(file)[1]), 4 * numbers)
            self.assertGreater(len(set(checkpoint(file)[1])), 1)  # not one number alone

    def test_what_recipes_of_tables_refuse(self):
        recipe = ROOT / "recipes/flights.toml"
        words = ["train", recipe, "--out", self.root / "refused", "--set", f"data.path={self.root / 'table.csv'}"]
        self.refuses([*words, "--set", "data.label=arr_dely"], 2, "there is no column 'arr_dely'", "'arr_delay'")
        self.refuses([*words, "--set", "data.label=hour"], 2, "the column 'hour' is asked for twice")
        self.refuses([*words, "--set", "data.label=carrier", "--set", "data.categories=['hour']"], 4, "no row has a number as 'carrier'")
        self.refuses([*words, "--set", "data.categories=[]"], 2, "'data.categories' names no column")
        self.refuses([*words, "--set", "optimizer.name=lamb"], 2, "updated by rows", "lamb")
        self.assertFalse((self.root / "refused").exists())

    def test_examples_train_and_go_on_where_they_were(self):
        programs = Path(PROGRAM).parent
        expected = {"train_flights": ("table.csv", "area under the curve 0."), "train_fortunes": ("texts", "masked "),
                    "train_gan": ("pictures", "distance of the means 0.")}
        for name, (data, said) in expected.items():
            environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
            command = [programs / name, self.root / data, self.root / name]
            first, second = (subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
                             for _ in range(2))
            self.assertTrue(first.startswith(said), first)
            self.assertEqual(first, second)  # nothing was left to do

    def test_an_example_that_is_killed_goes_on_to_the_same_bytes(self):
        def command(folder):
            return [Path(PROGRAM).parent / "train_fortunes", self.root / "texts", self.root / folder]

        def last(folder):
            return self.root / folder / "last.safetensors"

        options = {"env": {**os.environ, "OMP_WAIT_POLICY": "passive"}, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(command("straight"), check=True, **options)
        for attempt in range(20):  # on a busy machine one may end before it is seen to have saved
            process = subprocess.Popen(command(f"killed{attempt}"), **options)
            while process.poll() is None and not last(f"killed{attempt}").exists():
                time.sleep(0.001)
            process.kill()
            if process.wait() != 0:
                break
        before = checkpoint(last(f"killed{attempt}"))[0]
        self.assertEqual((process.returncode, before["epoch"]), (-9, "1"))
        subprocess.run(command(f"killed{attempt}"), check=True, **options)
        after, tensors = checkpoint(last(f"killed{attempt}"))
        self.assertEqual(tensors, checkpoint(last("straight"))[1])
        # It did not begin anew: the first epoch is the killed run's, to its seconds.
        first, went_on = (json.loads(metadata["history"])["epochs"] for metadata in (before, after))
        self.assertEqual((went_on[0], len(went_on)), (first[0], 2))

    def test_examples_are_short(self):
        for path in (ROOT / "examples").glob("*.cpp"):
            self.assertLessEqual(len(path.read_text().splitlines()), 60, path)


if __name__ == "__main__":
    unittest.main()
