"""The driver lists what no test noticed, takes excuses that fit, and refuses those that nothing needs."""

import json
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check.py")
EXCUSE = '[[excuse]]\ntest = "Suite.*"\nmutation = ["zeros"]\nwhat = "* of nothing"\nreason = "it is"\n'


class CheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, properties, excuses, *options, status=1):
        """The output and the exit code for a program whose one test has these properties."""
        test = {"classname": "Suite", "name": "Test", **{key: json.dumps(value) for key, value in properties.items()}}
        report = json.dumps({"testsuites": [{"testsuite": [test]}]})
        program = self.folder / "tests"
        program.write_text(
            f"#!{sys.executable}\nimport os, pathlib, sys\n"
            "path = next(word for word in sys.argv if word.startswith('--gtest_output=json:'))[20:]\n"
            "assert os.environ['TESSERA_TEST_MUTATION']\n"
            f"if os.environ['GTEST_SHARD_INDEX'] == '0': pathlib.Path(path).write_text({report!r})\n"
            f"sys.exit({status})\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (self.folder / "excuses.toml").write_text(excuses or "excuse = []\n")
        command = [sys.executable, CHECK, program, "--device", "cpu", "--excuses", self.folder / "excuses.toml", *options]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return result.stdout + result.stderr, result.returncode

    def test_all_noticed(self):
        output, status = self.check({"zeros: sums": {"noticed": 3, "unnoticed": []}}, "")
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"sums +3/3 +- +- +-")

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

    def test_no_device_is_told_apart(self):
        self.assertEqual(self.check({}, "", status=0)[1], 77)

    def test_a_crash_is_no_success(self):
        output, status = self.check({}, "", status=139)
        self.assertEqual(status, 1)
        self.assertIn("ended with 139", output)


if __name__ == "__main__":
    unittest.main()
