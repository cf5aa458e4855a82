"""Parquet files where tables and texts of other forms are taken: what is trained on the same rows has the same bits."""

import json
import os
import pathlib
import unittest
import unittest.mock

from program import PROGRAM, ROOT, ProgramTest, checkpoint
from task_data import write_examples, write_table

GOLDEN = ROOT / "tests/data/golden"
PLUGIN = pathlib.Path(PROGRAM).parents[1] / "lib" / "libtessera_parquet.so"


@unittest.skipUnless(PLUGIN.exists(), "built without Parquet: tools/setup extra")
class ParquetTest(ProgramTest):
    def trained(self, recipe, out, *values):
        """The losses of a run, and its weights."""
        words = [word for value in ("train.device=cpu", "train.epochs=1", *values) for word in ("--set", value)]
        run = self.root / out
        self.call("train", ROOT / "recipes" / f"{recipe}.toml", "--out", run, "--quiet", *words)
        summary = json.loads((run / "summary.json").read_text())
        return ({name: number for name, number in summary.items() if "loss" in name or name.startswith("test_")},
                checkpoint(run / "checkpoints/last.safetensors")[1])

    def test_a_table_trains_as_its_text_does(self):
        write_table(self.root / "flights.csv")
        expected = self.trained("flights", "csv", f"data.path={self.root / 'flights.csv'}")
        self.assertIn("test_auc", expected[0])
        self.assertEqual(self.trained("flights", "parquet", "data.kind=parquet", f"data.path={GOLDEN / 'flights.parquet'}"), expected)
        parts = self.root / "parts"  # a folder of one
        parts.mkdir()
        (parts / "0.parquet").symlink_to(GOLDEN / "flights.parquet")
        self.assertEqual(self.trained("flights", "folder", "data.kind=parquet", f"data.path={parts}"), expected)

    def test_labeled_texts_train_as_those_of_lines_do(self):
        write_examples(self.root)
        tokenizer = self.root / "tokenizer"
        self.call("data", "tokenize", "--train", "wordpiece", "--vocabulary", 60, self.root / "words", "-o", tokenizer)
        small = (f"data.tokenizer={tokenizer}", "train.batch=8", "model.width=32", "model.layers=1", "model.positions=32",
                 "data.tokens=24")
        expected = self.trained("topics", "lines", *small, f"data.path={self.root / 'topics.tsv'}")
        self.assertEqual(self.trained("topics", "parquet", *small, f"data.path={GOLDEN / 'topics.parquet'}"), expected)

    def test_texts_have_the_tokens_of_those_in_lines(self):
        lines = self.root / "lines"
        lines.write_text("".join(json.dumps({"body": text}) + "\n" for text in (
            "One.", "Another, longer text.", "The third text.\n\nOf two paragraphs.")))
        of_lines = ["--documents", "json", "--field", "body", lines]
        of_table = ["--documents", "parquet", "--field", "body", GOLDEN / "texts"]
        tokenizer = self.root / "tokenizer"
        self.call("data", "tokenize", "--train", "bpe", "--vocabulary", 270, *of_table, "-o", tokenizer)
        told = [self.call("data", "tokenize", "--tokenizer", tokenizer, "--print", *words) for words in (of_lines, of_table)]
        self.assertEqual(told[0], told[1])
        shards = self.root / "shards"
        command = ["data", "tokenize", "--tokenizer", tokenizer, *of_table, "-o", shards, "--quiet", "--part", 1, "--threads", 2]
        self.assertRegex(self.call(*command), r"^\d+ tokens of 3 documents in 3 shards; ")
        self.assertIn("3 of them there already; 0 B of text", self.call(*command))
        self.call("data", "tokenize", "--verify", shards)

    def test_what_is_refused(self):
        (self.root / "cut.parquet").write_bytes((GOLDEN / "flights.parquet").read_bytes()[:-100])
        words = ["train", ROOT / "recipes/flights.toml", "--out", self.root / "run", "--set", "data.kind=parquet", "--set"]
        self.refuses([*words, f"data.path={self.root / 'cut.parquet'}"], 4, "cut.parquet")
        self.refuses([*words, f"data.path={self.root / 'none.parquet'}"], 5, "none.parquet")
        self.refuses([*words, f"data.path={self.root}/nowhere"], 5, "nowhere")
        self.refuses([*words, f"data.path={GOLDEN / 'flights.parquet'}", "--set", "data.label=delay"], 2, "no column 'delay'")
        texts = ["data", "tokenize", "--train", "bpe", "--documents", "parquet", "-o", self.root / "out"]
        self.refuses([*texts, "--field", "id", GOLDEN / "texts"], 2, "'id' is int64, expected texts")
        with unittest.mock.patch.dict(os.environ, TESSERA_PLUGIN_PATH=str(self.root)):
            self.refuses([*texts, "--field", "body", GOLDEN / "texts"], 7, "no reader of Parquet", "tools/setup extra")
        self.assertFalse((self.root / "run").exists() or (self.root / "out").exists())


if __name__ == "__main__":
    unittest.main()
