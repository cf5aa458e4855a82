"""Fine tuning of BERT: texts and labels of one's own, from weights that were pretrained, to answers about texts."""

import json
import os
import unittest

from program import ROOT, ProgramTest, checkpoint, tree
from task_data import EXAMPLES, write_examples

RECIPES = {"text_classification": "topics", "text_tagging": "authors", "question_answering": "sources"}
SMALL = ("train.device=cpu", "train.batch=8", "model.width=32", "model.layers=1", "model.positions=32", "data.tokens=24",
         "data.prefetch=0")


def words_of(values):
    return [word for value in values for word in ("--set", value)]


class FineTuningTest(ProgramTest):
    def setUp(self):
        super().setUp()
        write_examples(self.root)
        self.tokenizer = self.root / "tokenizer"
        self.call("data", "tokenize", "--train", "wordpiece", "--vocabulary", 60, self.root / "words", "-o", self.tokenizer)

    def recipe_of(self, task, *values, tokenizer=None):
        """The recipe's words with small data."""
        values = [f"data.path={self.root / EXAMPLES[task]}", f"data.tokenizer={tokenizer or self.tokenizer}", *SMALL, *values]
        return [ROOT / "recipes" / f"{RECIPES[task]}.toml", *words_of(values)]

    def train_recipe(self, task, out, *words, values=()):
        self.call("train", *self.recipe_of(task, *values), "--out", self.root / out, "--quiet", *words)
        return self.root / out

    def summary(self, run):
        return json.loads((run / "summary.json").read_text())

    def test_each_learns_resumes_and_answers(self):
        told = {"text_classification": (["Ada sings .", "Alan sleeps ."], r"^loud \([^)]*\)\n  Ada sings \.\nquiet "),
                "text_tagging": (["today Grace Hopper sings ."], r"^text 0: today \[name: Grace Hopper\] sings \.\n$"),
                "question_answering": (["who sings ?", "now and then Ada sings ."], r"^who sings \?\n  ada\n$|^who sings \?\n  Ada\n$")}
        measures = {"text_classification": {"accuracy": 1}, "text_tagging": {"f1": 1, "accuracy": 1},
                    "question_answering": {"exact_match": 1, "f1": 1}}
        for task, (texts, expected) in told.items():
            values = ["train.epochs=8", "optimizer.learning_rate=5e-3"]
            straight = self.train_recipe(task, f"{task}-straight", values=values)
            stopped = self.train_recipe(task, f"{task}-stopped", "--max-steps", 9, values=values)
            self.call("train", stopped / "recipe.toml", "--out", stopped, "--resume", "--quiet")
            tensors = [checkpoint(run / "checkpoints/last.safetensors")[1] for run in (stopped, straight)]
            self.assertEqual(tensors[0], tensors[1], task)
            for name, least in measures[task].items():
                self.assertGreaterEqual(self.summary(straight)[f"test_{name}"], least, (task, name))
            words = [word for text in texts for word in ("--text", text)]
            self.assertRegex(self.call("predict", straight, *words), expected)
            if "TESSERA_ONNX_TESTS" in os.environ:  # built with the writer of ONNX
                self.call("export", straight, "--output", self.root / f"{task}.onnx")
                self.assertIn("lengths: int32[batch]", self.call("run", self.root / f"{task}.onnx"))
            self.assertRegex(self.call("predict", straight, "--all"), r"(\d+) of \1 (right|words right|answers exact)\n$")

    def test_files_of_ones_own_and_networks_without_their_data(self):
        run = self.train_recipe("text_classification", "run", values=["train.epochs=1"])
        config = json.loads((run / "config.json").read_text())
        self.assertEqual((config["architectures"], config["id2label"]),
                         (["BertForSequenceClassification"], {"0": "loud", "1": "quiet"}))
        (self.root / "topics.tsv").rename(self.root / "hidden.tsv")
        (self.root / "topics.tsv").write_text("text\tlabel\n")  # a recipe names it; nobody reads it
        lines = self.root / "lines.txt"
        lines.write_text("Ada sings .\n\nAlan sleeps .\n")
        table = self.root / "table.csv"
        table.write_text('text,more\n"Ada, sings .",1\n')
        objects = self.root / "objects.jsonl"
        objects.write_text('{"text": "Ada reads ."}\n')
        told = self.call("predict", run, lines, table, objects)
        self.assertRegex(told, r"(?s)^\w+ \(.*\n  Ada sings \.\n.*  Alan sleeps \.\n.*  Ada, sings \.\n.*  Ada reads \.\n$")

    def test_starting_from_pretrained_weights_that_stay(self):
        shards = self.root / "shards"
        text = self.root / "text"
        words = (self.root / "words").read_text().split("\n")
        text.write_text("\n\n".join(" ".join(words[i:i + 5]) for i in range(0, 250, 5)))
        self.call("data", "tokenize", "--tokenizer", self.tokenizer, text, "-o", shards, "--quiet")
        pretraining = [f"data.path={shards}", *SMALL, "train.epochs=1"]
        pretrained = self.root / "pretrained"
        self.call("train", ROOT / "recipes/bert_tiny.toml", *words_of(pretraining), "--out", pretrained, "--quiet")
        known = checkpoint(pretrained / "model.safetensors")
        for task, head in (("text_classification", "classifier"), ("text_tagging", "classifier"), ("question_answering", "qa_outputs")):
            run = self.root / task
            values = [f"model.config={pretrained / 'config.json'}", f"model.weights={pretrained / 'model.safetensors'}",
                      "train.epochs=1", "train.freeze=['bert.']"]
            self.call("train", *self.recipe_of(task, *values), "--out", run, "--quiet", "--max-steps", 3)
            state = self.tensors(run / "checkpoints/last.safetensors")
            before = self.tensors(pretrained / "model.safetensors")
            for name, value in before.items():
                if name.startswith("bert.") and name in state:
                    self.assertEqual(value, state[name], name)
            self.assertIn(f"{head}.weight/first_moment", state)
            self.assertNotIn("bert.embeddings.word_embeddings.weight/first_moment", state)
        self.assertEqual(checkpoint(pretrained / "model.safetensors"), known)
        # And the other way: pretraining goes on from what was fine tuned, whose other head it leaves out.
        run = self.train_recipe("text_tagging", "tuned", values=[f"model.config={pretrained / 'config.json'}", "train.epochs=1"])
        further = [f"model.config={run / 'config.json'}", f"model.weights={run / 'model.safetensors'}"]
        self.call("train", ROOT / "recipes/bert_tiny.toml", *words_of(pretraining + further), "--out", self.root / "further",
                  "--quiet", "--max-steps", 2)
        self.assertIn("cls.predictions.bias", self.tensors(self.root / "further/checkpoints/last.safetensors"))

    def tensors(self, path):
        """The bytes of each tensor by its name."""
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8:8 + length])
        return {name: content[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]]
                for name, entry in header.items() if name != "__metadata__"}

    def test_other_forms_of_files(self):
        (self.root / "pairs.csv").write_text("first,second,same\n" + "".join(
            f"{a} sings .,{b} reads .,{str(a == b).lower()}\n" for a in ("Ada", "Alan") for b in ("Ada", "Alan") for _ in range(12)))
        values = [f"data.path={self.root / 'pairs.csv'}", "data.text=first", "data.pair=second", "data.label=same", "train.epochs=1"]
        run = self.train_recipe("text_classification", "pairs", values=values)
        self.assertIn('labels = ["false", "true"]', (run / "recipe.toml").read_text())
        self.assertRegex(self.call("predict", run, "--text", "Ada sings .", "--text", "Ada reads ."),
                         r"^(true|false) \(.*\n  Ada sings \.\n  Ada reads \.\n$")
        self.refuses(["predict", run, "--text", "Ada"], 2, "pairs of texts")
        (self.root / "words.conll").write_text("-DOCSTART- O\n\n" + "Ada B-name\nsings O\n\n" * 30)
        run = self.train_recipe("text_tagging", "conll", values=[f"data.path={self.root / 'words.conll'}", "train.epochs=1"])
        self.assertEqual(self.summary(run)["task"], "text_tagging")
        (self.root / "questions.tsv").write_text("question\tcontext\tanswers\n" + "who sings ?\tAda sings .\tAda\n" * 20
                                                 + "who reads ?\tAda sings .\t\n" * 20)
        run = self.train_recipe("question_answering", "table",
                                values=[f"data.path={self.root / 'questions.tsv'}", "data.may_lack=true", "train.epochs=1",
                                        f"data.test_path={self.root / 'questions.tsv'}"])
        self.assertIn("test_exact_match", self.summary(run))

    def test_what_is_refused(self):
        def refused(task, code, *told, values=()):
            self.refuses(["train", *self.recipe_of(task, *values), "--out", self.root / "refused"], code, *told)

        refused("text_classification", 2, "there is no column 'lable'", "'label'", values=["data.label=lable"])
        refused("text_classification", 2, "'data.tokenizer' is missing", values=["data.tokenizer="])
        refused("text_classification", 4, "'loud' is none of the labels", values=["data.labels=['quiet', 'noisy']"])
        refused("text_tagging", 4, "line 1 has no list of texts 'words'", values=["data.words=words"])
        refused("text_tagging", 2, "'data.tokens' (24)", "'model.positions' (16)", values=["model.positions=16"])
        broken = self.root / "broken.jsonl"
        for line, told in (("[]", "line 1 is no JSON object"), ('{"question": "who", "context": "Ada"}', "no 'answers'"),
                           ('{"question": "who", "context": "Ada", "answers": "Alan"}', "'Alan' does not stand there"),
                           ('{"question": "who", "context": "Ada", "answers": {"text": ["Ada"], "answer_start": [1]}}', "'Ada' does not"),
                           ('{"question": "who", "context": "Ada", "answers": {"text": ["Ada"]}}', "of one length")):
            broken.write_text(line + "\n")
            refused("question_answering", 4, "broken.jsonl", told, values=[f"data.path={broken}"])
        self.assertNotIn("refused", {path.split("/")[0] for path in tree(self.root)})


if __name__ == "__main__":
    unittest.main()
