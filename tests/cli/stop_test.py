"""What ends a training early, or would in other programs: signals, closed pipes, full disks, logs that fail."""

import os
import resource
import signal
import unittest

from program import ENDLESS, LONG, ProgramTest, checkpoint, tree


class SignalTest(ProgramTest):
    def test_each_saves_first_and_resuming_gives_the_same_bytes(self):
        self.train("straight", "--quiet", *LONG)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            out, told = self.stop([number])
            self.goes_on_to(out, "straight", told)

    def test_a_session_that_ends_sends_more_than_one(self):
        self.train("straight", "--quiet", *LONG)
        out, told = self.stop([signal.SIGTERM, signal.SIGHUP, signal.SIGTERM, signal.SIGHUP])
        self.goes_on_to(out, "straight", told)

    def test_a_second_interrupt_ends_it_at_once_and_what_was_saved_stays_whole(self):
        words = ("--set", "train.checkpoint_steps=5")
        process = self.begin(self.root / "run", *words, *ENDLESS)
        while not (self.root / "run" / "checkpoints" / "last.safetensors").exists():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        # Two that arrive before the first was looked at are one.
        self.assertIn(process.returncode, (-signal.SIGINT, 130))
        step = int(checkpoint(self.root / "run" / "checkpoints" / "last.safetensors")[0]["step"])
        recipe = self.root / "run" / "recipe.toml"
        for name in ("run", "straight"):
            resume = ["--resume"] if name == "run" else []
            self.call("train", recipe, "--out", self.root / name, "--quiet", "--max-steps", step + 7, *resume)
        self.assertEqual(*(checkpoint(self.root / name / "checkpoints" / "last.safetensors")[1] for name in ("run", "straight")))

    def test_a_whole_group_is_interrupted(self):
        first = self.begin(self.root / "first", *ENDLESS, preexec_fn=os.setpgrp)
        second = self.begin(self.root / "second", *ENDLESS, preexec_fn=lambda: os.setpgid(0, first.pid))
        os.killpg(first.pid, signal.SIGINT)
        for process in (first, second):
            output, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, output + errors)
            self.call(*output.split("Go on with:")[1].split()[1:], "--quiet", "--max-steps", 1)

    def test_a_run_without_a_terminal_outlives_it(self):
        process = self.start("train", self.recipe, "--out", self.root / "run", "--quiet",
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        while process.poll() is None:
            process.send_signal(signal.SIGHUP)
        self.assertEqual(process.returncode, 0, process.communicate()[1])

    def test_an_evaluation_that_was_broken_off_is_made_by_the_resumed_run(self):
        words = ("--set", "train.epochs=100", "--set", "train.evaluate_every=1")
        self.train("straight", "--quiet", *LONG, *words)
        out, told = self.stop([signal.SIGTERM], *words)
        self.goes_on_to(out, "straight", told)
        rows = [(folder / "report.html").read_text().count("<tr><td>") for folder in (out, self.root / "straight")]
        self.assertEqual(rows[0], rows[1])  # no epoch is missing


class OutputTest(ProgramTest):
    def check_all_there(self, out):
        self.assertEqual(self.weights(out), self.weights("straight"))
        for name in ("summary.json", "report.html", "checkpoints/last.safetensors"):
            self.assertTrue((self.root / out / name).exists(), name)

    def test_a_reader_that_goes_away(self):
        self.train("straight", "--quiet")
        process = self.start("train", self.recipe, "--out", self.root / "run")
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        self.assertIn(process.wait(60), (0, 5), errors)  # 0: all was written before the reader went away
        if process.returncode:
            self.assertRegex(errors, r"^tessera: [^\n]*\n$")
        self.check_all_there("run")

    def test_nobody_reads_at_all(self):
        self.train("straight", "--quiet")
        read, write = os.pipe()
        os.close(read)
        with open("/dev/full", "w", encoding="utf8") as full, os.fdopen(write, "w") as pipe:
            for name, streams in (("full", {"stdout": full, "stderr": full}), ("pipe", {"stdout": pipe, "stderr": pipe})):
                process = self.start("train", self.recipe, "--out", self.root / name, **streams)
                self.assertEqual(process.wait(60), 5)
                self.check_all_there(name)

    def test_exit_codes_hold_without_standard_error(self):
        read, write = os.pipe()
        os.close(read)
        cases = [(["train", self.root / "missing.toml", "--out", self.root / "none"], 5), (["bench", "mpl"], 2), (["trian"], 2),
                 (["models", "--jsno"], 2), (["train", self.recipe, "--out", self.root / "none", "--device", "cuda:99"], 7),
                 (["bench", "mlp", "--batch", 2**63 - 1], 3)]
        with open("/dev/full", "w", encoding="utf8") as full, os.fdopen(write, "w") as pipe:
            for words, code in cases:
                for options in ({"stderr": full}, {"stderr": pipe}, {"preexec_fn": lambda: os.close(2)}):
                    process = self.start(*words, **options)
                    process.communicate(timeout=60)
                    self.assertEqual(process.returncode, code, f"{words} {options}")

    def test_closed_descriptors_are_not_those_of_files(self):
        """The lowest free number is given to the next file that is opened: messages must not go into it."""
        self.train("straight", "--quiet")

        def close_all():
            for descriptor in range(3):
                os.close(descriptor)

        process = self.start("train", self.recipe, "--out", self.root / "run", preexec_fn=close_all)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 5)  # standard output could not be written
        self.check_all_there("run")
        for name, content in tree(self.root / "run").items():
            self.assertNotIn(b"tessera: ", content, name)


class LogTest(ProgramTest):
    def test_a_log_that_cannot_grow_does_not_end_the_training(self):
        self.train("straight", "--quiet", *LONG)
        sizes = {name.split("/")[-1].split(".")[0]: len(content) for name, content in tree(self.root / "straight").items()}
        events = sizes.pop("events")
        self.assertLess(max(sizes.values()), events)
        limit = (max(sizes.values()) + events) // 2
        process = self.start("train", self.recipe, "--out", self.root / "run", "--quiet", *LONG,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, output + errors)
        self.assertRegex(errors, r"^warning: [^\n]*events\.out\.tfevents[^\n]*cannot write: File too large\n$")
        self.assertEqual(self.weights("run"), self.weights("straight"))


if __name__ == "__main__":
    unittest.main()
