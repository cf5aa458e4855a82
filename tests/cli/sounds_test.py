"""Sounds in files: what `tessera data` says of them, and training, evaluation and prediction from them."""

import json
import unittest

from program import ProgramTest
from task_data import write_sounds

RECIPE = """
[task]
name = "sound_classification"

[model]
classes = 2
widths = [16, 16]
bands = 20
window = 200
transform = 256

[data]
path = "{path}"
rate = 8000
hop = 80
seconds = [0.5, 1]
test_share = 0.2

[train]
epochs = 4
batch = 8
device = "cpu"

[optimizer]
name = "adam"
learning_rate = 0.005
"""


class SoundsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.sounds = self.root / "sounds"
        write_sounds(self.sounds)

    def test_what_is_in_a_folder_is_told(self):
        (self.sounds / "low/broken.wav").write_bytes(b"RIFF")
        found = json.loads(self.call("data", "inspect", self.sounds, "--json"))["all"]
        self.assertEqual((found["sounds"], found["classes"]), (61, {"high": 30, "low": 30}))
        self.assertEqual((found["formats"], found["rates"]), ({"WAV": 60}, {"8000": 60}))
        self.assertEqual(found["seconds"], [0.5, 0.55, 0.6])
        self.assertEqual(len(found["broken"]), 1)
        self.assertIn("broken.wav: is no sound", found["broken"][0])
        told = self.call("data", "inspect", self.sounds)
        self.assertIn("61 sounds of 2 classes, 0.5 minutes", told)
        self.call("data", "show", self.sounds, "-o", self.root / "page.html", "--count", 4)
        page = (self.root / "page.html").read_text()
        self.assertIn("4 of 61 sounds", page)
        self.assertEqual(page.count("data:image"), 4)
        self.refuses(["data", "pack", self.sounds, "-o", self.root / "shards"], 7, "holds sounds")

    def test_a_network_learns_to_tell_them_apart(self):
        recipe = self.root / "sounds.toml"
        recipe.write_text(RECIPE.format(path=self.sounds))
        run = self.root / "run"
        self.call("train", recipe, "--out", run, "--quiet")
        # 12 test sounds, high and low tones.
        self.assertGreater(json.loads((run / "summary.json").read_text())["test_accuracy"], 0.9)
        self.assertIn("12", self.call("eval", run))
        told = self.call("predict", run, self.sounds / "high/0.wav", self.sounds / "low/1.wav")
        self.assertRegex(told, r"high/0\.wav: high \([0-9.]+ %\)")
        self.assertRegex(told, r"low/1\.wav: low \([0-9.]+ %\)")
        self.refuses(["train", recipe, "--out", self.root / "other", "--set", "model.transform=100"], 2, "a window of 200")
        self.refuses(["train", recipe, "--out", self.root / "other", "--set", "model.classes=1"], 2, "of 2 classes")


if __name__ == "__main__":
    unittest.main()
