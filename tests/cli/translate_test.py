"""Translation: parallel shards, a Transformer trained on them, and what it makes of texts."""

import json
import subprocess
import unittest

from program import PROGRAM, ROOT, ProgramTest, checkpoint
from task_data import write_translations

SMALL = ("train.device=cpu", "train.batch=16", "model.width=32", "model.encoder_layers=1", "model.decoder_layers=1", "model.heads=2",
         "model.inner=64", "model.pre_norm=true", "model.dropout=0.0", "data.lengths=[6, 12]", "data.test_share=0.1", "data.prefetch=0",
         "optimizer.learning_rate=5e-3", "schedule.warmup_steps=20")


def words_of(values):
    return [word for value in values for word in ("--set", value)]


class TranslateTest(ProgramTest):
    def setUp(self):
        super().setUp()
        files, tokenizer = write_translations(self.root / "texts"), self.root / "tokenizer"
        self.call("data", "tokenize", "--train", "bpe", "--vocabulary", 300, "--special", "<pad>,<s>,</s>", "--documents", "parallel",
                  *files, "-o", tokenizer)
        self.call("data", "tokenize", "--tokenizer", tokenizer, "--documents", "parallel", *files, "-o", self.root / "shards", "--quiet")

    def train_recipe(self, out, *words, values=()):
        values = [f"data.path={self.root / 'shards'}", *SMALL, *values]
        self.call("train", ROOT / "recipes/messages.toml", *words_of(values), "--out", self.root / out, "--quiet", *words)
        return self.root / out

    def test_learns_resumes_and_translates(self):
        values = ["train.epochs=30"]
        straight = self.train_recipe("straight", values=values)
        stopped = self.train_recipe("stopped", "--max-steps", 71, values=values)
        self.call("train", stopped / "recipe.toml", "--out", stopped, "--resume", "--quiet")
        tensors = [checkpoint(run / "checkpoints/last.safetensors")[1] for run in (stopped, straight)]
        self.assertEqual(tensors[0], tensors[1])
        summary = json.loads((straight / "summary.json").read_text())
        self.assertGreater(summary["test_bleu"], 50)
        self.assertLess(summary["test_perplexity"], 2)
        evaluated = json.loads(self.call("eval", straight, "--json"))
        self.assertEqual((evaluated["texts"], evaluated["bleu"]), (60, summary["test_bleu"]))
        self.assertEqual(self.call("translate", straight, "--text", "one two", "--text", "five"), "zwei eins\nfünf\n")
        self.assertEqual(self.call("translate", straight, "--beams", 1, "--length-penalty", 0.5, "--text", "six one"), "eins sechs\n")
        read = subprocess.run([PROGRAM, "translate", straight], input="three four\nfive\n", capture_output=True, text=True, check=True)
        self.assertEqual(read.stdout, "vier drei\nfünf\n")

    def test_refuses_what_it_cannot_do(self):
        recipe = ROOT / "recipes/messages.toml"
        refused = [(["data.lengths=[8, 4]"], "must be numbers that rise"), (["model.heads=3"], "a width of 128 has no 3 heads")]
        for values, message in refused:
            self.refuses(["train", recipe, *words_of([f"data.path={self.root / 'shards'}", *values]), "--out", self.root / "none"], 2, message)
        text = self.root / "text"
        text.write_text("one\n\ntwo\n")
        self.call("data", "tokenize", "--tokenizer", self.root / "tokenizer", text, "-o", self.root / "single", "--quiet")
        self.refuses(["train", recipe, *words_of([f"data.path={self.root / 'single'}"]), "--out", self.root / "none"], 2,
                     "no texts beside their translations")


if __name__ == "__main__":
    unittest.main()
