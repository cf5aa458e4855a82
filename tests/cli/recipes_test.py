"""Every recipe of recipes/ trains twenty steps on small data of its kind, and is timed; ./test --long trains them to
their quality."""

import itertools
import json
import tomllib
import unittest

from program import ROOT, ProgramTest
from task_data import EXAMPLES, write_examples, write_pictures, write_sounds, write_table, write_texts, write_translations

STEPS = 20
NUMBERS = ("one", "two", "three", "four", "five")
SMALL = ("train.batch=4", "train.device=cpu")
# Beside that, of networks for images of 224x224 pixels, which can be smaller, but for AlexNet's, whose layers are for
# them; and of what trains on many GPUs.
LARGE = {"resnet18": ("data.image_size=64",), "resnet50": ("data.image_size=64", "train.accumulate=2"),
         "resnet50-fast": ("stages.1.data.image_size=32", "stages.2.data.image_size=48", "stages.3.data.image_size=64",
                           "data.test_size=64", "stages.1.train.epochs=1",
                           # The recipe's rates are for batches of hundreds.
                           "optimizer.learning_rate=0.01"),
         "folder-fast": ("stages.1.train.epochs=1", "model.width=4"),
         # Twenty steps go on from the first stage into the second.
         "bert": ("model.size=tiny", "train.precision=fp32", "train.accumulate=1", "stages.1.train.steps=12")}


class RecipesTest(ProgramTest):
    def small_data(self, recipe):
        """The values that replace a recipe's data; a recipe of another kind of data needs a line here."""
        where = self.root / "of-recipes"
        kind = recipe.get("task", {}).get("name") or recipe["data"]["kind"]
        if kind == "synthetic":
            return ["data.train_images=60", "data.test_images=4"]
        if kind in EXAMPLES:
            return self.small_examples(kind)
        if not where.exists():
            if kind == "click_through":
                write_table(where)
            elif kind in ("masked_language_model", "language_model", "transformer_xl"):
                write_texts(where)
            elif kind == "bert_pretraining":
                self.write_shards(where)
            elif kind in ("gan", "idx"):
                write_pictures(where)
            elif kind == "sound_classification":
                write_sounds(where)
            elif kind == "translation":
                self.write_parallel_shards(where)
            elif kind == "image_folder":
                write_pictures(self.root / "pictures")
                self.call("data", "export", self.root / "pictures", "-o", where, "--train", 40, "--test", 8)
            else:
                self.fail(f"no small data for '{kind}'")
        return [f"data.path={where}"]

    def small_examples(self, task):
        file, tokenizer = self.root / EXAMPLES[task], self.root / "tokenizer"
        if not file.exists():
            write_examples(self.root)
            self.call("data", "tokenize", "--train", "wordpiece", "--vocabulary", 60, self.root / "words", "-o", tokenizer)
        return [f"data.path={file}", f"data.tokenizer={tokenizer}"]

    def write_shards(self, folder):
        """Documents of some lines, which are sentences to this task."""
        lines = [" ".join(words) for words in itertools.product(NUMBERS, repeat=4)]
        text, tokenizer = self.root / "text", self.root / "tokenizer"
        text.write_text("".join(line + "\n\n" * (number % 6 == 5) + "\n" for number, line in enumerate(lines)))
        self.call("data", "tokenize", "--train", "wordpiece", "--vocabulary", 60, text, "-o", tokenizer)
        self.call("data", "tokenize", "--tokenizer", tokenizer, text, "-o", folder, "--quiet")

    def write_parallel_shards(self, folder):
        files, tokenizer = write_translations(self.root / "translations"), self.root / "tokenizer"
        self.call("data", "tokenize", "--train", "bpe", "--vocabulary", 300, "--special", "<pad>,<s>,</s>", "--documents",
                  "parallel", *files, "-o", tokenizer)
        self.call("data", "tokenize", "--tokenizer", tokenizer, "--documents", "parallel", *files, "-o", folder, "--quiet")

    def small_values(self, file):
        return [*SMALL, *self.small_data(tomllib.loads(file.read_text())), *LARGE.get(file.stem, ())]

    def run_steps(self, file):
        values = self.small_values(file)
        out = self.root / "run"
        told = self.call("train", file, "--out", out, "--quiet", "--max-steps", STEPS,
                         *words_of(values))
        self.assertIn(f"stopped after step {STEPS} ", told)
        last = out / "checkpoints/last.safetensors"
        self.assertTrue(last.exists())
        if "export" in self.call("--help"):  # not without the room of ONNX
            for precision in ("fp32", "fp16"):
                model = self.root / f"{precision}.onnx"
                self.call("export", out, "--checkpoint", last, "--output", model, "--precision", precision)
                self.assertIn("output", self.call("run", model))

    def time_steps(self, file):
        """What each trains, and what it serves unless that is the same at every run."""
        words = [file, "--device", "cpu", "--iterations", 1, *words_of(self.small_values(file))]
        timed = json.loads(self.call("bench", *words, "--train", "--warmup", 1, "--json"))
        self.assertEqual((timed["batch"], len(timed["samples_per_second"])), (4, 1))
        if file.stem != "gan":
            self.assertGreater(json.loads(self.call("bench", *words, "--json"))["samples_per_second"][0], 0)
        self.call("profile", *words, "--train", "--out", self.root / "trace.json")
        rows = {event["args"]["name"] for event in json.loads((self.root / "trace.json").read_text())["traceEvents"]
                if event["name"] == "thread_name"}
        self.assertLessEqual({"compiler", "runs", "nodes"}, rows)


def words_of(values):
    return [word for value in values for word in ("--set", value)]


def add_tests():
    """Two for each recipe, so that a failure names it."""
    for file in sorted((ROOT / "recipes").glob("*.toml")):
        setattr(RecipesTest, f"test_{file.stem}", lambda self, file=file: self.run_steps(file))
        setattr(RecipesTest, f"test_times_of_{file.stem}", lambda self, file=file: self.time_steps(file))


add_tests()

if __name__ == "__main__":
    unittest.main()
