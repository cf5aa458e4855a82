"""Networks that are compiled ahead: tessera build, and what reads its files."""

import json
import os
import struct
import unittest
import unittest.mock

from program import ProgramTest, npy


class PlanTest(ProgramTest):
    def build(self, network, *words, name="network.plan"):
        plan = self.root / name
        self.assertIn(str(plan), self.call("build", network, *words, "--output", plan))
        return plan

    def explain(self, *words):
        return json.loads(self.call("explain", *words, "--json"))

    def test_bench_explain_and_profile(self):
        plan = self.build("lenet", "--device", "cpu", "--batch", "2,8")
        text = self.call("bench", plan, "--iterations", "2")
        self.assertIn("inference batch 8 on cpu", text)
        self.assertRegex(text, r"ready \d+\.\d\d s after the device")
        told = json.loads(self.call("bench", plan, "--batch", "2", "--iterations", "2", "--json"))
        self.assertEqual(told["batch"], 2)
        self.assertLess(told["ready_seconds"], 1)
        of_plan = self.explain(plan)
        self.assertEqual(of_plan["passes"], [])
        network = self.explain("lenet", "--device", "cpu", "--batch", "8")
        kernels = {node["name"]: node["kernel"] for node in network["nodes"] if not node["once"]}
        self.assertEqual({node["name"]: node["kernel"] for node in of_plan["nodes"]}, kernels)
        self.call("profile", plan, "--copies", "2", "--iterations", "2", "--out", self.root / "trace.json")

    def test_gives_what_the_network_gives(self):
        plan = self.build("lenet", "--device", "cpu", "--batch", "4")
        of_plan = json.loads(self.call("bench", plan, "--check", "--json"))["outputs"]
        # Inputs by the formula of their names, of other weights than the check of a network has.
        self.assertEqual(len(set(of_plan)), 10)
        again = self.build("lenet", "--device", "cpu", "--batch", "4", name="again.plan")
        self.assertEqual(plan.read_bytes(), again.read_bytes())

    def test_runs_rows_of_any_number(self):
        plan = self.build("lenet", "--device", "cpu", "--batch", "1,4")
        listed = self.call("run", plan)
        self.assertIn("images: fp32[batch, 28, 28, 1]", listed)
        self.assertIn("logits: fp32[batch, 10]", listed)
        values = [(i * 7 % 31) / 31 for i in range(7 * 784)]
        images = self.root / "images.npy"
        images.write_bytes(npy((7, 28, 28, 1), struct.pack(f"<{len(values)}f", *values), "<f4"))
        told = self.call("run", plan, "--input", f"images={images}", "--output-folder", self.root / "out",
                         "--explain")
        self.assertIn("logits: fp32[7, 10]", told)
        self.assertIn("plan of 'lenet' for cpu", told)
        self.assertRegex(told, r"batch 1, 4, fp32; loaded in \d+\.\d\d s")
        logits = struct.unpack("<70f", (self.root / "out" / "logits.npy").read_bytes()[-280:])
        self.assertEqual(len(set(logits)), 70)

    def test_what_is_refused(self):
        plan = self.build("lenet", "--device", "cpu", "--batch", "2")
        self.refuses(["bench", plan, "--device", "reference"], 7, "device 'cpu', this is 'reference'")
        self.refuses(["run", plan, "--input", "images=x.npy", "--device", "reference"], 7, "this is 'reference'")
        self.refuses(["bench", plan, "--device", "cpu:threads=1"], 7, "model", "this is", "1 threads")
        self.refuses(["bench", plan, "--batch", "3"], 2, "--batch", "has 2, not 3")
        for words in (["--precision", "fp16"], ["--tune"], ["--disable-pass", "fuse"]):
            self.refuses(["bench", plan, *words], 2, "is compiled already", "tessera build")
        self.refuses(["bench", plan, "--train"], 2, "--train")
        self.refuses(["bench", plan, "--image-size", "28"], 2, "--image-size")
        self.refuses(["build", plan, "--output", self.root / "other.plan"], 2, "is a plan already")
        self.refuses(["build", "lenet", "--batch", "2,2", "--output", plan], 2, "batch 2 is there twice")
        self.refuses(["build", "lenet", "--batch", "2"], 2, "--output")
        self.refuses(["bench", self.root / "none.plan"], 5, "none.plan")
        whole = plan.read_bytes()
        for part in (whole[:100], whole[:len(whole) // 2], whole[:-1], b"", whole.replace(b"relu", b"rule")):
            plan.write_bytes(part)
            self.refuses(["bench", plan], 4, "network.plan")

    def test_for_other_instructions(self):
        with unittest.mock.patch.dict(os.environ, {"ONEDNN_MAX_CPU_ISA": "AVX2"}):
            plan = self.build("lenet", "--device", "cpu")
            self.call("bench", plan, "--iterations", "1")
        doctor = json.loads(self.call("doctor", "--json"))
        present, = [device["versions"]["instructions"] for device in doctor["devices"] if device["name"] == "cpu"]
        if present == "avx2":
            self.skipTest("the processor has no more than AVX2")
        self.refuses(["bench", plan], 7, f"instructions 'avx2', this is '{present}'")

    def test_for_a_card_that_is_not_there(self):
        plan = self.root / "network.plan"
        process = self.start("build", "lenet", "--plan-for", "h100", "--precision", "fp16", "--batch", "8", "-o", plan)
        output, errors = process.communicate(timeout=120)
        if process.returncode == 7:
            self.skipTest("built without the CUDA backend")
        self.assertEqual(process.returncode, 0, output + errors)
        words = ["--plan-for", "h100", "--batch", "8"]
        of_plan = self.explain(plan, *words)
        network = self.explain("lenet", *words, "--precision", "fp16")
        self.assertEqual([(node["name"], node["kernel"]) for node in of_plan["nodes"]],
                         [(node["name"], node["kernel"]) for node in network["nodes"]])
        self.assertIn(b'"artifact:', plan.read_bytes())
        self.assertIn(b"\x7fELF", plan.read_bytes())
        self.refuses(["explain", plan, "--plan-for", "a100", "--batch", "8"], 7, "model 'NVIDIA H100", "A100")


if __name__ == "__main__":
    unittest.main()
