"""Training from the shell: train, eval, predict, stop, resume."""

import json
import struct
import unittest

from program import ProgramTest, checkpoint, idx, npy, read_idx, tree


class TrainTest(ProgramTest):
    def evaluated(self, out):
        numbers = json.loads((self.root / out / "summary.json").read_text())
        return {key: value for key, value in numbers.items() if key.startswith("test_")}

    def test_train_eval_predict(self):
        self.assertRegex(self.train("run"),
                         r"(?s)^device: cpu, .* threads?\nmemory: .* parameters and states.*test accuracy")
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
        # The same weights see the same images on the same device: the same number.
        self.assertEqual(result["accuracy"], summary["test_accuracy"])
        self.assertIn("40 images", self.call("eval", out))
        # Two devices in fp32: sums in another order, and losses of about one with some hundreds of roundings.
        self.assertAlmostEqual(json.loads(self.call("eval", out, "--json", "--device", "reference"))["loss"],
                               result["loss"], places=4)
        self.assertIn("of 3 right", self.call("predict", out, "--count", 3))
        told = self.call("predict", out, "--all")
        self.assertEqual(told.count("\nimage ") + told.startswith("image "), 40)
        self.assertIn(f"{round(40 * result['accuracy'])} of 40 right", told)
        self.assertEqual(json.loads(self.call("eval", out, "--json", "--count", 17))["images"], 17)
        # A second training does not write over the first.
        self.refuses(["train", self.recipe, "--out", out], 5, "holds a run already", "--resume")

    def test_predictions_in_a_file(self):
        self.train("run", "--quiet")
        file = self.root / "logits.safetensors"
        self.assertEqual(self.call("predict", self.root / "run", "--all", "--out", file), "logits: fp32[40, 3]\n")
        every = checkpoint(file)[1]
        self.assertEqual(len(every), 40 * 3 * 4)
        self.call("predict", self.root / "run", "--count", 17, "--out", file)  # of two batches
        self.assertEqual(checkpoint(file)[1], every[:17 * 3 * 4])
        logits = struct.unpack("<120f", every)
        told = self.call("predict", self.root / "run", "--all").split("\n")
        said = [line.split(": ")[1].split(" ")[0] for line in told if line.startswith("image ")]
        self.assertEqual(said, [str(max(range(3), key=lambda i: logits[3 * row + i])) for row in range(40)])
        self.refuses(["predict", self.root / "run", "--all", "--count", 3], 2, "--all", "--count")
        self.refuses(["predict", self.root / "run", "--out", self.root / "none" / "file"], 5, self.root / "none")

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

    def test_a_run_without_a_folder_is_named_after_its_recipe(self):
        words = ["--quiet", "--max-steps", 2]
        self.call("train", self.recipe, *words)  # in self.root
        self.assertTrue((self.root / "runs/tiny/checkpoints/last.safetensors").exists())
        self.refuses(["train", self.recipe, *words], 5, "runs/tiny", "--resume")
        told = self.call("train", "runs/tiny/recipe.toml", "--resume", "--quiet", "--max-steps", 5)
        self.assertIn("stopped after step 5 ", told)

    def test_a_finished_run_resumes_to_itself(self):
        self.train("run", "--quiet")
        before = self.weights("run")
        self.train("run", "--resume", "--quiet")
        self.assertEqual(self.weights("run"), before)

    def test_threads_are_those_of_the_recipe(self):
        for threads in (1, 3):
            told = self.train(f"run{threads}", "--quiet", "--set", f"train.threads={threads}")
            self.assertRegex(told, f"^device: cpu, .*, {threads} threads\n")
        self.assertEqual(self.weights("run1"), self.weights("run3"))

    def test_batches_may_be_made_when_it_is_their_turn(self):
        for prefetch in (0, 3):
            self.train(f"run{prefetch}", "--quiet", "--set", f"data.prefetch={prefetch}")
        self.assertEqual(self.weights("run0"), self.weights("run3"))

    def test_what_tessera_wrote_itself_is_no_mistake(self):
        self.train("run", "--quiet", "--max-steps", 2)
        process = self.start("train", self.root / "run" / "recipe.toml", "--out", self.root / "run", "--resume",
                             "--set", "optimizer.beta1=0.5")
        errors = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(errors.count("warning"), 1, errors)
        self.assertIn("--set optimizer.beta1=0.5", errors)

    def test_more_outputs_than_classes(self):
        for seed in range(3):
            out = self.root / f"run{seed}"
            self.train(out, "--quiet", "--set", "model.classes=10", "--set", f"train.seed={seed}", "--set",
                       "train.epochs=1", "--set", "optimizer.learning_rate=1e-6")
            self.assertIn(" of 40 right", self.call("predict", out, "--count", 40))

    def test_very_many_classes(self):
        words = ("--set", "data.kind=synthetic", "--set", "data.classes=200000", "--set", "data.train_images=32",
                 "--set", "data.test_images=32", "--set", "train.epochs=1")
        self.train("run", "--quiet", *words)
        self.assertIn("Most frequent confusions", (self.root / "run" / "report.html").read_text())

    def test_arrays_and_records_train_to_the_bytes_of_idx_files(self):
        arrays, records = self.root / "arrays", self.root / "records"
        arrays.mkdir()
        records.mkdir()
        for prefix, name in (("train", "train"), ("t10k", "test")):
            images, labels = (read_idx(self.data / f"{prefix}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1"))
            count = len(labels)
            (arrays / f"{name}_images.npy").write_bytes(npy((count, 6, 6), images, "|u1"))
            (arrays / f"{name}_labels.npy").write_bytes(npy((count, 1), struct.pack(f"<{count}q", *labels), "<i8"))
            (records / f"{name}.bin").write_bytes(
                b"".join(labels[i:i + 1] + images[36 * i:36 * i + 36] for i in range(count)))
        self.train("idx", "--quiet")
        self.train("npz", "--quiet", "--set", "data.kind=npz", "--set", f"data.path={arrays}")
        self.train("binary", "--quiet", "--set", "data.kind=binary", "--set", f"data.path={records}",
                   "--set", "data.train_files=[\"train.bin\"]", "--set", "data.test_files=[\"test.bin\"]")
        for kind in ("npz", "binary"):
            self.assertEqual(self.weights(kind), self.weights("idx"))
            self.assertEqual(self.evaluated(kind), self.evaluated("idx"))

    def test_the_name_of_the_folder_says_nothing_of_the_classes(self):
        self.data.rename(self.root / "my-fashion")
        self.train("run", "--quiet", "--set", f"data.path={self.root / 'my-fashion'}")
        told = self.call("predict", self.root / "run", "--count", 10)
        self.assertIn(" of 10 right", told)
        self.assertNotRegex(told, "Trouser|T-shirt|Pullover")

    def test_more_classes_than_fashion_mnist_in_a_folder_of_that_name(self):
        self.data.rename(self.root / "fashion")
        data = self.root / "fashion"
        labels = bytes(i % 12 for i in range(100))
        (data / "train-labels-idx1-ubyte").write_bytes(idx((100,), labels))
        self.train("run", "--quiet", "--set", f"data.path={data}", "--set", "data.classes=12")
        told = self.call("predict", self.root / "run", "--count", 10)
        self.assertIn(" of 10 right", told)
        self.assertNotRegex(told, "Trouser|T-shirt|Pullover")

    def test_weights_start_another_run(self):
        self.train("first", "--quiet")
        self.train("second", "--quiet", "--set", f"model.weights={self.root / 'first' / 'model.safetensors'}",
                   "--set", "optimizer.learning_rate=1e-9", "--set", "train.epochs=1")
        first, second = (json.loads(self.call("eval", self.root / name, "--json")) for name in ("first", "second"))
        # An epoch at that rate moves weights by next to nothing; a run of its own would start elsewhere.
        self.assertAlmostEqual(first["loss"], second["loss"], places=4)


if __name__ == "__main__":
    unittest.main()
