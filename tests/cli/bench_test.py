"""tessera bench: times of networks by name, of files and of recipes."""

import json
import unittest

from program import ROOT, ProgramTest
from task_data import write_pictures, write_table


class BenchTest(ProgramTest):
    def bench(self, *words):
        return json.loads(self.call("bench", *words, "--device", "cpu", "--iterations", 2, "--warmup", 1, "--json"))

    def test_networks_by_name(self):
        for words in ((), ("--train",)):
            timed = json.loads(self.call("bench", "mlp", "--batch", 4, "--iterations", 3, "--warmup", 1, "--json", *words))
            self.assertEqual(len(timed["milliseconds"]), 3)
            self.assertEqual(len(timed["samples_per_second"]), 3)
            self.assertGreater(timed["peak_memory_bytes"], 0)
            self.assertGreater(timed["compile_seconds"], 0)
        self.assertRegex(self.call("bench", "mlp", "--batch", 4, "--iterations", 2), r"device: cpu, .*\nmemory: .* of .*\n.*images/s")

    def test_check_by_the_formula(self):
        answers = {}
        for device in ("cpu", "reference"):
            words = ("bench", "mlp", "--batch", 4, "--json", "--check", "--device", device)
            answers[device] = json.loads(self.call(*words))["outputs"] + json.loads(self.call(*words, "--train"))["losses"]
        steps = ("bench", "mlp", "--batch", 4, "--json", "--check", "--train", "--steps", 5, "--batches", 2)
        losses = json.loads(self.call(*steps))["losses"]
        self.assertEqual(losses[0], answers["cpu"][10])  # batch 0 is that of --check alone
        self.assertNotAlmostEqual(losses[1], losses[0], places=2)  # and batch 1 another
        self.assertLess(losses[4], losses[2])
        frozen = json.loads(self.call(*steps, "--learning-rate", 0))["losses"]
        self.assertEqual(frozen[0::2], [frozen[0]] * 3)
        self.assertEqual(len(answers["cpu"]), 12)
        self.assertLess(answers["cpu"][11], answers["cpu"][10])  # the second loss is the smaller one
        # Losses and logits of about one, rounded some hundreds of times to fp32 in another order.
        for a, b in zip(answers["cpu"], answers["reference"]):
            self.assertAlmostEqual(a, b, delta=1e-5 + 1e-5 * abs(b))

    def test_recipes(self):
        for words in ((), ("--train",)):
            timed = self.bench(self.recipe, *words)
            self.assertEqual((timed["model"], timed["batch"], timed["train"]), (str(self.recipe), 16, bool(words)))
            self.assertEqual(self.bench(self.recipe, *words, "--batch", 4)["batch"], 4)
            self.assertEqual(self.bench(self.recipe, *words, "--set", "train.batch=8")["batch"], 8)
            self.assertEqual(timed.get("weights"), {"loss": 16, "accuracy": 16} if words else None)
            for rate, milliseconds in zip(timed["samples_per_second"], timed["milliseconds"]):
                self.assertAlmostEqual(rate, 16 / milliseconds * 1e3, delta=1e-3 * rate)
        averaged = self.bench(self.recipe, "--train", "--set", "train.ema_decay=0.9")
        self.assertGreater(averaged["variable_bytes"], timed["variable_bytes"])
        self.assertGreater(self.bench(self.recipe, "--train", "--loader", 2)["milliseconds"][0], 0)
        half = self.bench(self.recipe, "--train", "--precision", "bf16", "--tune")
        self.assertNotEqual(half["arena_bytes"], timed["arena_bytes"])

    def test_steps_of_accumulated_batches_are_timed_with_their_update(self):
        timed = self.bench(self.recipe, "--train", "--set", "train.accumulate=3")
        self.assertEqual((timed["accumulate"], len(timed["milliseconds"])), (3, 2))
        self.assertRegex(self.call("bench", self.recipe, "--train", "--set", "train.accumulate=3", "--device", "cpu"),
                         r"batch 16, 3 batches an update on cpu: .* images/s")
        self.assertEqual(self.bench(self.recipe, "--set", "train.accumulate=3")["accumulate"], 1)

    def test_several_ranks_make_a_recipes_step(self):
        told = self.call("launch", "--ranks", 2, "--", "bench", self.recipe, "--train", "--device", "cpu", "--json",
                         "--iterations", 2, "--reduce-type", "bf16", "--set", "train.local_steps=2", "--set",
                         "train.accumulate=2")
        timed = json.loads(told)
        self.assertEqual([timed[key] for key in ("ranks", "batch", "local_steps", "accumulate")], [2, 16, 2, 2])
        for rate, milliseconds in zip(timed["samples_per_second"], timed["milliseconds"]):
            self.assertAlmostEqual(rate, 32 / milliseconds * 1e3, delta=1e-3 * rate)
        self.refuses(["launch", "--ranks", 2, "--", "bench", self.recipe, "--train", "--device", "cpu",
                      "--shard-optimizer", "--set", "train.local_steps=2"], 2, "local_steps and shard_optimizer")

    def test_phases(self):
        write_pictures(self.root / "pictures")
        gan = (ROOT / "recipes/gan.toml", "--set", f"data.path={self.root}/pictures", "--batch", 4)
        first, named, second = (self.bench(*gan, "--train", *words)["variable_bytes"]
                                for words in ((), ("--phase", "discriminator"), ("--phase", "generator")))
        self.assertEqual(first, named)  # with the moments of the parameters that the phase trains
        self.assertNotEqual(first, second)
        self.refuses(["bench", *gan, "--train", "--phase", "generater"], 2, "did you mean 'generator'")
        self.refuses(["bench", *gan, "--phase", "generator"], 2, "--train")
        # Its noise is always the same.
        self.refuses(["bench", *gan, "--device", "cpu"], 2, "the same at every run")

    def test_what_recipes_refuse(self):
        self.refuses(["bench", self.recipe, "--check"], 2, "--check", "tiny.toml", "recipe")
        self.refuses(["bench", self.recipe, "--classes", 3], 2, "--classes", "tiny.toml")
        self.refuses(["bench", self.recipe, "--size", "length=3"], 2, "--size", "tiny.toml")
        self.refuses(["bench", self.recipe, "--train", "--batch", 1000], 2, "do not fill one batch of 1000")
        self.refuses(["bench", "mlp", "--set", "train.batch=3"], 2, "--set", "mlp")
        self.refuses(["bench", self.root / "tinny.toml"], 5, "tinny.toml")
        write_table(self.root / "flights.csv")
        flights = ("bench", ROOT / "recipes/flights.toml", "--train", "--set", f"data.path={self.root}/flights.csv")
        self.assertIn("samples/s", self.call(*flights, "--device", "cpu", "--iterations", 1))
        # Of tables, which are in memory and have no threads to count.
        timed = json.loads(self.call(*flights, "--device", "cpu", "--loader", 2, "--iterations", 3, "--json"))
        self.assertEqual(timed["weights"]["loss"], timed["batch"])


if __name__ == "__main__":
    unittest.main()
