"""What a full disk and too little memory get: one line, an exit code, and no file that is not whole."""

import os
import resource
import shutil
import subprocess
import unittest

from program import ProgramTest, tree


def limit(what, amount):
    return lambda: resource.setrlimit(what, (amount, amount))


class FullDiskTest(ProgramTest):
    def check_leftovers(self, out):
        """Whatever there is is whole: the run can begin or go on, and ends as if nothing had been."""
        names = set(tree(out)) if out.exists() else set()
        self.assertFalse([name for name in names if "partial" in name])
        resume = ["--resume"] if "checkpoints/last.safetensors" in names else []
        self.train(out, "--quiet", *resume)
        self.assertEqual(self.weights(out), self.weights("straight"))

    def test_files_that_cannot_grow(self):
        self.train("straight", "--quiet")
        sizes = {name.split("/")[-1].split(".")[0]: len(content) for name, content in tree(self.root / "straight").items()}
        recipe, events, last, largest = sizes["recipe"], sizes["events"], sizes["last"], max(sizes.values())
        # The events begin with the recipe's text, and a little more.
        self.assertLess(recipe, events)
        self.assertLess(events, last)
        self.assertLess(last, largest)
        failed = set()
        for size in (0, recipe // 2, recipe, (events + last) // 2, (last + largest) // 2, 2 * largest):
            out = self.root / f"run{size}"
            process = self.start("train", self.recipe, "--out", out, "--quiet",
                                 preexec_fn=limit(resource.RLIMIT_FSIZE, size))
            output, errors = process.communicate(timeout=60)
            if size > largest:
                self.assertEqual(process.returncode, 0, errors)
                continue
            self.assertEqual(process.returncode, 5, f"{size}: {output}{errors}")
            *warnings, end = errors.splitlines()
            self.assertRegex(end, f"^tessera: {out}/[^:]*: cannot write: File too large")
            for warning in warnings:
                self.assertRegex(warning, f"^warning: .*: {out}/[^:]*: cannot write: File too large")
            failed |= {line.split(": cannot write")[0].split("/")[-1].split(".")[0] for line in (end, *warnings)}
            # The log is told once; a checkpoint is tried again after each epoch.
            self.assertLessEqual(sum("without a log" in warning for warning in warnings), 1)
            if size == recipe:
                self.assertEqual(sum("the state could not be saved" in warning for warning in warnings), 3)
            if size == 0:
                self.assertFalse(out.exists())
            self.check_leftovers(out)
        self.assertLessEqual({"recipe", "events", "last", "report"}, failed)

    def test_a_small_file_system(self):
        shell = shutil.which("unshare")
        disk = self.root / "disk"
        disk.mkdir()
        mount = f"mount -t tmpfs -o size=16k none {disk}"
        inside = [shell, "--map-root-user", "--mount", "sh", "-c"]
        if shell is None or subprocess.run([*inside, mount], capture_output=True, check=False).returncode != 0:
            self.skipTest("no file system can be mounted here")
        words = " ".join(map(str, self.words("train", self.recipe, "--out", disk / "run", "--quiet")))
        result = subprocess.run([*inside, f"{mount} && {words}; code=$?; find {disk} -name '*partial*'; exit $code"],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 5, result.stderr)
        self.assertNotIn("partial", result.stdout)
        self.assertRegex(result.stderr, f"(?m)^tessera: {disk}/run/[^:]*: cannot [a-z ]*: No space left on device\n$")

    def test_standard_output(self):
        for words in (["models"], ["models", "--json"], ["explain", "lenet", "--batch", 2, "--json"], ["--help"]):
            with open("/dev/full", "w", encoding="utf8") as full:
                process = self.start(*words, stdout=full)
                errors = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, 5, f"{words}: {errors}")
            self.assertRegex(errors, r"^tessera: [^\n]*(\n  in kernel [^\n]*)?\n$")


class MemoryTest(ProgramTest):
    def test_more_than_the_machine_has(self):
        self.refuses(["bench", "mlp", "--batch", 10**10], 6, "mlp", "TiB", "relu")
        self.refuses(["bench", "mlp", "--batch", 10**12], 3, "[1000000000000, 28, 28, 1]", "TiB")
        self.refuses(["bench", "mlp", "--batch", 2**63 - 1], 3, "[9223372036854775807, 28, 28, 1]", "TiB")

    @unittest.skipIf("address" in os.environ.get("TESSERA_SANITIZE", ""), "the sanitizer itself needs more address space")
    def test_less_than_it_takes(self):
        bench = ["bench", "resnet50", "--train", "--batch", 16, "--image-size", 64, "--iterations", 1, "--warmup", 0]
        train = ["train", self.recipe, "--out", self.root / "run", "--quiet"]
        for words, megabytes in ((bench, 200), (bench, 350), (train, 64)):
            process = self.start(*words, threads=1, preexec_fn=limit(resource.RLIMIT_AS, megabytes << 20))
            output, errors = process.communicate(timeout=60)
            # A library that finds no room for itself makes the device unsupported.
            self.assertIn(process.returncode, (6, 7) if words is train else (6,), f"{megabytes}: {output}{errors}")
            self.assertRegex(errors, r"^tessera: [^\n]*(\n  in kernel [^\n]*)?\n$")
            self.assertFalse([name for name in tree(self.root) if "partial" in name or "model.safe" in name])


if __name__ == "__main__":
    unittest.main()
