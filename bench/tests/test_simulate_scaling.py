"""bench/simulate_scaling: its formulas by hand, and the whole with a stand-in for the program."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tessera_bench import exchange_model, simulate_scaling, step_model  # noqa: E402

# A call of 10 s, steps of 1 s within a host of 4 GPUs and of 5 between hosts, 100 bytes/s within and 50 out of a host.
CLUSTER = exchange_model.Cluster(10, 1, 100, 5, 50, gpus_of_host=4)

# 30 us are computed, a third of them before any gradient is there; the last bucket when all is computed.
PLAN = {
    "nodes": [
        {"name": "weights", "candidates": ["a"], "once": True, "limit_microseconds": 1000, "bytes": 1},
        {"name": "forward", "candidates": ["a"], "once": False, "limit_microseconds": 10, "bytes": 1},
        {"name": "early", "candidates": ["nccl"], "once": False, "lane": "until 'update'", "limit_microseconds": 9, "bytes": 2 * 50 * 2**20},
        {"name": "backward", "candidates": ["a"], "once": False, "limit_microseconds": 15, "bytes": 1},
        {"name": "late", "candidates": ["nccl"], "once": False, "lane": "until 'update'", "limit_microseconds": 9, "bytes": 2 * 25 * 2**20},
        {"name": "part", "candidates": [], "once": False, "bytes": 0},
        {"name": "update", "candidates": ["a"], "once": False, "limit_microseconds": 5, "bytes": 1},
    ]
}
# All gradients at once.
AT_ONCE = {"nodes": [dict(node, bytes=2 * 75 * 2**20) for node in PLAN["nodes"] if node["name"] != "early"]}

PROGRAM = """#!/bin/sh
folder=$(dirname "$0")
echo "$*" >> "$folder/commands"
case "$*" in *"--bucket-mib 0"*) cat "$folder/0.json" ;; *) cat "$folder/buckets.json" ;; esac
"""


class Exchanges(unittest.TestCase):
    def test_within_a_host(self):
        # Three neighbors twice; 800 bytes travel 1.5 times, or up and down a tree.
        self.assertEqual(exchange_model.ring(800, 4, CLUSTER), 10 + 6 + 12)
        self.assertEqual(exchange_model.tree(800, 4, CLUSTER), 10 + 6 + 16)
        self.assertEqual(exchange_model.hierarchical(800, 4, CLUSTER), 10 + 6 + 12)

    def test_between_hosts(self):
        # Of 30 steps of a ring of 16 GPUs 6 lie between the 4 hosts; all bytes leave a host with 50 a second.
        self.assertEqual(exchange_model.ring(800, 16, CLUSTER), 10 + 24 + 30 + 800 * 1.875 / 50)
        self.assertEqual(exchange_model.tree(800, 16, CLUSTER), 10 + 6 + 20 + 32)
        self.assertEqual(exchange_model.hierarchical(800, 16, CLUSTER), 10 + 6 + 12 + 20 + 800 * 1.5 / 50)
        self.assertEqual(exchange_model.all_reduce(800, 16, CLUSTER), ("tree", 68))
        self.assertEqual(exchange_model.all_reduce(80000, 16, CLUSTER)[0], "ring")
        with self.assertRaisesRegex(ValueError, "18 GPUs are not whole hosts of 4"):
            exchange_model.ring(800, 18, CLUSTER)

    def test_a_fit_finds_what_the_times_were_made_with(self):
        samples = [(size, 3 + 1.75 * size / 200) for size in (10, 1000, 4000)]
        call, rate = exchange_model.fit(samples, 8)
        self.assertAlmostEqual(call, 3)
        self.assertAlmostEqual(rate, 200)

    def test_the_largest_of_several(self):
        self.assertEqual(exchange_model.expected_largest(1), 0)
        # Of two it is 1 / sqrt(pi), of ten 1.539, of a thousand 3.241.
        for count, expected in ((2, 0.564), (10, 1.539), (1000, 3.241)):
            self.assertAlmostEqual(exchange_model.expected_largest(count), expected, delta=0.03)


class Steps(unittest.TestCase):
    def setUp(self):
        self.nodes = step_model.read(PLAN)

    def simulate(self, interference, seconds_of_byte=2**-20 / 5):
        return step_model.simulate(self.nodes, 30, lambda size: size * seconds_of_byte, interference)

    def test_what_is_read_of_a_plan(self):
        self.assertEqual([node.weight for node in self.nodes], [0, 10, 0, 15, 0, 0, 5])
        self.assertEqual(step_model.exchanged_bytes(self.nodes), [50 * 2**20, 25 * 2**20])
        timed = {"nodes": [dict(node, microseconds=7) for node in PLAN["nodes"]]}
        self.assertEqual([node.weight for node in step_model.read(timed)], [0, 7, 0, 7, 0, 0, 7])
        with self.assertRaisesRegex(ValueError, "explain it for a GPU"):
            step_model.read({"nodes": []})

    def test_an_exchange_that_disturbs_nothing(self):
        # Ten seconds of the first beside 15 computed ones, then five of the last are waited for.
        self.assertEqual(self.simulate(0), step_model.Timeline(35, 5, 10))

    def test_an_exchange_that_stops_what_is_computed(self):
        self.assertEqual(self.simulate(1), step_model.Timeline(45, 5, 10))

    def test_one_of_which_half_is_lost(self):
        self.assertEqual(self.simulate(0.5), step_model.Timeline(40, 5, 10))

    def test_exchanges_go_one_after_the_other(self):
        # 20 seconds of the first, from 10 on; the last ready at 25, and 10 more until 40.
        self.assertEqual(self.simulate(0, 2**-20 / 2.5), step_model.Timeline(45, 15, 15))

    def test_none_waits_for_one_that_nobody_reads(self):
        nodes = [step_model.Node("all", 1), step_model.Node("sum", 0, 10)]
        self.assertEqual(step_model.simulate(nodes, 4, lambda size: 3, 0), step_model.Timeline(7, 3, 0))


class WholeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, plan in (("0", AT_ONCE), ("buckets", PLAN)):
            (self.root / f"{name}.json").write_text(json.dumps(plan))
        program = self.root / "program"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.runs = self.root / "runs.jsonl"
        self.write_runs((10000, 10000, 19000), (10000, 10100, 19200))
        self.exchanges = self.root / "exchanges.jsonl"
        self.write_exchanges("cuda-x2/all-reduce-fp32")

    def write_exchanges(self, case):
        """Ours: 50 us and 250 GB/s, but for a small one; another's beside it."""
        def side(call):
            return [{"bytes": size, "milliseconds": call + size / 250e6} for size in (10**6 * 2, 10**8)]

        small = {"bytes": 4, "milliseconds": 0.001}
        self.exchanges.write_text(json.dumps({"case": case, "sides": {"torch": side(0.2), "tessera": [small, *side(0.05)]}}) + "\n")

    def write_runs(self, *runs, case="cuda-x2/resnet50-train-b256-fp16"):
        lines = [{"case": case, "gpus": 2, "words": words, "sides": {"tessera": {"alone": run[:2], "together": run[2]}}}
                 for run in runs for words in ([], ["--gradient-delay"])]
        self.runs.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run_tool(self, *words, code=0):
        out, errors = io.StringIO(), io.StringIO()
        words = [*words, "--program", str(self.root / "program"), "--runs", str(self.runs), "--exchanges", str(self.exchanges)]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            self.assertEqual(simulate_scaling.main(words), code)
        return out.getvalue() if code == 0 else errors.getvalue()

    def test_the_more_gpus_the_less_of_each(self):
        told = json.loads(self.run_tool("--json", "--gpus", "1,2,8,64,1024"))
        scaling = [row["scaling"] for row in told["scaling"]]
        self.assertEqual(scaling, sorted(scaling, reverse=True))
        by_links = [row["scaling_by_links"] for row in told["scaling"]]
        self.assertTrue(all(links >= all_of_it for links, all_of_it in zip(by_links, scaling)))
        self.assertEqual(len(told["validation"]), 2)  # without those with options
        self.assertTrue(all(figure["source"] for figure in told["figures"]))
        figures = {figure["name"]: figure["value"] for figure in told["figures"]}
        self.assertAlmostEqual(figures["call of an exchange, us"], 50 - 2 * 4)
        self.assertAlmostEqual(figures["bus of a GPU within a host, GB/s"], 250)
        slower = json.loads(self.run_tool("--json", "--gpus", "1,2,8,64,1024", "--network", "ndr-1"))["scaling"]
        self.assertEqual([row["scaling"] for row in slower[:3]], scaling[:3])
        self.assertLess(slower[3]["scaling"], scaling[3])

    def test_two_gpus_are_predicted_from_the_other_runs(self):
        rows = json.loads(self.run_tool("--json", "--gpus", "2"))["validation"]
        for row, measured, whole in zip(rows, (512 / 19, 512 / 19.2), (20, 20.1)):
            self.assertAlmostEqual(row["measured_milliseconds"], measured)
            self.assertAlmostEqual(row["measured_scaling"], 512 / whole / measured)
        lacking = [row["measured_milliseconds"] - row["by_links_milliseconds"] for row in rows]
        self.assertAlmostEqual(rows[0]["predicted_milliseconds"], rows[0]["by_links_milliseconds"] + lacking[1])
        self.assertAlmostEqual(rows[1]["predicted_milliseconds"], rows[1]["by_links_milliseconds"] + lacking[0])

    def test_half_the_bits_travel_in_less_time(self):
        whole, half = (json.loads(self.run_tool("--json", "--gpus", "64", *words))["scaling"][0] for words in ((), ("--gradient-bits", "16")))
        self.assertLess(half["exchange_milliseconds"], whole["exchange_milliseconds"])
        self.assertGreater(half["scaling"], whole["scaling"])

    def test_the_table_and_what_is_asked_of_the_program(self):
        told = self.run_tool("bert-base-train-b64-fp16", "--bucket-mib", "50")
        self.assertRegex(told, r"\| 1,024 \| tree \|")
        self.assertIn("| step of one GPU, ms | 15.6 |", told)
        commands = (self.root / "commands").read_text()
        self.assertRegex(commands, "explain recipes/bert_tiny.toml .*model.size=base .*--ranks 2 --json --bucket-mib 50")

    def test_what_is_missing_is_said(self):
        self.write_runs((1, 1, 1), case="cuda-x2/alexnet-train-b512-fp16")
        self.assertIn("has no run of cuda-x2/resnet50-train-b256-fp16", self.run_tool(code=1))
        self.write_runs((10000, 10000, 19000))
        self.write_exchanges("cpu-x2/all-reduce-fp32")
        self.assertIn("has no run of two GPUs", self.run_tool(code=1))
        self.write_exchanges("cuda-x2/all-reduce-fp32")
        (self.root / "program").write_text("#!/bin/sh\necho 'tessera: no such card' >&2\nexit 7\n")
        self.assertIn("simulate_scaling: tessera: no such card", self.run_tool(code=1))


if __name__ == "__main__":
    unittest.main()
