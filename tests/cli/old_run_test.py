"""A run that an earlier version began and stopped: its recipe and checkpoint go on here (tests/cli/old_run/README.md)."""

import json
import shutil
import unittest

from program import ROOT, ProgramTest, checkpoint

OLD = ROOT / "tests/cli/old_run"


class OldRunTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.run_folder = self.root / "run"
        (self.run_folder / "checkpoints").mkdir(parents=True)
        shutil.copy(OLD / "recipe.toml", self.run_folder)
        shutil.copy(OLD / "last.safetensors", self.run_folder / "checkpoints")

    def resume(self, *words):
        return ["train", self.run_folder / "recipe.toml", "--out", self.run_folder, "--resume", "--quiet",
                "--set", f"data.path={self.data}", *words]

    def test_goes_on_to_what_it_reached(self):
        began = int(checkpoint(OLD / "last.safetensors")[0]["step"])
        told = self.call(*self.resume("--max-steps", began + 1))
        self.assertIn(f"stopped after step {began + 1} ", told)
        self.call(*self.resume())
        expected, summary = (json.loads((folder / "summary.json").read_text()) for folder in (OLD, self.run_folder))
        self.assertEqual(summary["epochs"], expected["epochs"])
        for number in ("test_accuracy", "test_loss"):
            # Sums in another order since then, over some steps; a run that lost its state would be off by tenths.
            self.assertAlmostEqual(summary[number], expected[number], places=3)

    def test_a_changed_shape_is_refused(self):
        self.refuses(self.resume("--set", "model.hidden=[13]"), 4, "last.safetensors", "fc1.")


if __name__ == "__main__":
    unittest.main()
