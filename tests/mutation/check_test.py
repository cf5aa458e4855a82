"""The driver lists what no test noticed and what no test compared, takes excuses that fit, and refuses those that
nothing needs."""

import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

CHECK = pathlib.Path(__file__).with_name("check.py")
EXCUSE = '[[excuse]]\ntest = "Suite.*"\nmutation = ["zeros"]\nwhat = "* of nothing"\nreason = "it is"\n'


class CheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, properties, excuses, *options, status=1, families=("sums",), device="cpu"):
        """The output and the exit code for a program whose one test has these properties, on a device of these families."""
        test = {"classname": "Suite", "name": "Test", **{key: json.dumps(value) for key, value in properties.items()}}
        named = {"classname": "Families", "name": "AreThese", "time": "1.25s", "families": json.dumps(families)}
        report = json.dumps({"testsuites": [{"testsuite": [test, named]}]})
        program = self.folder / "tests"
        program.write_text(
            f"#!{sys.executable}\nimport os, pathlib, sys\n"
            "path = next(word for word in sys.argv if word.startswith('--gtest_output=json:'))[20:]\n"
            "assert os.environ['TESSERA_TEST_MUTATION']\n"
            f"seen = pathlib.Path({str(self.folder)!r}) / os.environ['GTEST_SHARD_INDEX']\n"
            "seen.with_suffix('.card').write_text(os.environ.get('CUDA_VISIBLE_DEVICES', ''))\n"
            f"if os.environ['GTEST_SHARD_INDEX'] == '0': pathlib.Path(path).write_text({report!r})\n"
            f"sys.exit({status})\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (self.folder / "excuses.toml").write_text(excuses or "excuse = []\n")
        command = [sys.executable, CHECK, program, "--device", device, "--excuses", self.folder / "excuses.toml", *options]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return result.stdout + result.stderr, result.returncode

    def test_all_noticed(self):
        output, status = self.check({"zeros: sums": {"noticed": 3, "unnoticed": []}}, "")
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"sums +3/3 +- +- +-")

    def test_told_to_end_it_says_what_has_ended(self):
        report = {"classname": "Suite", "name": "Test", "zeros: sums": json.dumps({"noticed": 3, "unnoticed": []})}
        program = self.folder / "tests"
        program.write_text(
            f"#!{sys.executable}\nimport os, pathlib, sys, time\n"
            "path = next(word for word in sys.argv if word.startswith('--gtest_output=json:'))[20:]\n"
            f"pathlib.Path(path).write_text({json.dumps({'testsuites': [{'testsuite': [report]}]})!r})\n"
            "if os.environ['GTEST_SHARD_INDEX'] == '1':\n"
            f"    pathlib.Path({str(self.folder)!r}, 'second').touch()\n"
            "    time.sleep(600)\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        command = [sys.executable, CHECK, program, "--device", "cpu", "--processes", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            while not (self.folder / "second").exists():
                time.sleep(0.01)
            process.terminate()
            output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, output)
        self.assertRegex(output, r"sums +3/3 +- +- +-")
        self.assertIn("told to end after 1 of 4 parts", output)

    def test_a_survivor_fails(self):
        output, status = self.check({"zeros: sums": {"noticed": 3, "unnoticed": ["a sum of nothing"]}}, "")
        self.assertEqual(status, 1)
        self.assertIn("unnoticed: zeros in Suite.Test:\n  a sum of nothing", output)
        self.assertRegex(output, r"sums +3/4")

    def test_an_excuse_needs_another_comparison_that_notices(self):
        some = {"zeros: sums": {"noticed": 3, "unnoticed": ["a sum of nothing"]}}
        none = {"zeros: sums": {"noticed": 0, "unnoticed": ["a sum of nothing"]}}
        self.assertEqual(self.check(some, EXCUSE)[1], 0)
        self.assertEqual(self.check(none, EXCUSE)[1], 1)
        self.assertEqual(self.check(none, EXCUSE + "whole = true\n")[1], 0)
        self.assertEqual(self.check({"zeros: sums": {"noticed": 3, "unnoticed": ["another sum"]}}, EXCUSE)[1], 1)

    def test_an_excuse_that_nothing_needs_fails_where_all_tests_ran(self):
        properties = {"zeros: sums": {"noticed": 3, "unnoticed": []}}
        self.assertEqual(self.check(properties, EXCUSE)[1], 0)
        self.assertEqual(self.check(properties, EXCUSE + 'device = "cuda"\n', "--complete")[1], 0)
        output, status = self.check(properties, EXCUSE, "--complete")
        self.assertEqual(status, 1)
        self.assertIn("an excuse that nothing needs", output)

    def test_a_family_that_nothing_compares_fails(self):
        properties = {"zeros: sums": {"noticed": 3, "unnoticed": []}}
        output, status = self.check(properties, "", families=("products", "sums"))
        self.assertEqual(status, 1)
        self.assertIn("a family of kernels that was compared in nothing: products\n", output)
        self.assertIn("0 unnoticed, 1 families not compared", output)
        output, status = self.check(properties, "", families=())
        self.assertEqual(status, 1)
        self.assertIn("no test says which the device has", output)

    def test_the_slowest_tests_are_named(self):
        output, _ = self.check({"zeros: sums": {"noticed": 3, "unnoticed": []}}, "")
        self.assertIn("     1.2 s  Families.AreThese\n", output)

    def test_parts_are_shared_by_the_gpus(self):
        with unittest.mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="5,7"):
            self.check({"zeros: sums": {"noticed": 3, "unnoticed": []}}, "", "--processes", "3", device="cuda")
        cards = {int(path.stem): path.read_text() for path in self.folder.glob("*.card")}
        self.assertEqual(cards, {part: "57"[part % 2] for part in range(12)})

    def test_no_device_is_told_apart(self):
        self.assertEqual(self.check({}, "", status=0)[1], 77)

    def test_a_crash_is_no_success(self):
        output, status = self.check({}, "", status=139)
        self.assertEqual(status, 1)
        self.assertIn("ended with 139", output)


if __name__ == "__main__":
    unittest.main()
