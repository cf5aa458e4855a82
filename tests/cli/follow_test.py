"""Evaluation beside training: a process that follows a run finds what the training itself would have found, whenever either begins, ends
or is killed."""

import json
import re
import shutil
import signal
import time
import unittest

from program import ProgramTest, checkpoint

BESIDE = ("--set", "train.evaluate_beside=true", "--quiet")


class FollowTest(ProgramTest):
    def follow(self, out, **options):
        process = self.start("eval", self.root / out, "--follow", "--json", **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def steps_of(self, output):
        return [json.loads(line)["step"] for line in output.splitlines()]

    def follow_to_the_end(self, out):
        return self.steps_of(self.call("eval", self.root / out, "--follow", "--json"))

    def end_of(self, process):
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, output + errors)
        return self.steps_of(output)

    def wait_until(self, condition):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def found(self, out):
        """The evaluations of a run that was followed."""
        return json.loads((self.root / out / "evaluation" / "results.json").read_text())["report"]["history"]["evaluations"]

    def evaluated(self, out):
        """Those of one that evaluated itself."""
        return json.loads(checkpoint(self.root / out / "checkpoints" / "last.safetensors")[0]["history"])["evaluations"]

    def results_of(self, out):
        summary = json.loads((self.root / out / "summary.json").read_text())
        return {name: value for name, value in summary.items() if name.startswith("test_")}

    def check_same(self, out, usual):
        """To the last bit."""
        self.assertEqual(self.found(out), self.evaluated(usual))
        self.assertEqual(self.weights(out), self.weights(usual))
        best = "checkpoints/best.safetensors"
        self.assertEqual((self.root / out / best).read_bytes(), (self.root / usual / best).read_bytes())
        self.assertTrue(self.results_of(usual))
        self.assertEqual(self.results_of(out), self.results_of(usual))
        report, own = ((self.root / run / "report.html").read_text() for run in (out, usual))
        for part in (r"Test accuracy</dt><dd>[\d.]+", r"best [\d.]+ %, epoch \d", "(?s)<h2>Confusion.*?</section>"):
            expected = re.findall(part, own)
            self.assertTrue(expected, part)
            self.assertEqual(re.findall(part, report), expected, part)
        self.assertEqual(self.waiting(out), [])

    def waiting(self, out):
        return sorted(path.name for path in (self.root / out / "evaluation").glob("*.safetensors"))

    def events(self, out):
        return b"".join(path.read_bytes() for path in (self.root / out / "evaluation").glob("events.out.tfevents.*"))


class OrderTest(FollowTest):
    def test_training_ends_first(self):
        self.train("usual", "--quiet")
        self.train("run", *BESIDE)
        self.assertEqual(self.waiting("run"), [f"step-{step:08}.safetensors" for step in (6, 12, 18, 24)])
        self.assertEqual(self.results_of("run"), {})
        self.assertNotIn("evaluations", checkpoint(self.root / "run" / "checkpoints" / "last.safetensors")[0]["history"].replace('"evaluations":[]', ""))
        self.assertEqual(self.follow_to_the_end("run"), [6, 12, 18, 24])
        self.check_same("run", "usual")
        self.assertEqual(self.events("run").count(b"epoch/test_accuracy"), 4)
        # What is complete is completed again, and nothing evaluated.
        self.assertEqual(self.follow_to_the_end("run"), [])
        self.check_same("run", "usual")

    def test_the_follower_starts_first(self):
        follower = self.follow("run")
        self.train("usual", "--quiet")
        self.assertIsNone(follower.poll())
        self.train("run", *BESIDE)
        self.assertEqual(self.end_of(follower), [6, 12, 18, 24])
        self.check_same("run", "usual")

    def test_every_second_epoch_with_averages_and_stages(self):
        recipe = self.recipe.read_text()
        self.recipe.write_text(recipe.replace("epochs = 4", "epochs = 3\nevaluate_every = 2\nema_decay = 0.9") +
                               "\n[[stages]]\n\n[[stages]]\ntrain.batch = 10\noptimizer.learning_rate = 0.01\n")
        self.train("usual", "--quiet")
        self.train("run", *BESIDE)
        # Three epochs of 6 steps and three of 10; after the last of each stage there is an evaluation.
        self.assertEqual(self.follow_to_the_end("run"), [12, 18, 28, 48])
        self.check_same("run", "usual")

    def test_ranks_train_and_one_process_evaluates(self):
        self.train("usual", "--quiet")
        follower = self.follow("run")
        self.call("launch", "--ranks", 2, "--", "train", self.recipe, "--out", self.root / "run", *BESIDE)
        self.assertEqual(self.end_of(follower), [6, 12, 18, 24])
        # Ranks add up what one has, rounded otherwise.
        for one, other in zip(self.found("run"), self.evaluated("usual"), strict=True):
            self.assertAlmostEqual(one["results"]["loss"], other["results"]["loss"], delta=1e-3)


class FaultTest(FollowTest):
    def test_a_follower_that_is_killed_goes_on(self):
        self.train("usual", "--quiet")
        self.train("run", *BESIDE)
        told = []
        while not told or told[-1] != 24:
            follower = self.follow("run")
            line = follower.stdout.readline()
            follower.send_signal(signal.SIGKILL)
            output = line + follower.communicate()[0]
            if not output:
                break  # all was evaluated
            told += self.steps_of(output)
        # None is told twice, and none that was kept before it was told is evaluated again.
        self.assertEqual(told, sorted(set(told)))
        self.follow_to_the_end("run")
        self.check_same("run", "usual")

    def test_weights_that_a_killed_follower_had_taken_come_first(self):
        self.train("usual", "--quiet")
        self.train("run", *BESIDE)
        folder = self.root / "run" / "evaluation"
        (folder / "step-00000006.safetensors").rename(folder / "taken.safetensors")
        self.assertEqual(self.follow_to_the_end("run"), [6, 12, 18, 24])
        self.check_same("run", "usual")

    def test_both_go_on_after_a_stop(self):
        self.train("usual", "--quiet")
        self.train("run", *BESIDE, "--max-steps", 13)
        follower = self.follow("run")
        self.assertEqual(self.steps_of(follower.stdout.readline() + follower.stdout.readline()), [6, 12])
        follower.send_signal(signal.SIGINT)  # while it waits for a training that was stopped
        self.assertEqual((follower.communicate(timeout=60)[0], follower.returncode), ("", 130))
        self.train("run", *BESIDE, "--resume")
        self.assertEqual(self.follow_to_the_end("run"), [18, 24])
        self.check_same("run", "usual")

    def test_a_training_that_goes_back_is_evaluated_anew(self):
        for out, beside in (("usual", ("--quiet",)), ("run", BESIDE)):
            last = self.root / out / "checkpoints" / "last.safetensors"
            self.train(out, *beside, "--max-steps", 13)
            kept = shutil.copy(last, self.root / "kept")
            self.train(out, *beside, "--resume", "--max-steps", 19)
            if beside == BESIDE:
                follower = self.follow(out)
                self.assertEqual(self.steps_of("".join(follower.stdout.readline() for _ in range(3))), [6, 12, 18])
                follower.send_signal(signal.SIGINT)
                follower.communicate(timeout=60)
            shutil.copy(kept, last)
            self.train(out, *beside, "--resume", "--set", "optimizer.learning_rate=0.01")
        self.assertEqual(self.follow_to_the_end("run"), [18, 24])
        self.assertEqual(self.found("run"), self.evaluated("usual"))

    def test_so_many_weights_wait(self):
        process = self.start("train", self.recipe, "--out", self.root / "run", *BESIDE, "--set", "train.keep_unevaluated=2")
        errors = process.communicate(timeout=120)[1]
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(errors.count("those after step 18 are left out"), 1, errors)
        self.assertEqual(errors.count("wait to be evaluated"), 1, errors)
        self.assertEqual(self.follow_to_the_end("run"), [6, 12, 24])

    def test_refusals(self):
        self.train("usual", "--quiet", "--set", "train.epochs=1")
        follow = ["eval", self.root / "usual", "--follow"]
        self.refuses(follow, 2, "evaluates by itself")
        self.refuses([*follow, "--count", 3], 2, "--count")
        self.refuses([*follow, "--devices", 2], 2, "--devices")
        self.train("run", *BESIDE, "--max-steps", 1)
        follower = self.follow("run")
        self.wait_until((self.root / "run" / ".tessera-evaluation.lock").exists)
        self.refuses(["eval", self.root / "run", "--follow"], 5, "another process evaluates", follower.pid)
        follower.send_signal(signal.SIGTERM)
        self.assertEqual(follower.wait(timeout=60), 130)
        self.refuses(["train", self.recipe, "--out", self.root / "run", "--resume"], 2, "train.evaluate_beside")


if __name__ == "__main__":
    unittest.main()
