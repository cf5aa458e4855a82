"""Tokenizers and token shards: `tessera data tokenize`, and training on what it wrote."""

import json
import random
import unittest

from program import ROOT, ProgramTest, checkpoint, tree

RECIPE = """
[task]
name = "masked_language_model"

[data]
kind = "tokens"
path = "{shards}"
tokens = 16

[model]
width = 16
heads = 2
layers = 1

[train]
epochs = 1
batch = 16
device = "cpu"

[optimizer]
name = "adamw"
"""


class TokensTest(ProgramTest):
    def setUp(self):
        super().setUp()
        source = random.Random(1)
        words = ["one", "two", "three", "four", "twenty-five", "Café", "\u6c34"]
        self.text = self.root / "text"
        self.text.write_text("\n\n".join(" ".join(source.choice(words) for _ in range(40)) for _ in range(60)))

    def tokenize(self, *words):
        return self.call("data", "tokenize", *words)

    def learn(self, kind, size, *words):
        self.tokenize("--train", kind, "--vocabulary", size, self.text, "-o", self.root / kind, *words)
        return self.root / kind

    def test_learning_and_reading_both_kinds(self):
        for kind, size, files in (("wordpiece", 60, {"vocab.txt", "tokenizer_config.json", "tokenizer.json"}),
                                  ("bpe", 300, {"vocab.json", "merges.txt", "tokenizer.json"})):
            tokenizer = self.learn(kind, size)
            self.assertEqual(set(tree(tokenizer)), files)
            first = self.tokenize("--tokenizer", tokenizer, "--print", self.text)
            (tokenizer / "tokenizer.json").unlink()
            self.assertEqual(self.tokenize("--tokenizer", tokenizer, "--print", self.text).count("\n"), 60)
            paragraph = self.text.read_text().split("\n\n")[0]
            told = json.loads(first.split("\n")[0])
            expected = paragraph if kind == "bpe" else paragraph.lower().replace("é", "e").replace("-", " - ")
            self.assertEqual(told["text"], expected)
            self.assertEqual(len(told["ids"]), len(told["offsets"]))

    def test_shards_of_text_of_json_and_of_parallel_files(self):
        tokenizer = self.learn("bpe", 300)
        (self.root / "lines").write_text("".join(json.dumps({"body": f"one {i}"}) + "\n" for i in range(50)))
        (self.root / "en").write_text("one\ntwo\n")
        (self.root / "de").write_text("eins\nzwei\n")
        for out, words, documents in (("a", [self.text, "--part", 1000, "--threads", 3], 60),
                                      ("b", ["--documents", "json", "--field", "body", self.root / "lines"], 50),
                                      ("c", ["--documents", "parallel", self.root / "en", self.root / "de"], 2)):
            shards = self.root / out
            command = ["--tokenizer", tokenizer, *words, "-o", shards, "--quiet"]
            self.assertRegex(self.tokenize(*command), rf"^\d+ tokens of {documents} documents in \d+ shards; .* of text")
            before = tree(shards)
            self.assertIn("there already; 0 B of text", self.tokenize(*command))
            self.assertEqual(tree(shards), before)
            self.assertRegex(self.tokenize("--verify", shards), rf"of {documents} documents .* all as they were written")
        shard = self.root / "a/00001.tokens"
        content = bytearray(shard.read_bytes())
        content[70] ^= 1
        shard.write_bytes(content)
        self.refuses(["data", "tokenize", "--verify", self.root / "a"], 4, "00001.tokens", "checksum")
        self.refuses(["data", "tokenize", "--tokenizer", tokenizer, self.text, "-o", self.root / "a"], 2, "other options")

    def test_what_is_refused(self):
        out = ["-o", self.root / "out"]
        for words, code, *told in (
                ([self.text], 2, "one of --train KIND, --tokenizer PATH and --verify"),
                (["--train", "bpe", *out], 2, "no files"),
                (["--train", "bpe", self.text], 2, "--out"),
                (["--train", "unigram", self.text, *out], 2, "unigram"),
                (["--train", "bpe", "--vocabulary", 100, self.text, *out], 2, "257"),
                (["--train", "bpe", self.root / "none", *out], 5, "none"),
                (["--tokenizer", self.root / "none", self.text, *out], 2, "a tokenizer is"),
                (["--tokenizer", self.root, self.text, *out], 5, "holds no tokenizer.json"),
                (["--verify", self.root], 5, "tokens.json")):
            self.refuses(["data", "tokenize", *words], code, *told)
        self.assertFalse((self.root / "out").exists())

    def test_training_on_shards_goes_on_with_the_same_bytes(self):
        shards = self.root / "shards"
        self.tokenize("--tokenizer", self.learn("wordpiece", 60), self.text, "-o", shards, "--part", 2000)
        recipe = self.root / "words.toml"
        recipe.write_text(RECIPE.format(shards=shards))
        straight, stopped = self.root / "straight", self.root / "stopped"
        self.call("train", recipe, "--out", straight, "--quiet")
        self.call("train", recipe, "--out", stopped, "--quiet", "--max-steps", 4)
        self.call("train", stopped / "recipe.toml", "--out", stopped, "--resume", "--quiet")
        tensors = [checkpoint(run / "checkpoints/last.safetensors")[1] for run in (stopped, straight)]
        self.assertEqual(*tensors)
        self.assertIn("test_masked_accuracy", json.loads((straight / "summary.json").read_text()))
        told = self.call("predict", straight, "--count", 2)
        self.assertRegex(told, r"(?s)^row 0:\n  .*_.*\d+ of \d+ gaps filled with what was there\n$")
        self.assertIn("three ", told)

    def test_pretraining_bert_and_going_on_with_the_same_bytes(self):
        shards = self.root / "shards"
        self.tokenize("--tokenizer", self.learn("wordpiece", 60), self.text, "-o", shards, "--part", 2000)
        changes = [word for change in (f"data.path={shards}", "data.tokens=32", "train.device=cpu", "train.epochs=2",
                                       "train.batch=8", "model.width=32", "model.layers=1", "model.positions=40")
                   for word in ("--set", change)]
        recipe = ROOT / "recipes/bert_tiny.toml"
        straight, stopped = self.root / "straight", self.root / "stopped"
        self.call("train", recipe, *changes, "--out", straight, "--quiet")
        self.call("train", recipe, *changes, "--out", stopped, "--quiet", "--max-steps", 9)
        self.call("train", stopped / "recipe.toml", "--out", stopped, "--resume", "--quiet")
        tensors = [checkpoint(run / "checkpoints/last.safetensors")[1] for run in (stopped, straight)]
        self.assertEqual(*tensors)
        summary = json.loads((straight / "summary.json").read_text())
        for number in ("masked", "masked_accuracy", "next_sentence", "next_sentence_accuracy"):
            self.assertIn(f"test_{number}", summary)
        self.assertEqual(checkpoint(straight / "model.safetensors")[0]["format"], "pt")
        config = json.loads((straight / "config.json").read_text())
        vocabulary = json.loads((shards / "tokens.json").read_text())["vocabulary"]
        self.assertEqual((config["model_type"], config["hidden_size"], config["vocab_size"]), ("bert", 32, vocabulary))
        self.assertRegex(self.call("predict", straight, "--count", 2),
                         r"(?s)^row 0:\n  \[CLS\] .*_.*\d+ of \d+ gaps filled with what was there\n$")
        # Pairs that share rows, and longer rows from the weights of shorter ones.
        packed = self.root / "packed"
        self.call("train", recipe, *changes, "--set", "data.packed=4", "--out", packed, "--quiet")
        steps = [int(checkpoint(run / "checkpoints/last.safetensors")[0]["step"]) for run in (straight, packed)]
        self.assertLess(steps[1], steps[0])
        self.assertRegex(self.call("predict", packed, "--count", 2), r"gaps filled with what was there\n$")
        longer = ["--set", "data.tokens=40", "--set", f"model.weights={packed / 'model.safetensors'}"]
        self.call("train", recipe, *changes, *longer, "--out", self.root / "longer", "--quiet")
        self.pretrain_in_stages(changes)
        # Weights of a run, or of transformers, to start from.
        changes += ["--set", f"model.weights={straight / 'model.safetensors'}"]
        self.call("train", recipe, *changes, "--out", self.root / "further", "--quiet", "--max-steps", 1)

    def test_pretraining_bert_without_padding_on_one_rank_and_on_two(self):
        shards = self.root / "shards"
        self.text.write_text("\n\n".join(" ".join(["one two", "three"][i % 2] for i in range(length))
                                          for length in range(2, 62)))
        self.tokenize("--tokenizer", self.learn("wordpiece", 60), self.text, "-o", shards, "--part", 2000)
        words = ["train", ROOT / "recipes/bert_tiny.toml", "--quiet"]
        for change in (f"data.path={shards}", "data.tokens=32", "data.unpadded=true", "data.masked=0.01", "train.device=cpu",
                       "train.epochs=2", "train.batch=8", "train.threads=1", "model.width=32", "model.layers=1",
                       "model.positions=32"):
            words += ["--set", change]
        of_ranks = ["launch", "--ranks", 2, "--"]
        states = {}
        for name, launcher in (("one", []), ("two", of_ranks)):
            straight, stopped = self.root / name, self.root / f"stopped-{name}"
            self.call(*launcher, *words, "--out", straight)
            self.call(*launcher, *words, "--out", stopped, "--max-steps", 9)
            self.call(*launcher, "train", stopped / "recipe.toml", "--out", stopped, "--resume", "--quiet")
            tensors = [checkpoint(run / "checkpoints/last.safetensors")[1] for run in (stopped, straight)]
            self.assertEqual(*tensors)
            states[name] = json.loads((straight / "summary.json").read_text())
        for number in ("masked", "next_sentence"):
            one, two = (states[name][f"test_{number}"] for name in ("one", "two"))
            self.assertAlmostEqual(one, two, delta=1e-3 * one)
        self.assertRegex(self.call("predict", self.root / "one", "--count", 2), r"gaps filled with what was there\n$")
        self.refuses([*words, "--out", self.root / "other", "--set", "data.packed=2"], 2, "'data.unpadded'", "'data.packed'")
        self.refuses([*words[:-2], "--out", self.root / "one", "--resume", "--set", "data.unpadded=false"], 2, "data.unpadded")
        other = ["train", ROOT / "recipes/topics.toml", "--out", self.root / "other", "--set", "data.unpadded=true"]
        self.refuses(other, 2, "data.unpadded")

    def pretrain_in_stages(self, changes):
        """Short rows, then longer ones; stopped in each stage, the run ends with the same bytes."""
        words = ["train", ROOT / "recipes/bert.toml", *changes, "--quiet"]
        for change in ("model.size=tiny", "train.precision=fp32", "train.accumulate=1", "stages.1.data.tokens=16",
                       "stages.2.data.tokens=40", "stages.1.train.steps=5", "stages.2.train.steps=4",
                       "schedule.warmup_steps=2"):
            words += ["--set", change]
        straight, stopped = self.root / "stages", self.root / "stopped-stages"
        self.call(*words, "--out", straight)
        self.call(*words, "--out", stopped, "--max-steps", 3)
        for more in (["--max-steps", 7], []):
            self.call("train", stopped / "recipe.toml", "--out", stopped, "--resume", "--quiet", *more)
        tensors = [checkpoint(run / "checkpoints/last.safetensors")[1] for run in (stopped, straight)]
        self.assertEqual(*tensors)
        self.assertRegex((straight / "report.html").read_text(), "From step 5 on data.tokens is 40; before it was 16")
        self.assertRegex(self.call("predict", straight, "--count", 1), r"gaps filled with what was there\n$")
        # The same on two ranks, stopped in the second stage, whose loader is another.
        of_ranks = ["launch", "--ranks", 2, "--"]
        both, stopped = self.root / "stages-of-two", self.root / "stopped-stages-of-two"
        words += ["--set", "train.batch=4"]
        self.call(*of_ranks, *words, "--out", both)
        self.call(*of_ranks, *words, "--out", stopped, "--max-steps", 7)
        self.call(*of_ranks, "train", stopped / "recipe.toml", "--out", stopped, "--resume", "--quiet")
        tensors = [checkpoint(run / "checkpoints/last.safetensors")[1] for run in (stopped, both)]
        self.assertEqual(*tensors)
        self.assertRegex((both / "report.html").read_text(), "From step 5 on data.tokens is 40; before it was 16")
        for stage, tokens in ((1, 16), (2, 40)):
            told = self.call("explain", straight / "recipe.toml", "--train", "--stage", stage, "--device", "null")
            self.assertIn(f"fp32[8, {tokens}, 32]", told)

    def test_what_pretraining_bert_refuses(self):
        recipe = ROOT / "recipes/bert_tiny.toml"
        words = ["train", recipe, "--out", self.root / "refused"]
        self.refuses([*words, "--set", "data.path=x", "--set", "model.heads=3"], 2, "the width (128)", "the heads (3)")
        self.refuses([*words, "--set", "data.path=x", "--set", "data.tokens=600"], 2, "600", "'model.positions' (512)")
        self.refuses([*words, "--set", "data.path="], 2, "'data.path' is missing")
        shards = self.root / "shards"
        self.tokenize("--tokenizer", self.learn("bpe", 300), self.text, "-o", shards)
        self.refuses([*words, "--set", f"data.path={shards}"], 2, "[MASK]")
        # Of a second stage, before the first one trains.
        masked = self.root / "masked"
        self.tokenize("--tokenizer", self.learn("wordpiece", 60), self.text, "-o", masked)
        words = ["train", ROOT / "recipes/bert.toml", "--out", self.root / "refused", "--set", f"data.path={masked}",
                 "--set", f"stages.2.data.path={shards}"]
        self.refuses(words, 2, str(shards), "[MASK]")
        self.assertFalse((self.root / "refused").exists())


if __name__ == "__main__":
    unittest.main()
