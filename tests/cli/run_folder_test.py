"""The folder of a run: one run at a time, a recipe that is written once, and what a resumed run may have otherwise."""

import signal
import unittest

from program import ENDLESS, LONG, ProgramTest, checkpoint, tree


class FolderTest(ProgramTest):
    def test_two_runs_do_not_share_one(self):
        out = self.root / "run"
        first = self.begin(out, *ENDLESS)
        before = (out / "recipe.toml").read_bytes()
        for words in ((), ("--set", "optimizer.learning_rate=0.5")):
            message = self.train("run", "--quiet", *words, code=5)
            self.assertIn(f"{out}: another run is at work in this folder (process {first.pid})", message)
        self.assertEqual((out / "recipe.toml").read_bytes(), before)
        first.kill()  # the lock goes with the process
        first.wait()
        self.train("run", "--quiet", *LONG, *ENDLESS, "--max-steps", 3)
        self.assertFalse(list(out.glob(".*")))

    def test_a_run_that_goes_on_is_alone_too(self):
        self.train("run", "--quiet", "--max-steps", 2, *LONG, *ENDLESS)
        for file in (self.root / "run").glob("events.out.tfevents.*"):
            file.unlink()  # so that those of the second part show that it has begun
        first = self.begin(self.root / "run", "--resume", *ENDLESS)
        self.assertIn("another run", self.train("run", "--quiet", "--resume", *LONG, *ENDLESS, code=5))
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(60), 130)

    def test_what_is_refused_before_the_first_step_leaves_nothing(self):
        for words, code in ((["--set", "train.accumulate=100"], 2), (["--set", "train.batch=101"], 2),
                            (["--set", "model.name=mpl"], 2), (["--device", "cuda:99"], 7)):
            before = tree(self.root)
            self.train("some/where/run", "--quiet", *words, code=code)
            self.assertEqual(tree(self.root), before)
            self.assertFalse((self.root / "some").exists(), words)

    def test_a_recipe_of_the_user_is_not_written_over(self):
        out = self.root / "run"
        out.mkdir()
        mine = out / "recipe.toml"
        mine.write_text("# my own\n" + self.recipe.read_text())
        self.refuses(["train", mine, "--out", out], 5, mine, "--out")
        self.refuses(["train", self.recipe, "--out", out], 5, mine, "--out")

    def test_a_run_that_was_killed_early_begins_anew(self):
        out, _ = self.stop([signal.SIGKILL], code=-signal.SIGKILL)
        self.train(out, "--quiet", *LONG)
        self.train("straight", "--quiet", *LONG)
        self.assertEqual(self.weights(out), self.weights("straight"))

    def test_final_weights_protect_a_folder_too(self):
        self.train("run", "--quiet")
        (self.root / "run" / "checkpoints" / "last.safetensors").unlink()
        self.refuses(["train", self.recipe, "--out", self.root / "run"], 5, "holds a run already")


class ResumeTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.out = self.root / "run"
        self.last = self.out / "checkpoints" / "last.safetensors"

    def resume(self, *words, recipe=None):
        return ["train", recipe or self.recipe, "--out", self.out, "--resume", "--quiet", *words]

    def test_other_data_under_the_same_position_is_refused_and_changes_nothing(self):
        self.train("straight", "--quiet")
        self.train("run", "--quiet", "--max-steps", 5)
        for words, key in ((["data.train_images=32"], "data.train_images"), (["data.shuffle=false"], "data.shuffle"),
                           (["train.seed=2"], "train.seed"), (["train.accumulate=2"], "train.accumulate")):
            self.refuses(self.resume("--set", *words), 2, self.last, key, "cannot go on")
        self.call(*self.resume(recipe=self.out / "recipe.toml"))
        self.assertEqual(self.weights("run"), self.weights("straight"))

    def test_another_recipe_is_named_key_by_key(self):
        words = ("--set", "train.precision=bf16", "--set", "optimizer.momentum=0.5")
        self.train("run", "--quiet", "--max-steps", 5, *words)
        self.refuses(self.resume(), 2, self.last, 'train.precision = "bf16" (now "auto")',
                     "optimizer.momentum = 0.5 (now 0.9)", "--set")
        self.train("straight", "--quiet", *words)
        self.call(*self.resume(*words))  # what was asked for in the same words is no difference
        self.assertEqual(self.weights("run"), self.weights("straight"))

    def test_half_precision_does_not_end_in_a_riddle(self):
        self.train("run", "--quiet", "--max-steps", 5, "--set", "train.precision=fp16")
        self.refuses(self.resume(), 2, 'train.precision = "fp16" (now "auto")')
        self.call(*self.resume("--set", "train.precision=fp32"))

    def test_what_was_asked_for_is_kept(self):
        self.train("run", "--quiet", "--max-steps", 5)
        process = self.start(*self.resume("--set", "optimizer.momentum=0.5", "--set", "train.checkpoint_every=2",
                                          "--max-steps", 7))
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertRegex(errors, r"(?m)^info: optimizer.momentum is 0.5 from step 5 on, and was 0.9$")
        self.assertRegex(errors, r"(?m)^info: train.checkpoint_every is 2 from step 5 on, and was 1$")
        self.assertIn("momentum = 0.5", (self.out / "recipe.toml").read_text())
        history = checkpoint(self.last)[0]["history"]
        self.assertIn('"key":"optimizer.momentum","before":"0.9","after":"0.5"', history)
        # From then on it is the run's.
        self.refuses(self.resume(), 2, "optimizer.momentum = 0.5 (now 0.9)")
        self.call(*output.split("Go on with:")[1].split()[1:], "--quiet")
        self.assertIn("From step 5 on optimizer.momentum is 0.5", (self.out / "report.html").read_text())

    def test_a_recipe_that_was_edited_stays(self):
        self.train("run", "--quiet", "--max-steps", 5)
        mine = self.out / "recipe.toml"
        mine.write_text("# mine\n" + mine.read_text().replace("checkpoint_every = 1", "checkpoint_every = 3"))
        before = mine.read_bytes()
        process = self.start(*self.resume(recipe=mine))
        errors = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("info: train.checkpoint_every is 3", errors)
        self.assertEqual(mine.read_bytes(), before)

    def test_the_last_checkpoints_stay(self):
        self.train("run", "--quiet", "--set", "train.checkpoint_steps=4", "--set", "train.keep_checkpoints=3")
        names = {path.name for path in self.last.parent.iterdir()}
        self.assertEqual(names, {"best.safetensors", "last.safetensors", "step-00000018.safetensors",
                                 "step-00000020.safetensors"})
        self.assertEqual(checkpoint(self.last)[0]["step"], "24")


if __name__ == "__main__":
    unittest.main()
