"""A run that an earlier version began and stopped goes on here: tests/cli/old_run/README.md."""

import json
import re
import shutil
import struct
import unittest

from program import ROOT, ProgramTest, checkpoint

OLD = ROOT / "tests/cli/old_run"
STOPPED = 9  # steps


def weights(path):
    content = path.read_bytes()
    header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
    header.pop("__metadata__", None)
    data = checkpoint(path)[1]
    places = {name: entry["data_offsets"] for name, entry in header.items()}
    return {name: struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]) for name, (begin, end) in places.items()}


class OldRunTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.run_folder = self.root / "run"
        (self.run_folder / "checkpoints").mkdir(parents=True)
        shutil.copy(OLD / "recipe.toml", self.run_folder)
        shutil.copy(OLD / "last.safetensors", self.run_folder / "checkpoints")

    def resume(self, *words):
        return ["train", self.run_folder / "recipe.toml", "--out", self.run_folder, "--resume", "--quiet", *words]

    def test_each_of_its_keys_has_its_meaning_still(self):
        """Those that were written down, and those that had no value, as comments; the page is what the program knows."""
        page, section, keys = (ROOT / "docs/recipes.md").read_text(), "", 0
        for line in (OLD / "recipe.toml").read_text().splitlines():
            if found := re.fullmatch(r"\[(\w+)\]", line):
                section = found[1]
            elif found := re.match(r"(\w+) =|# (\w+):", line):
                keys += 1
                self.assertIn(f"| `{section}.{found[1] or found[2]}` |", page)
        self.assertEqual(keys, 55)  # all of the table that docs/recipes.md had then

    def test_goes_on_where_it_stopped(self):
        self.assertIn(f"stopped after step {STOPPED + 1} ", self.call(*self.resume("--max-steps", STOPPED + 1)))

    def test_ends_with_the_weights_that_the_earlier_version_reached(self):
        self.call(*self.resume())
        expected, reached = weights(OLD / "model.safetensors"), weights(self.run_folder / "model.safetensors")
        self.assertEqual(set(expected), set(reached))
        for name, numbers in expected.items():
            # Equal bits where the processor is of one kind; else sums in another order, of 36 terms in each of 15 steps.
            # A momentum that was lost, or another mask of dropout, moves weights by hundredths.
            for number, other in zip(numbers, reached[name], strict=True):
                self.assertAlmostEqual(number, other, delta=1e-5, msg=name)


if __name__ == "__main__":
    unittest.main()
