"""What bad input gets: one line that names the file and the fault, an exit code, and nothing left behind."""

import os
import unittest

from program import ProgramTest, idx


class BadInputTest(ProgramTest):
    def refuses_training(self, code, *parts, words=()):
        self.refuses(["train", self.recipe, "--out", self.root / "run", *words], code, *parts)
        self.assertFalse((self.root / "run").exists())

    def change(self, old, new):
        self.recipe.write_text(self.recipe.read_text().replace(old, new))

    def test_recipes(self):
        self.refuses_training(2, "optimizer.learning_rat", "learning_rate", words=["--set", "optimizer.learning_rat=1"])
        self.refuses_training(2, "epochs", words=["--set", "train.epochs=many"])
        self.refuses(["train", self.root / "tinny.toml", "--out", self.root / "run"], 5, "tinny.toml")
        self.change("batch = 16", "bacth = 16")
        self.refuses_training(2, "tiny.toml", "bacth", "batch")
        self.change("bacth = 16", "batch = = 16")
        self.refuses_training(2, "tiny.toml")

    def test_names(self):
        self.refuses_training(2, "mpl", "mlp", words=["--set", "model.name=mpl"])
        self.refuses_training(2, "sdg", "sgd", words=["--set", "optimizer.name=sdg"])
        self.refuses_training(2, "cpo", "cpu", words=["--device", "cpo"])

    def test_data(self):
        self.refuses_training(5, "nowhere", words=["--set", f"data.path={self.root / 'nowhere'}"])
        self.refuses_training(2, "[6, 6, 1]", words=["--set", "data.image_size=28"])
        labels = self.data / "train-labels-idx1-ubyte"
        whole = labels.read_bytes()
        labels.write_bytes(whole[:50])
        self.refuses_training(4, labels)
        labels.write_bytes(b"\x12\x34" + whole[2:])
        self.refuses_training(4, labels)
        labels.unlink()
        self.refuses_training(5, "train-labels-idx1-ubyte")
        labels.write_bytes(whole)
        (self.data / "t10k-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b broken")
        self.refuses_training(4, "t10k-images-idx3-ubyte.gz")

    def test_data_that_does_not_fit_together(self):
        labels = self.data / "train-labels-idx1-ubyte"
        whole = labels.read_bytes()
        labels.write_bytes(idx((99,), whole[8:107]))
        self.refuses_training(4, labels, "99", "100")
        labels.write_bytes(idx((100,), [7] * 100))
        self.refuses_training(2, self.data, "8 classes", "data.classes")
        labels.write_bytes(idx((2**32 - 1,), whole[8:]))
        self.refuses_training(4, labels)
        labels.write_bytes(b"")
        self.refuses_training(4, labels)
        labels.write_bytes(whole)
        images = self.data / "train-images-idx3-ubyte"
        images.write_bytes(idx((2**31, 2**31, 2**31), b""))
        self.refuses_training(4, images)
        images.write_bytes(images.read_bytes() + b"x")
        self.refuses_training(4, images)

    def test_weights(self):
        self.train("first", "--quiet", "--set", "train.epochs=1")
        weights = self.root / "weights.safetensors"
        whole = (self.root / "first" / "model.safetensors").read_bytes()
        words = ["--set", f"model.weights={weights}"]
        self.refuses_training(5, weights, words=words)
        header = int.from_bytes(whole[:8], "little")
        for damaged in (whole[:-1], whole[:100], whole[:5], b"", whole[:8] + b"x" + whole[9:], b"\xff" * 8 + whole[8:],
                        whole[:8].replace(whole[:1], bytes([header % 256 - 8])) + whole[8:]):
            weights.write_bytes(damaged)
            self.refuses_training(4, weights, words=words)
        weights.write_bytes(whole)
        self.refuses_training(4, weights, "fc1.", "[13", "[12", words=[*words, "--set", "model.hidden=[13]"])
        self.refuses_training(4, weights, "fc2.weight", words=[*words, "--set", "model.hidden=[12, 12]"])

    def test_finished_runs(self):
        self.train("run", "--quiet", "--set", "train.epochs=1")
        out = self.root / "run"
        for name in ("model.safetensors", "recipe.toml"):
            whole = (out / name).read_bytes()
            (out / name).write_bytes(whole[:-40] + b"\0\xff\"")
            for command in ("eval", "predict"):
                self.refuses([command, out], 4 if name.startswith("model") else 2, out / name)
            (out / name).unlink()
            for command in ("eval", "predict"):
                self.refuses([command, out], 5, out / name)
            (out / name).write_bytes(whole)
        self.refuses(["predict", out, "--count", 0], 2, "--count")
        self.refuses(["predict", out, "--count", "-1"], 2, "--count")

    def test_out(self):
        (self.root / "run").write_text("a file")
        self.refuses(["train", self.recipe, "--out", self.root / "run"], 5, self.root / "run")
        self.refuses(["train", self.recipe, "--out", self.root / "run" / "below"], 5, self.root / "run")
        self.refuses(["train", self.recipe, "--out", "/proc/nowhere/run"], 5, "/proc/nowhere")
        self.refuses(["train", self.recipe, "--out", self.root / "none", "--resume"], 5, "no checkpoint")
        if os.getuid() != 0:
            locked = self.root / "locked"
            locked.mkdir(mode=0o500)
            self.refuses(["train", self.recipe, "--out", locked / "run"], 5, locked)

    def test_checkpoints(self):
        self.train("run", "--max-steps", 2, "--quiet")
        last = self.root / "run" / "checkpoints" / "last.safetensors"
        whole = last.read_bytes()
        again = ["train", self.recipe, "--out", self.root / "run", "--resume"]
        self.refuses([*again, "--set", "train.batch=8"], 2, last, "train.batch", "16", "8")
        self.refuses([*again, "--set", "model.hidden=[13]"], 4, last, "fc1.")
        self.refuses([*again, "--set", "optimizer.name=adam"], 4, last, "optimizer", "adam")
        last.write_bytes(whole[: len(whole) // 2])
        self.refuses(again, 4, last)
        self.refuses(["eval", self.root / "run"], 5, "model.safetensors")
        self.refuses(["eval", self.root / "nothing"], 5, "nothing")

    def test_a_loss_that_is_not_finite(self):
        message = self.train("run", "--quiet", "--set", "optimizer.learning_rate=1e38", code=8)
        self.assertIn("step ", message)
        self.assertFalse((self.root / "run" / "model.safetensors").exists())

    def test_devices_that_do_not_run(self):
        self.refuses_training(2, "null", words=["--device", "null"])
        self.refuses_training(7, "cuda", words=["--device", "cuda:99"])


if __name__ == "__main__":
    unittest.main()
