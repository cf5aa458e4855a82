"""The driver against stand-ins for the program; needs neither Tessera nor the peers."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tessera_bench import __main__ as command  # noqa: E402
from tessera_bench import cases, machine, onnx_files, report, token_shards  # noqa: E402

DOCTOR = {
    "version": "0.1",
    "devices": [
        {"name": "cpu", "found": True, "detail": "a processor", "versions": {"onednn": "3.2"}},
        {"name": "cuda", "found": True, "detail": "NVIDIA H200, compute capability 9.0", "versions": {"driver": "13.0"}},
        {"name": "auto", "found": True, "detail": "device: cuda, NVIDIA H200", "versions": {"driver": "13.0"}},
        {"name": "other", "found": False, "detail": "/somewhere/libtessera_cuda.so cannot be loaded", "versions": {"cudnn": "9"}},
    ],
    "environment": {"TESSERA_CUDA_CACHE": "/somewhere/else"},
}
PROGRAM = """#!/bin/sh
case "$*" in
  models) echo mlp ;;
  doctor*) echo 'DOCTOR' ;;
  *--check*) echo '{"outputs": [1, 2]}' ;;
  *--batch*) echo '{"samples_per_second": [64000], "milliseconds": [2.0], "peak_memory_bytes": 5, "compile_seconds": 0.5}' ;;
esac
""".replace("DOCTOR", json.dumps(DOCTOR))


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.results = pathlib.Path(self.folder.name) / "results.jsonl"

    def program(self, text):
        path = pathlib.Path(self.folder.name) / "tessera"
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def compare(self, text, *arguments):
        """(exit status, stdout, JSON lines)"""
        out, program = io.StringIO(), self.program(text)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            fixed = ["--peers", "", "--rounds", "3", "--settle-seconds", "0", "--program", program, "--results", str(self.results)]
            status = command.main([*fixed, *arguments])
        return status, out.getvalue(), [json.loads(line) for line in self.results.read_text().splitlines()]

    def test_a_loader_is_compared_with_images_that_lie_on_the_device(self):
        slower = PROGRAM.replace("  *--batch*)", "  *--loader*--iterations*) echo '{\"milliseconds\": [4.0]}' ;;\n  *--batch*)")
        status, out, (record,) = self.compare(slower, "--peers", "resident", "cpu/resnet50-train-b32-fp32-loader")
        self.assertEqual(status, 0)
        self.assertEqual(out, "cpu/resnet50-train-b32-fp32-loader ratio 0.500 ours 8000 peer 16000 resident\n")

    def test_throughput_is_the_median_of_all_turns(self):
        status, out, (record,) = self.compare(PROGRAM, "cpu/mlp-infer-b128-fp32")
        self.assertEqual(status, 0)
        self.assertEqual(out, "cpu/mlp-infer-b128-fp32 ratio - ours 64000 peer - -\n")
        self.assertEqual(record["results"]["tessera"]["milliseconds"], [[2.0]] * 3)
        self.assertEqual(record["versions"], {"tessera": {"tessera": "0.1", "onednn": "3.2", "driver": "13.0", "gpu": "NVIDIA H200"}})
        self.assertEqual(record["machine"]["threads"], min(2, len(machine.CORES)))

    def test_a_case_on_a_gpu_has_all_cores_unless_told(self):
        on_gpu, on_cpu = cases.find(["cuda/resnet50-infer-b1-fp16"])[0], cases.find(["cpu/mlp-infer-b128-fp32"])[0]
        self.assertEqual(machine.threads_of(on_gpu, 0), len(machine.CORES))
        self.assertEqual(machine.threads_of(on_gpu, 3), 3)
        self.assertEqual(machine.threads_of(on_cpu, 0), min(2, len(machine.CORES)))
        _, _, (record,) = self.compare(PROGRAM, "cuda/resnet50-infer-b1-fp16")
        self.assertEqual(record["machine"]["threads"], len(machine.CORES))

    def test_a_network_in_a_file_is_asked_for_by_its_path(self):
        folder = pathlib.Path(self.folder.name) / "onnx"
        python = pathlib.Path(self.folder.name) / "python"  # writes what it is asked for, and tells how often
        python.write_text('#!/bin/sh\necho $3 $4 >> "$0.calls"\necho network > "$5"\n')
        python.chmod(0o755)
        program = PROGRAM.replace("  *--check*)", '  *--check*) echo "$2" > "$0.asked"; echo \'{"outputs": [1, 2]}\' ;;\n  *--never*)')
        with unittest.mock.patch.object(onnx_files, "FOLDER", folder):
            for _ in range(2):
                status, out, _ = self.compare(program, "--python", str(python), "cpu/onnx-resnet18-b8-fp32")
                self.assertEqual(status, 0)
        self.assertEqual(out, "cpu/onnx-resnet18-b8-fp32 ratio - ours 4000 peer - -\n")
        self.assertEqual(pathlib.Path(f"{python}.calls").read_text(), "resnet18 8\n")
        asked = pathlib.Path(self.folder.name) / "tessera.asked"
        self.assertEqual(asked.read_text(), f"{folder}/resnet18-b8/network.onnx\n")
        self.assertEqual((folder / "resnet18-b8" / "network.onnx").read_text(), "network\n")

    def test_a_recipe_is_timed_on_shards_that_are_made_once(self):
        told = "  *tokenize*) shift $(($# - 2)); echo made >> \"$0.made\"; mkdir \"$1\" ;;\n  *iterations*) echo \"$*\" > \"$0.asked\"; echo '{\"milliseconds\": [2.0]}' ;;\n"
        folder = pathlib.Path(self.folder.name) / "tokens"
        with unittest.mock.patch.object(token_shards, "FOLDER", folder):
            for _ in range(2):
                status, out, records = self.compare(PROGRAM.replace("  *--batch*", told + "  *--batch*"), "cuda/transformer-big-train-t16k-bf16")
                self.assertEqual(status, 0)
        self.assertEqual(out, "cuda/transformer-big-train-t16k-bf16 ratio - ours 256000 peer - -\n")
        self.assertIsNone(records[-1]["check"])
        self.assertEqual((folder.parent / "tessera.made").read_text(), "made\n")
        made = folder / "transformer_big-b512-s32"
        self.assertTrue((made / "shards").is_dir())
        texts = [(made / f"text{number}.txt").read_text().splitlines() for number in range(2)]
        self.assertEqual([len(lines) for lines in texts], [2048, 2048])
        vocabulary = (made / "vocab.txt").read_text().splitlines()
        self.assertEqual(len(vocabulary), 32768)
        for line in texts[0][:10] + texts[1][:10]:
            self.assertEqual(len(line.split()), 31)
            self.assertLessEqual(set(line.split()), set(vocabulary))
        asked = (folder.parent / "tessera.asked").read_text()
        self.assertIn(f"bench/networks/transformer_big.toml --set data.path={made}/shards --set data.lengths=[32] --batch 512 --train", asked)

    def test_packed_rows_count_their_texts(self):
        told = "  *tokenize*) shift $(($# - 2)); mkdir \"$1\" ;;\n  *iterations*) echo \"$*\" > \"$0.asked\"; echo '{\"milliseconds\": [2.0], \"weights\": {\"masked\": 9, \"next_sentence\": 70}}' ;;\n"
        folder = pathlib.Path(self.folder.name) / "tokens"
        with unittest.mock.patch.object(token_shards, "FOLDER", folder):
            status, out, _ = self.compare(PROGRAM.replace("  *--batch*", told + "  *--batch*"), "cuda/bert-large-train-packed-bf16")
        self.assertEqual(status, 0)
        self.assertEqual(out, "cuda/bert-large-train-packed-bf16 ratio - ours 35000 peer - -\n")  # 70 in 2 ms
        self.assertIn("--set data.tokens=512 --set data.packed=8 --batch 32", (folder.parent / "tessera.asked").read_text())
        lengths = [len(line.split()) + token_shards.MARKS for line in (folder / "bert_large-b32-s512-packed" / "text0.txt").read_text().splitlines()]
        self.assertEqual(len(lengths), 384)
        self.assertTrue(token_shards.SHORTEST <= min(lengths) and max(lengths) == 512)
        # Half of a row on average; the mean of so many varies by a fiftieth of it.
        self.assertAlmostEqual(sum(lengths) / len(lengths), 256, delta=26)

    def test_compile_time_is_read_from_the_program(self):
        _, out, (record,) = self.compare(PROGRAM, "cpu/resnet50-compile")
        self.assertIn("ours 0.5 ", out)
        self.assertEqual(record["goals"]["allowed 2"]["reached"], 4)

    def test_startup_is_set_beside_what_is_allowed(self):
        status, out, (record,) = self.compare(PROGRAM, "cpu/startup")
        self.assertEqual(status, 0)
        self.assertIn(" peer 50 allowed", out)
        self.assertEqual(len(record["results"]["tessera"]["samples"]), 21)

    def test_a_build_from_before_is_a_peer(self):
        before = pathlib.Path(self.folder.name) / "before"
        before.write_text(PROGRAM.replace("64000", "32000").replace('"milliseconds": [2.0]', '"milliseconds": [4.0]'))
        before.chmod(0o755)
        status, out, (record,) = self.compare(PROGRAM, "--before", str(before), "--before-commit", "abc1234", "cpu/mlp-infer-b128-fp32")
        self.assertEqual(status, 0)
        self.assertEqual(out, "cpu/mlp-infer-b128-fp32 ratio 2.000 ours 64000 peer 32000 before\n")
        self.assertEqual(record["check"]["against"], "before")
        self.assertEqual(record["before_commit"], "abc1234")
        before.write_text(PROGRAM.replace("[1, 2]", "[1, 3]"))
        status, _, records = self.compare(PROGRAM, "--before", str(before), "--before-commit", "abc1234", "cpu/mlp-infer-b128-fp32")
        self.assertEqual(status, 1)
        self.assertFalse(records[-1]["check"]["tessera"]["ok"])

    def test_a_machine_without_git_knows_no_commit(self):
        with unittest.mock.patch.dict(os.environ, {"PATH": self.folder.name}):
            os.environ.pop("TESSERA_BENCH_COMMIT", None)
            self.assertIsNone(machine.commit())

    def test_a_failing_program_is_reported_with_its_last_line(self):
        status, out, (record,) = self.compare("#!/bin/sh\necho 'no such model' >&2\nexit 3\n", "cpu/mlp-train-b128-fp32")
        self.assertEqual(status, 1)
        self.assertIn("ours error", out)
        self.assertIn("status 3: no such model", record["results"]["tessera"]["error"])

    def test_output_that_is_not_the_agreed_json_is_an_error(self):
        for text in ("#!/bin/sh\necho fast\n", "#!/bin/sh\necho '{\"milliseconds\": []}'\n", "#!/bin/sh\necho '[1]'\n"):
            status, _, records = self.compare(text, "cpu/mlp-infer-b128-fp32")
            self.assertEqual(status, 1)
            self.assertIn("error", records[-1]["results"]["tessera"])

    def test_an_unknown_case_ends_with_status_2(self):
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as err:
            command.main(["cpu/nothing"])
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("cpu/nothing", err.getvalue())


class ReportTest(unittest.TestCase):
    CASE = cases.find(["cpu/resnet50-infer-b1-fp32"])[0]

    def test_memory_is_the_gpus_where_one_works(self):
        results = {
            "tessera": {"memory": {"peak_bytes": 10, "device_peak_bytes": 90}},
            "torch-eager": {"memory": {"peak_bytes": 40, "device_peak_bytes": 100}},
            "torch-compile": {"memory": {"peak_bytes": 20, "device_peak_bytes": 120}},
        }
        self.assertEqual(report.memory_ratio("cpu", results), 0.5)
        self.assertEqual(report.memory_ratio("cuda", results), 0.9)
        self.assertIsNone(report.memory_ratio("cuda", {"tessera": {"memory": {}}, "torch-eager": {"error": "none"}}))

    def test_the_ratio_is_to_the_best_peer_and_goals_to_each(self):
        results = {"tessera": {"value": 30.0}, "torch-eager": {"value": 10.0}, "torch-compile": {"value": 25.0}, "onnxruntime": {"value": 20.0}}
        ratios = report.ratios_of(self.CASE, results)
        self.assertAlmostEqual(min(ratios.values()), 1.2)
        goals = report.goals_of(self.CASE, results, ratios)
        self.assertAlmostEqual(goals["torch 1.3x"]["reached"], 1.2)
        self.assertAlmostEqual(goals["onnxruntime 1.0x"]["reached"], 1.5)

    def test_different_outputs_fail_the_case(self):
        results = {
            "tessera": {"check": {"outputs": [1.0, 2.0]}},
            "torch-eager": {"check": {"outputs": [1.0, 2.1]}},
            "onnxruntime": {"check": {"outputs": [1.0, 2.10001]}},
        }
        checks = report.compare_outputs(results)
        self.assertFalse(checks["tessera"]["ok"])
        self.assertTrue(checks["onnxruntime"]["ok"])
        self.assertTrue(report.failed({"check": checks, "results": results}))

    def test_outputs_that_are_not_numbers_fail_the_case(self):
        results = {"tessera": {"check": {"outputs": [1.0, float("nan")]}}, "torch-eager": {"check": {"outputs": [1.0, 2.0]}}}
        self.assertFalse(report.compare_outputs(results)["tessera"]["ok"])

    def test_a_program_without_a_check_is_not_compared(self):
        results = {"tessera": {"check": {"error": "unknown option"}}, "torch-eager": {"check": {"outputs": [1.0]}}}
        self.assertIsNone(report.compare_outputs(results)["tessera"]["ok"])


if __name__ == "__main__":
    unittest.main()
