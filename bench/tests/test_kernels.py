"""The table of kernels, from a report that is written here."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tessera_bench import kernels  # noqa: E402


def node(name, microseconds, operator="convolution", once=False, size=48e6):
    return {
        "name": name,
        "operator": operator,
        "kernel": "own.kernel",
        "microseconds": microseconds,
        "limit_microseconds": 10.0,
        "bytes": size,
        "flops": 2e9,
        "once": once,
    }


class Table(unittest.TestCase):
    def run_of(self, text, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            path = pathlib.Path(folder) / "nodes.json"
            path.write_text(text, encoding="utf-8")
            status = kernels.main([str(path), *arguments])
        return status, out.getvalue().splitlines(), err.getvalue()

    def test_equal_work_is_one_row_and_the_most_expensive_first(self):
        nodes = [node("a", 20.0), node("b", 30.0), node("c", 90.0, size=96e6), node("once", 5.0, once=True)]
        nodes += [node("tiny", 2.0, "cast"), node("small", 3.0, "cast", size=1e6)]
        status, lines, _ = self.run_of(json.dumps({"nodes": nodes}), "--step-ms", "0.1")
        self.assertEqual(status, 0)
        self.assertEqual(len(lines), 2 + 3 + 2)
        self.assertEqual(lines[2], "| `c`, convolution | 1 | own.kernel | 90 | 96 | 2.0 | 10 | 11 % | 0.090 |")
        self.assertEqual(lines[3], "| `a`, convolution | 2 | own.kernel | 25 | 48 | 2.0 | 10 | 40 % | 0.050 |")
        self.assertTrue(lines[4].startswith("| `tiny`, cast | 2 | own.kernel | 2.5 |"), lines[4])
        self.assertEqual(lines[5], "| all | 5 | | | 241 in all | 10 in all | 50 in all | 34 % | 0.145 |")
        self.assertEqual(lines[6], "| the whole run, without marks between nodes | | | | | | | 50 % | 0.100 |")

    def test_rows_are_recorded(self):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder) / "kernels.jsonl"
            report = {"nodes": [node("a", 20.0), node("b", 30.0)], "device": {"model": "a GPU"}}
            status, _, _ = self.run_of(json.dumps(report), "--record", "cuda/some-case", "--results", str(results))
            self.assertEqual(status, 0)
            found = json.loads(results.read_text(encoding="utf-8"))
        self.assertEqual((found["case"], found["device_model"]), ("cuda/some-case", "a GPU"))
        self.assertEqual([(row["name"], row["nodes"], row["microseconds"]) for row in found["groups"]], [("a", 2, 50.0)])

    def test_a_broken_report_is_an_error(self):
        for text in ("", "{}", '{"nodes": [{"once": false}]}'):
            status, lines, error = self.run_of(text)
            self.assertEqual((status, lines), (1, []))
            self.assertIn("nodes.json", error)


if __name__ == "__main__":
    unittest.main()
