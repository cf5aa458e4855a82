"""tessera profile: a trace that opens, with rows whose slices are in order and do not overlap."""

import json
import os
import unittest

from program import ProgramTest

NANOSECOND = 1e-3  # times are in microseconds


class ProfileTest(ProgramTest):
    def profile(self, *words):
        out = self.root / "trace.json"
        told = self.call("profile", *words, "--out", out)
        self.assertIn(str(out), told)
        self.assertIn("perfetto", told)
        return json.loads(out.read_text())

    def rows(self, trace):
        """Slices by the names of process and row, as (name, begin, end, args), in the file's order."""
        names = {(event["pid"], event["tid"]): event["args"]["name"] for event in trace["traceEvents"]
                 if event["ph"] == "M" and event["name"] == "thread_name"}
        result = {name: [] for name in names.values()}
        for event in trace["traceEvents"]:
            if event["ph"] == "X":
                self.assertGreaterEqual(event["ts"], 0)
                self.assertGreaterEqual(event["dur"], 0)
                result[names[event["pid"], event["tid"]]].append(
                    (event["name"], event["ts"], event["ts"] + event["dur"], event["args"]))
        return result

    def check_nesting(self, slices):
        """Each slice lies after the one before or inside an open one."""
        open_ends = []
        for _, begin, end, _ in sorted(slices, key=lambda item: (item[1], -item[2])):
            while open_ends and open_ends[-1] <= begin + NANOSECOND:
                open_ends.pop()
            if open_ends:
                self.assertLessEqual(end, open_ends[-1] + NANOSECOND)
            open_ends.append(end)

    def test_every_kernel_of_a_step_in_order(self):
        for words in (("lenet", "--batch", 2), ("mlp", "--batch", 4, "--train"), ("mlp", "--device", "reference")):
            trace = self.profile(*words, "--iterations", 2)
            rows = self.rows(trace)
            plan = json.loads(self.call("explain", *words, "--json"))
            # An alias has no kernel, and what depends on weights alone runs when they are bound.
            expected = [node["name"] for node in plan["nodes"] if node["kernel"] != "alias" and not node["once"]]
            self.assertEqual([name for name, _, _, _ in rows["nodes"]], expected)
            for (_, _, end, _), (name, begin, _, _) in zip(rows["nodes"], rows["nodes"][1:]):
                self.assertGreaterEqual(begin, end - NANOSECOND, name)
            for _, begin, end, facts in rows["nodes"]:
                self.assertLessEqual({"operator", "kernel", "bytes", "flops"}, facts.keys())
                self.assertEqual("TB/s" in facts and "GFLOP/s" in facts, end > begin)
            for slices in rows.values():
                self.check_nesting(slices)

    def test_runs_and_compiler(self):
        trace = self.profile("mlp", "--batch", 4, "--train", "--iterations", 3)
        rows = self.rows(trace)
        runs = [item for item in rows["runs"] if item[0] == "run"]
        self.assertEqual(len(runs), 3)
        self.assertEqual(len([item for item in rows["runs"] if item[0] == "run (warm-up)"]), 2)
        self.assertEqual({facts["recorded"] for _, _, _, facts in runs}, {False})  # a CPU records nothing
        # Each run is given before the one ahead of it is read.
        kinds = [name for name, _, _, _ in rows["runs"] if not name.startswith("run")]
        self.assertEqual(kinds, ["take inputs"] + ["take inputs", "wait for the run before, read its outputs"] * 4)
        self.assertNotIn("steps", rows)  # and has no timer of its own
        compiler = [name for name, _, _, _ in rows["compiler"]]
        for name in ("passes", "fuse_elementwise", "schedule and choose kernels", "plan memory"):
            self.assertIn(name, compiler)
        self.assertLess(rows["compiler"][0][1], runs[0][1])
        self.assertEqual(trace["otherData"]["model"], "mlp")
        self.assertIn("one by one", trace["otherData"]["nodes_measured"])

    def test_steps_that_a_loader_feeds(self):
        words = ("profile", "mlp", "--batch", 4, "--train", "--loader", 2, "--iterations", 8)
        out = self.root / "trace.json"
        self.assertRegex(self.call(*words, "--out", out),
                         r"fed by 2 threads: a step every \d+\.\d\d ms: the device works \d+\.\d\d ms, waits")
        trace = json.loads(out.read_text())
        rows = self.rows(trace)
        self.assertEqual(len([name for name, _, _, _ in rows["runs"] if name == "wait for a batch"]), 10)
        self.check_nesting(rows["runs"])
        waits = trace["otherData"]["waits"]
        self.assertEqual(waits.keys(), {"pace", "work", "for_host", "for_inputs", "host_for_batch"})
        self.assertGreater(waits["work"], 0)
        # What is between two steps is work or a wait.
        self.assertAlmostEqual(waits["pace"], waits["work"] + waits["for_host"] + waits["for_inputs"])
        self.refuses([*words, "--copies", 2], 2, "--copies")

    def test_memory_in_use(self):
        trace = self.profile("lenet", "--batch", 2, "--train")
        counters = [event["args"] for event in trace["traceEvents"] if event["ph"] == "C"]
        memory = json.loads(self.call("explain", "lenet", "--batch", 2, "--train", "--json"))["memory"]
        self.assertEqual(max(args["arena"] for args in counters), memory["lower_bound_bytes"])
        self.assertEqual(counters[-1]["arena"], 0)
        self.assertEqual({args["parameters and states"] for args in counters}, {memory["variable_bytes"]})

    def test_writes_trace_json_unless_told(self):
        self.call("profile", "mlp", "--batch", 2, "--iterations", 1)
        self.assertTrue((self.root / "trace.json").is_file())
        self.assertEqual([name for name in os.listdir(self.root) if "partial" in name], [])

    def test_refusals(self):
        self.refuses(["profile", "mlp", "--out", self.root / "none" / "trace.json"], 5, "none/trace.json")
        self.refuses(["profile", "mlp", "--out", self.data], 5, self.data, "directory")
        self.refuses(["profile", "mlp", "--device", "null"], 7, "plans")
        self.refuses(["profile", "mlp", "--iterations", 0], 2, "--iterations")
        self.refuses(["profile", "mpl"], 2, "mpl", "mlp")
        self.refuses(["profile"], 2, "model")


if __name__ == "__main__":
    unittest.main()
