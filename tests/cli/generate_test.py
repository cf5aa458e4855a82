"""`tessera generate`: going on with text, of bytes and of tokens."""

import json
import os
import shutil
import unittest

from program import ProgramTest
from task_data import write_texts

# Under sanitizers it takes too long for the networks to learn the texts.
LEARNS = not os.environ.get("TESSERA_SANITIZE")
SMALL = ["model.width=32", "model.heads=2", "model.layers=2", "data.tokens=16", "train.batch=16", "train.device=cpu", "optimizer.name=adamw",
         "optimizer.learning_rate=0.01"]
RECIPE = '[task]\nname = "{task}"\n[data]\npath = "{path}"\nkind = "{kind}"\n[train]\nepochs = {epochs}\n[optimizer]\nname = "adamw"\n'


class GenerateTest(ProgramTest):
    def train_on(self, path, kind="bytes", task="language_model", changes=()):
        recipe, run = self.root / "recipe.toml", self.root / f"run-{kind}-{task}-{len(changes)}"
        recipe.write_text(RECIPE.format(task=task, path=path, kind=kind, epochs=8 if LEARNS else 1))
        self.call("train", recipe, "--out", run, "--quiet",
                  *(word for value in [*SMALL, *changes] for word in ("--set", value)))
        return run

    def texts(self):
        write_texts(self.root / "texts")
        return self.root / "texts"

    def test_bytes(self):
        run = self.train_on(self.texts())
        surely = self.call("generate", run, "--prompt", "two thr", "--temperature", 0, "--tokens", 30)
        self.assertEqual(len(surely), len("two thr") + 30 + 1)
        drawn = self.call("generate", run, "--prompt", "one ", "--tokens", 200, "--temperature", 0.3, "--seed", 5)
        again = self.call("generate", run, "--prompt", "one ", "--tokens", 200, "--temperature", 0.3, "--seed", 5)
        self.assertEqual(drawn, again)
        other = self.call("generate", run, "--prompt", "one ", "--tokens", 200, "--temperature", 0.3, "--seed", 6)
        self.assertNotEqual(drawn, other)
        first = self.call("generate", run, "--prompt", "two thr", "--top-k", 1, "--tokens", 30)
        self.assertEqual(first, surely)
        narrow = self.call("generate", run, "--prompt", "two thr", "--temperature", 0, "--tokens", 30, "--precision", "bf16")
        self.assertEqual(len(narrow), len(surely))
        self.refuses(("generate", run, "--precision", "fp12"), 2, "fp12")
        stopped = self.call("generate", run, "--prompt", "two thr", "--temperature", 0, "--stop", " ")
        if LEARNS:
            self.assertTrue(surely.startswith("two three "), surely)
            self.assertEqual(stopped, "two three\n")
            # Words of the text, but for one that the end cuts off.
            words = drawn.split()[:-1]
            known = sum(word in ("one", "two", "three", "four", "five") for word in words)
            self.assertGreater(known, 0.8 * len(words), drawn)
            # Without a prompt, and beyond what a row of the training holds.
            self.assertEqual(len(self.call("generate", run, "--tokens", 40)), 41)

    def test_the_form_of_llama(self):
        run = self.train_on(self.texts(), changes=["model.form=llama", "model.key_heads=1"])
        # Beyond what a row of the training holds.
        surely = self.call("generate", run, "--prompt", "one two three four five one two thr", "--temperature", 0, "--tokens", 30)
        if LEARNS:
            self.assertIn(" three ", surely)

    def test_tokens(self):
        texts = self.texts() / "numbers"
        self.call("data", "tokenize", "--train", "bpe", "--vocabulary", 270, texts, "-o", self.root / "tokenizer")
        self.call("data", "tokenize", "--tokenizer", self.root / "tokenizer", texts, "-o", self.root / "shards", "--quiet")
        run = self.train_on(self.root / "shards", "tokens")
        told = self.call("generate", run, "--prompt", "one two", "--temperature", 0, "--tokens", 20)
        # As transformers would leave it.
        folder = self.root / "folder"
        shutil.copytree(self.root / "shards" / "tokenizer", folder)
        for name in ("config.json", "model.safetensors"):
            shutil.copy(run / name, folder)
        few = ("--prompt", "one two", "--temperature", 0, "--tokens", 8)
        self.assertEqual(self.call("generate", folder, *few), self.call("generate", run, *few))
        self.assertEqual(self.call("generate", folder, *few, "--precision", "fp32"), self.call("generate", run, *few))
        self.refuses(("generate", folder, "--precision", "fp12"), 2, "fp12")
        self.refuses(("generate", folder, "--data", "texts"), 2, "no recipe")
        (folder / "model.safetensors").unlink()
        self.refuses(("generate", folder, "--device", "cpu"), 5, "model.safetensors.index.json")
        if LEARNS:
            self.assertTrue(told.startswith("one two "), told)
            # Of a vocabulary of all bytes and a few words: what it learned, not what it began with.
            self.assertLessEqual(set(told), set("onetwothreefourfive \n"), told)

    def test_a_network_that_remembers(self):
        run = self.train_on(self.texts(), task="transformer_xl")
        surely = self.call("generate", run, "--prompt", "two thr", "--temperature", 0, "--tokens", 100)
        self.assertEqual(len(surely), len("two thr") + 100 + 1)
        measured = json.loads((run / "summary.json").read_text())
        self.assertAlmostEqual(measured["test_bits_per_token"], measured["test_bits_per_character"])
        self.assertAlmostEqual(measured["test_perplexity"], 2 ** measured["test_bits_per_token"])
        if LEARNS:
            self.assertTrue(surely.startswith("two three "), surely)
            # One of five words, once in five characters, is 0.47.
            self.assertLess(measured["test_bits_per_character"], 0.7)

    def test_clusters_of_rare_tokens(self):
        texts = self.texts() / "numbers"
        self.call("data", "tokenize", "--train", "bpe", "--vocabulary", 270, texts, "-o", self.root / "tokenizer")
        self.call("data", "tokenize", "--tokenizer", self.root / "tokenizer", texts, "-o", self.root / "shards", "--quiet")
        # At the others' rate the loss of these narrow clusters jumps back now and then, and what is said is luck.
        run = self.train_on(self.root / "shards", "tokens", "transformer_xl",
                            changes=["model.cutoffs=[128,256]", "optimizer.learning_rate=0.003"])
        told = self.call("generate", run, "--prompt", "one two", "--temperature", 0, "--tokens", 20)
        measured = json.loads((run / "summary.json").read_text())
        # A token stands for several characters.
        self.assertLess(measured["test_bits_per_character"], 0.6 * measured["test_bits_per_token"])
        if LEARNS:
            self.assertTrue(told.startswith("one two "), told)

    def test_what_does_not_go_on_with_text(self):
        run = self.train_on(self.texts(), task="masked_language_model")
        self.refuses(("generate", run), 2, "'masked_language_model' do not go on with text")
        self.refuses(("generate", run, "--top-p", 2), 2, "--top-p")
        self.refuses(("generate", run, "--temperature", -1), 2, "--temperature")
        self.refuses(("generate", run, "--tokens", 0), 2, "--tokens")
        self.refuses(("generate", self.root / "nothing"), 5, "nothing")


if __name__ == "__main__":
    unittest.main()
