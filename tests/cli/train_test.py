"""Training from the shell: train, eval, predict, stop, resume, and what bad input gets."""

import json
import os
import signal
import time
import unittest

from program import ProgramTest, tree


class TrainTest(ProgramTest):
    def test_train_eval_predict(self):
        self.assertIn("test accuracy", self.train("run"))
        out = self.root / "run"
        names = set(tree(out))
        for name in ("recipe.toml", "model.safetensors", "summary.json", "report.html",
                     "checkpoints/last.safetensors", "checkpoints/best.safetensors"):
            self.assertIn(name, names)
        self.assertTrue(any(name.startswith("events.out.tfevents.") for name in names))
        self.assertFalse([name for name in names if "partial" in name])
        summary = json.loads((out / "summary.json").read_text())
        self.assertEqual((summary["network"], summary["epochs"], summary["device"]), ("mlp", 4, "cpu"))
        self.assertGreater(summary["test_accuracy"], 0.8)

        result = json.loads(self.call("eval", out, "--json"))
        self.assertEqual(result["images"], 40)
        self.assertAlmostEqual(result["accuracy"], summary["test_accuracy"])
        self.assertIn("40 images", self.call("eval", out))
        self.assertAlmostEqual(json.loads(self.call("eval", out, "--json", "--device", "reference"))["loss"],
                               result["loss"], places=4)
        self.assertIn("of 3 right", self.call("predict", out, "--count", 3))
        # A second training does not write over the first.
        self.refuses(["train", self.recipe, "--out", out], 5, "holds a run already", "--resume")

    def test_the_same_recipe_gives_the_same_bytes(self):
        self.train("first", "--quiet")
        self.train("second", "--quiet")
        self.assertEqual(self.weights("first"), self.weights("second"))

    def test_stop_and_resume_gives_the_same_bytes(self):
        self.train("straight", "--quiet")
        for steps in (1, 6, 13):  # six steps an epoch
            out = f"stopped{steps}"
            told = self.train(out, "--max-steps", steps, "--quiet")
            self.assertIn(f"stopped after step {steps} ", told)
            command = told.split("Go on with:")[1].split()
            self.assertEqual(command[:2], ["tessera", "train"])
            self.assertFalse((self.root / out / "summary.json").exists())
            self.call(*command[1:], "--quiet")
            self.assertEqual(self.weights(out), self.weights("straight"))
            self.assertTrue((self.root / out / "report.html").exists())

    def test_signals_stop_and_resume_gives_the_same_bytes(self):
        words = ("--set", "train.epochs=400", "--set", "train.checkpoint_every=0", "--set", "train.evaluate_every=0")
        self.train("straight", "--quiet", *words)
        for number in (signal.SIGINT, signal.SIGTERM):
            out = self.root / f"run{number}"
            process = self.start("train", self.recipe, "--out", out, "--quiet", *words)
            while not any(out.glob("events.out.tfevents.*")):  # the run has begun
                self.assertIsNone(process.poll())
                time.sleep(0.002)
            time.sleep(0.05)
            process.send_signal(number)
            output, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, output + errors)
            self.assertIn("--resume", output)
            self.assertFalse((out / "model.safetensors").exists())
            self.call(*output.split("Go on with:")[1].split()[1:], "--quiet")
            self.assertEqual(self.weights(out), self.weights("straight"))

    def test_a_finished_run_resumes_to_itself(self):
        self.train("run", "--quiet")
        before = self.weights("run")
        self.train("run", "--resume", "--quiet")
        self.assertEqual(self.weights("run"), before)

    def test_weights_start_another_run(self):
        self.train("first", "--quiet")
        self.train("second", "--quiet", "--set", f"model.weights={self.root / 'first' / 'model.safetensors'}",
                   "--set", "optimizer.learning_rate=1e-9", "--set", "train.epochs=1")
        first, second = (json.loads(self.call("eval", self.root / name, "--json")) for name in ("first", "second"))
        self.assertAlmostEqual(first["loss"], second["loss"], places=4)


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

    def test_out(self):
        (self.root / "run").write_text("a file")
        self.refuses(["train", self.recipe, "--out", self.root / "run"], 5, self.root / "run")
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
        self.refuses_training(7, "null", words=["--device", "null"])


if __name__ == "__main__":
    unittest.main()
