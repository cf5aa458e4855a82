"""bench/scaling, with stand-ins for the programs."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tessera_bench import scaling  # noqa: E402

# Compiles in so many seconds; trains so many samples a second over the large table, a thousand over the small one.
PROGRAM = """#!/bin/sh
rate=1000
case "$*" in *1000000.csv*) rate=%s ;; esac
case "$*" in
  *--plan-for*) echo '{"compile_seconds": %s, "passes": [{"nodes_before": 20400}]}' ;;
  explain*) echo '{"nodes": [{"bytes": 3}, {"bytes": 4}]}' ;;
  *) while [ "$1" != --out ]; do shift; done
     mkdir "$2" && echo '{"samples_per_second": '$rate'}' > "$2/summary.json" ;;
esac
"""
PRINTER = """#!/bin/sh
echo '%a = add(%x, %y)'
echo '%b = add(%a, %y)'
"""


class ScalingTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def scaling(self, part, seconds=1.0, rate=900):
        """(exit status, stdout, the JSON line)"""
        out, results = io.StringIO(), self.root / "results.jsonl"
        for name, text in (("tessera", PROGRAM % (rate, seconds)), ("printer", PRINTER)):
            (self.root / name).write_text(text)
            (self.root / name).chmod(0o755)
        words = [part, "--program", self.root / "tessera", "--printer", self.root / "printer", "--results", results, "--runs", 2]
        with contextlib.redirect_stdout(out):
            status = scaling.main([str(word) for word in words])
        return status, out.getvalue(), json.loads(results.read_text().splitlines()[-1])

    def test_a_graph_that_compiles_in_time(self):
        status, out, line = self.scaling("graph", seconds=1.5)
        self.assertEqual((status, out), (0, "cuda/large-graph-h100 1.5, at most 2: ok\n"))
        self.assertEqual((line["nodes"], line["compile_seconds"], line["part"]), (20400, [1.5, 1.5], "graph"))

    def test_a_graph_that_takes_too_long(self):
        self.assertEqual(self.scaling("graph", seconds=2.5)[0], 1)

    def test_a_table_that_costs_next_to_nothing(self):
        status, out, line = self.scaling("table")
        self.assertEqual((status, out), (0, "cpu/click-through-b512 1.11, at most 1.25: ok\n"))
        self.assertEqual((line["samples_per_second"], line["bytes"]), ([[1000, 1000], [900, 900]], [7, 7]))

    def test_a_table_that_costs_too_much(self):
        self.assertEqual(self.scaling("table", rate=500)[0], 1)

    def test_keys_are_those_of_the_table(self):
        path = self.root / "table.csv"
        scaling.write_table(path, 5000, 1000)
        rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
        self.assertEqual((len(rows), len({row[0] for row in rows})), (5000, 1000))


if __name__ == "__main__":
    unittest.main()
