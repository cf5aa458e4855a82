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

    def test_the_stages_of_making_batches_are_timed(self):
        times = json.loads(self.call("data", "bench", self.sounds, "--batch", 4, "--iterations", 2, "--json"))
        self.assertEqual(set(times["stages"]), {"read", "decode", "resample"})
        self.assertEqual(len(times["milliseconds"]), 2)
        # From 8,000 samples a second to 16,000 and to as many.
        self.assertEqual(times["limited_by"], max(times["stages"], key=lambda name: -times["stages"][name]))
        same = json.loads(self.call("data", "bench", self.sounds, "--batch", 4, "--rate", 8000, "--json"))
        self.assertGreater(same["stages"]["resample"], times["stages"]["resample"])
        self.assertIn("sounds/s", self.call("data", "bench", self.sounds, "--batch", 4, "--threads", 2))
        for option in (["--normalize"], ["--device", "reference"]):
            self.refuses(["data", "bench", self.sounds, *option], 2, "--normalize, --cache and --device are of images")

    def test_shards_hold_what_their_folder_held(self):
        shards = self.root / "shards"
        (self.sounds / "low/broken.wav").write_bytes(b"RIFF")
        told = self.call("data", "pack", self.sounds, "-o", shards)
        self.assertIn("61 sounds of 2 classes", told)
        self.assertIn("1 of them from before", self.call("data", "pack", self.sounds, "-o", shards))
        before, after = (json.loads(self.call("data", "inspect", folder, "--json"))["all"] for folder in (self.sounds, shards))
        self.assertEqual([len(found.pop("broken")) for found in (before, after)], [1, 1])
        self.assertEqual(before, after)
        recipe = self.root / "sounds.toml"
        recipe.write_text(RECIPE.format(path=shards))
        self.call("train", recipe, "--out", self.root / "run", "--quiet", "--set", "train.epochs=1", "--set", "data.broken=skip")
        archive = shards / "shard-000000.tar"
        archive.write_bytes(archive.read_bytes()[:-1] + b"x")
        self.assertIn("checksum", self.call("data", "inspect", shards))

    def test_what_is_said_in_sounds_is_told(self):
        spoken = self.root / "spoken"
        spoken.mkdir()
        lines = []
        for number, file in enumerate(sorted(self.sounds.rglob("*.wav"))[:6]):
            file.rename(spoken / file.name)
            seconds = 2 if number == 5 else (4000 + 100 * (int(file.stem) % 9)) / 8000
            lines.append(json.dumps({"audio": file.name, "text": "" if number == 0 else "été à", "duration": seconds}))
        (spoken / "all.jsonl").write_text("\n".join(lines))
        found = json.loads(self.call("data", "inspect", spoken, "--json"))["all"]
        self.assertEqual((found["sounds"], found["transcripts"], found["empty_transcripts"], found["words"]), (6, 5, 1, 8))
        self.assertEqual(found["characters"], sorted({*"été à"}))
        self.assertEqual(len(found["broken"]), 1)
        self.assertIn("2.00 by its list", found["broken"][0])
        self.assertIn("5 have transcripts, of 8 words and 4 different characters; 1 of them are empty", self.call("data", "inspect", spoken))
        shards = self.root / "shards"
        self.call("data", "pack", spoken, "-o", shards)
        packed = json.loads(self.call("data", "inspect", shards, "--json"))["all"]
        self.assertEqual((packed["transcripts"], packed["words"], packed["broken"]), (6, 10, []))
        self.call("data", "show", shards, "-o", self.root / "page.html", "--count", 6)
        self.assertIn("été à, 0.", (self.root / "page.html").read_text())
        recipe = self.root / "sounds.toml"
        recipe.write_text(RECIPE.format(path=shards))
        self.refuses(["train", recipe, "--out", self.root / "run"], 4, "transcripts and no class")

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
