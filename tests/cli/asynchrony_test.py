"""Two ranks that wait less for each other learn Fashion-MNIST as well as two that do everything together."""

import json
import os
import pathlib
import unittest

from program import ROOT, ProgramTest

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
# A network and a rate that three epochs suffice for: all reach about 85.6 %.
SETTINGS = ("model.hidden=[128]", "model.dropout=0", "optimizer.name=sgd", "optimizer.learning_rate=0.05", "optimizer.momentum=0.5",
            "optimizer.weight_decay=1e-4", "train.epochs=3", "train.evaluate_every=0", "train.device=cpu", "train.threads=1", f"data.path={DATA}")


class AsynchronyTest(ProgramTest):
    def accuracy(self, name, *settings):
        changes = [word for setting in (*SETTINGS, *settings) for word in ("--set", setting)]
        self.call("launch", "--ranks", 2, "--", "train", ROOT / "recipes" / "mlp.toml", "--out", self.root / name, "--quiet", *changes)
        return json.loads((self.root / name / "summary.json").read_text())["test_accuracy"]

    @unittest.skipIf(os.environ.get("TESSERA_SANITIZE"), "minutes, of what the tests of the trainer run there too")
    def test_all_reach_the_same(self):
        if not DATA.exists():
            self.skipTest(f"no data in {DATA}")
        together = self.accuracy("together")
        self.assertGreater(together, 0.85)
        for name, setting in (("delayed", "train.gradient_delay=1"), ("local", "train.local_steps=4")):
            # Of 10,000 images; seeds differ by a fifth of a point.
            self.assertAlmostEqual(self.accuracy(name, setting), together, delta=0.005, msg=name)
            self.assertNotEqual((self.root / name / "model.safetensors").read_bytes(),
                                (self.root / "together" / "model.safetensors").read_bytes())

    def test_a_run_goes_on_with_other_ranks_and_says_what_changed(self):
        for setting in ("train.gradient_delay=1", "train.local_steps=3"):
            out = self.root / setting.replace("=", "-")
            words = ("train", self.recipe, "--out", out, "--quiet", "--set", setting)
            self.call("launch", "--ranks", 2, "--", *words, "--max-steps", 6)
            self.refuses([*words[:-2], "--resume"], 2, setting.replace("=", " = "), "--set")
            self.call(*words, "--resume", "--max-steps", 11)
            self.call("launch", "--ranks", 4, "--", *words, "--resume")
            self.assertEqual(json.loads((out / "summary.json").read_text())["epochs"], 4)

    def test_what_waits_for_other_ranks_is_refused_in_local_steps(self):
        words = ("launch", "--ranks", 2, "--", "train", self.recipe, "--out", self.root / "run", "--set", "train.local_steps=2")
        for other in ("train.gradient_delay=1", "train.batch_norm_ranks=0", "train.shard_optimizer=true"):
            self.refuses([*words, "--set", other], 2, "local_steps", other.partition("=")[0].partition(".")[2])


if __name__ == "__main__":
    unittest.main()
