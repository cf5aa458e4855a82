import json
import unittest

from tree import TreeTest

MACHINE = {"cpu": {"model": "Some CPU"}, "threads": 2}


def comparison(ours, peer_name="torch-eager", day=1, case="cpu/mlp-infer-b1-fp32"):
    return {
        "case": case,
        "kind": "throughput",
        "device": "cpu",
        "time": f"2026-01-0{day}T00:00:00+00:00",
        "ratio": ours / 10.0,
        "ours": ours,
        "peer": 10.0,
        "peer_name": peer_name,
        "memory_ratio": 0.5,
        "check": None,
        "versions": {},
        "commit": "0123456789abcdef+changes",
        "machine": MACHINE,
        "results": {"tessera": {"memory": {"peak_bytes": 2e6}}},
    }


class MeasuredTest(TreeTest):
    def results(self, name, *lines):
        self.write(f"bench/results/{name}.jsonl", "".join(json.dumps(line) + "\n" for line in lines))

    def page(self):
        self.assert_passes("measured")
        return (self.root / "docs/measured.md").read_text()

    def test_the_latest_result_of_a_case_counts(self):
        self.results("2026-01-02", comparison(30.0, day=2))
        self.results("2026-01-01", comparison(20.0))
        page = self.page()
        self.assertIn("## Against peers: Some CPU, 2 threads", page)
        row = "| `cpu/mlp-infer-b1-fp32` | 30 | 10 | torch-eager | 3.00 | 2 MB (0.50) | 0123456+ | 2026-01-02 |"
        self.assertIn(row, page)
        self.assertNotIn("2026-01-01", page)

    def test_before_and_after_have_a_table_of_their_own(self):
        beside = comparison(11.0, "before", day=2) | {"before_commit": "abcdef0"}
        beside["results"]["before"] = {"memory": {"peak_bytes": 4e6}}
        self.results("2026-01-01", comparison(20.0, day=1), beside)
        page = self.page()
        self.assertIn("| 20 | 10 | torch-eager | 2.00 |", page)
        self.assertIn("| Some CPU, 2 threads | `cpu/mlp-infer-b1-fp32` | 11 | 10 | 1.100 | 0.500 | abcdef0 | 0123456+ | 2026-01-02 |", page)

    def test_what_failed_is_no_result(self):
        broken = comparison(90.0, day=2)
        broken["check"] = {"tessera": {"ok": False}}
        self.results("2026-01-01", comparison(20.0), broken)
        self.assertNotIn("| 90 |", self.page())

    def test_tests_on_a_gpu(self):
        line = {"tests": 7, "failed": ["a.b"], "skipped": 1, "seconds": 9, "time": "2026-01-01", "commit": None,
                "devices": [{"detail": "plain loops"}, {"detail": "NVIDIA H200, compute capability 9.0"}]}
        self.results("2026-01-01-gpu-tests", line)
        self.assertIn("| H200 | all of `./test --gpu` | 7 | 1: a.b | 1 | 9 | - | 2026-01-01 |", self.page())

    def test_several_gpus(self):
        common = {"time": "2026-01-01", "commit": None, "versions": {"gpu": "NVIDIA H200"}, "machine": MACHINE}
        sides = {"tessera": {"alone": [100.0, 110.0], "together": 200.0, "scaling": 0.952},
                 "ddp": {"alone": [50.0, 50.0], "together": 98.0, "scaling": 0.98}}
        for words in ([], ["--bucket-mib", "10"]):
            self.results(f"2026-01-01-{len(words)}", common | {"case": "cuda-x2/a", "words": words, "sides": sides})
        points = [{"bytes": 2**21, "milliseconds": 0.03, "bus_gigabytes_per_second": 74.6}]
        self.results("2026-01-01-exchanges", common | {"case": "cuda-x2/all-reduce-fp32", "sides": {"torch": points}})
        page = self.page()
        self.assertIn("| H200 | `cuda-x2/a` |  | tessera | 200 | 100 + 110 | 95.2 % | - | 2026-01-01 |", page)
        self.assertIn("| H200 | `cuda-x2/a` | --bucket-mib 10 | ddp | 98 | 50 + 50 | 98.0 % | - | 2026-01-01 |", page)
        self.assertIn("| H200 | `cuda-x2/all-reduce-fp32` | torch | 2 | 0.030 | 75 | - | 2026-01-01 |", page)

    def test_going_on_with_a_text(self):
        line = {"kind": "generation", "case": "cpu/generate-a-fp32", "parameters": 2e6, "tokens": 40, "time": "2026-01-01", "commit": None,
                "versions": {}, "machine": MACHINE,
                "sides": {"tessera": {"tokens_per_second": 300.0}, "transformers": {"tokens_per_second": 100.0, "shared_tokens": 40}}}
        self.results("2026-01-01-generation", line)
        page = self.page()
        self.assertIn("| Some CPU | `cpu/generate-a-fp32` | 2 | tessera | 300 |  | - | 2026-01-01 |", page)
        self.assertIn("| Some CPU | `cpu/generate-a-fp32` | 2 | transformers | 100 | 40 | - | 2026-01-01 |", page)

    def test_trained_recipes(self):
        bounds = [{"number": "test_mean_distance", "reached": 0.04, "value": 0.1, "less_is_better": True},
                  {"number": "test_spread", "reached": 0.9, "value": 0.8, "less_is_better": False}]
        line = {"kind": "recipe", "case": "cpu/gan", "bounds": bounds, "commit": None, "minutes": 0.5, "minutes_allowed": 3, "time": "2026-01-01", "machine": MACHINE}
        self.results("2026-01-01-recipes", line)
        page = self.page()
        self.assertIn("| Some CPU, 2 threads | `gan` | mean_distance | 0.0400 | ≤ 0.1 | 0.50 | 3 | - | 2026-01-01 |", page)
        self.assertIn("| Some CPU, 2 threads | `gan` | spread | 0.9000 | ≥ 0.8 | 0.50 | 3 | - | 2026-01-01 |", page)

    def test_what_must_not_grow(self):
        common = {"kind": "scaling", "time": "2026-01-01", "commit": None, "machine": MACHINE}
        graph = {"part": "graph", "case": "cuda/large-graph-h100", "nodes": 20287, "reached": 1.5, "allowed": 2.0}
        table = {"part": "table", "case": "cpu/click-through-b512", "entries": [1000, 1000000], "milliseconds": [0.5, 0.6],
                 "bytes": [70, 70], "reached": 1.2, "allowed": 1.25}
        self.results("2026-01-01-scaling", common | graph, common | table)
        page = self.page()
        self.assertIn("| Some CPU | `cuda/large-graph-h100` | 20,287 nodes, compiled for H100 | 1.50 s | 2 s | - | 2026-01-01 |", page)
        self.assertIn("tables of 1,000 and 1,000,000 rows: 0.500 and 0.600 ms a step, 70 and 70 bytes | 1.20 | 1.25 |", page)

    def test_an_old_page_fails(self):
        self.results("2026-01-01", comparison(20.0))
        self.assert_fails("measured", "docs/measured.md is not current", "--check")
        self.page()
        self.assert_passes("measured", "--check")
        self.results("2026-01-02", comparison(30.0, day=2))
        self.assert_fails("measured", "docs/measured.md is not current", "--check")


if __name__ == "__main__":
    unittest.main()
