"""Training from the shell: train, eval, predict, stop, resume."""

import json
import signal
import time
import unittest

from program import ProgramTest, tree


class TrainTest(ProgramTest):
    def test_train_eval_predict(self):
        self.assertRegex(self.train("run"), r"(?s)^memory: .* parameters and states.*test accuracy")
        out = self.root / "run"
        names = set(tree(out))
        for name in ("recipe.toml", "model.safetensors", "summary.json", "report.html",
                     "checkpoints/last.safetensors", "checkpoints/best.safetensors"):
            self.assertIn(name, names)
        self.assertTrue(any(name.startswith("events.out.tfevents.") for name in names))
        self.assertFalse([name for name in names if "partial" in name])
        summary = json.loads((out / "summary.json").read_text())
        self.assertEqual((summary["network"], summary["epochs"], summary["device"]), ("mlp", 4, "cpu"))
        self.assertEqual(summary["precision"], "fp32")  # left to the device, which is a processor
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


if __name__ == "__main__":
    unittest.main()
