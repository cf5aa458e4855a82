"""bench/exchanges: by the program itself between two processes on the CPU, and with stand-ins."""

import contextlib
import io
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from stand_ins import StandInTest  # noqa: E402
from tessera_bench import exchanges, ours  # noqa: E402

# Two milliseconds for a run of any graph, which is kept.
PROGRAM = """#!/bin/sh
case "$*" in
  doctor*) echo '{"version": "0.1", "devices": []}' ;;
  *) while [ "${1%.graph}" = "$1" ]; do shift; done
     cp "$1" "$(dirname "$0")/last.graph"
     echo '{"milliseconds": [1, 2, 3]}' ;;
esac
"""
PEER = """#!/bin/sh
echo '{"milliseconds": [4, 8]}'
"""


class ExchangesTest(StandInTest):
    def measure(self, *words, code=0):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            self.assertEqual(exchanges.main([*map(str, words), "--results", str(self.root)]), code, errors.getvalue())
        (path,) = self.root.glob("*-exchanges.jsonl")
        return json.loads(path.read_text()), out.getvalue()

    def test_two_processes_on_the_processor(self):
        program = pathlib.Path(os.environ.get("TESSERA_PROGRAM", ours.PROGRAM))
        line, out = self.measure("--program", program, "--device", "cpu", "--peers", "", "--mebibytes", "0.01,0.5", "--chain", 3,
                                 "--iterations", 3, "--warmup", 1, "--threads", 1)
        self.assertEqual((line["case"], line["errors"]), ("cpu-x2/all-reduce-fp32", []))
        rows = line["sides"]["tessera"]
        self.assertEqual([row["bytes"] for row in rows], [10484, 524288])
        for row in rows:
            self.assertGreater(row["milliseconds"], 0)
            self.assertAlmostEqual(row["bus_gigabytes_per_second"], row["bytes"] / row["milliseconds"] * 1e-6)
        self.assertEqual(len(out.splitlines()), 3)

    def test_bus_bandwidth_as_nccl_tests_has_it(self):
        program, python = self.write_program("program", PROGRAM), self.write_program("python", PEER)
        line, out = self.measure("--program", program, "--python", python, "--gpus", 4, "--mebibytes", "1,2", "--chain", 4)
        self.assertEqual(line["case"], "cuda-x4/all-reduce-fp32")
        # The median of a run over its 4 exchanges, and 2 x 3 / 4 bytes over a link for each of the result.
        self.assertEqual([row["milliseconds"] for row in line["sides"]["tessera"]], [0.5, 0.5])
        self.assertEqual([row["milliseconds"] for row in line["sides"]["torch"]], [1, 2])
        self.assertAlmostEqual(line["sides"]["torch"][0]["bus_gigabytes_per_second"], 1.5 * 2**20 * 1e-6)
        graph = (self.root / "last.graph").read_text()
        self.assertIn("%x0: fp32[524288]", graph)
        self.assertEqual(graph.count("all_reduce"), 4)
        self.assertEqual(graph.count("{ranks = 4}"), 4)
        self.assertRegex(out, r"1 +0.5000 +3.1 +1.0000 +1.6")

    def test_what_fails_is_said(self):
        program, python = self.write_program("program", PROGRAM), self.write_program("python", "#!/bin/sh\nexit 3\n")
        line, out = self.measure("--program", program, "--python", python, "--mebibytes", "1", code=1)
        self.assertIn("torch: ", line["errors"][0])
        self.assertIn("ended with 3", line["errors"][0])
        self.assertEqual(list(line["sides"]), ["tessera"])
        self.assertIn("tessera, ms", out)


if __name__ == "__main__":
    unittest.main()
