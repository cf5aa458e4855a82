"""The commands that only look: help, models, doctor, explain."""

import json
import os
import subprocess
import unittest
from pathlib import Path

from program import ROOT, ProgramTest

COMMANDS = ("train", "eval", "predict", "bench", "explain", "profile", "doctor", "models")


class HelpTest(ProgramTest):
    def test_every_command_teaches(self):
        program = self.call("--help")
        self.assertIn("Exit codes", program)
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", program)
            text = self.call(command, "--help")
            self.assertIn("--help", text)
            self.assertGreater(len(text.splitlines()), 4, command)

    def test_version(self):
        self.assertRegex(self.call("--version"), r"^\d+\.\d+\.\d+")

    def test_wrong_use(self):
        self.refuses([], 2, "subcommand")
        self.refuses(["trian"], 2, "there is no command 'trian', did you mean 'train'?")
        self.refuses(["xyzzy"], 2, "there is no command 'xyzzy'")
        self.refuses(["train"], 2, "recipe")
        self.refuses(["train", "tinny.toml"], 5, "tinny.toml: no such recipe, did you mean 'tiny.toml'?")
        self.refuses(["train", "tiny.toml", "--out", "run", "--max-steps", "-5"], 2, "--max-steps")
        self.refuses(["models", "--jsno"], 2, "--jsno")
        self.refuses(["bench", "mlp", "--batch", "-3"], 2, "--batch")
        self.refuses(["bench", "mlp", "--batch", "many"], 2, "many")
        for option, value in (("--image-size", "-5"), ("--classes", "-1"), ("--warmup", "-1")):
            self.refuses(["bench", "mlp", option, value], 2, option)


class LookTest(ProgramTest):
    def test_models(self):
        listed = {model["name"]: model["parameters"] for model in json.loads(self.call("models", "--json"))}
        self.assertEqual(listed["resnet50"], 25557032)
        self.assertEqual(listed["lenet"], 61706)
        for name in listed:
            self.assertIn(name, self.call("models"))

    def test_doctor(self):
        devices = {device["name"]: device for device in json.loads(self.call("doctor", "--json"))["devices"]}
        self.assertTrue(devices["reference"]["found"])
        self.assertTrue(devices["cpu"]["found"], devices["cpu"]["detail"])
        self.assertIn("onednn", devices["cpu"]["versions"])
        text = self.call("doctor")
        self.assertIn("Devices", text)
        self.assertIn("TESSERA_PLUGIN_PATH", text)

    def test_doctor_says_which_communicators_there_are_and_why_not(self):
        empty = {**os.environ, "TESSERA_PLUGIN_PATH": str(self.root)}
        output = subprocess.run(self.words("doctor", "--json"), env=empty, capture_output=True, check=True).stdout
        communicators = {one["name"]: one for one in json.loads(output)["communicators"]}
        self.assertTrue(communicators["local"]["found"])
        self.assertFalse(communicators["mpi"]["found"])
        self.assertIn("Open MPI", communicators["mpi"]["detail"])
        self.assertRegex(self.call("doctor"), r"Communicators.*\n +local +found ")

    def test_text_that_is_not_utf8_is_told_all_the_same(self):
        strange = b"\xff\xfe"
        environment = {**os.environb, b"TESSERA_CUDA_CACHE": strange}
        output = subprocess.run(self.words("doctor", "--json"), env=environment, capture_output=True, check=True).stdout
        self.assertEqual(json.loads(output)["environment"]["TESSERA_CUDA_CACHE"], "\ufffd\ufffd")
        file = os.fsencode(self.root / "sum") + strange + b".graph"
        with open(file, "w", encoding="utf8") as graph:
            graph.write("graph sum(input %x: fp32[8, 4]) {\n  %y = reduce_sum(%x) {axes = [1]}\n  output y = %y\n}\n")
        program = os.fsencode(self.words()[0])
        for words in ([b"bench", file, b"--json", b"--iterations", b"1"], [b"explain", file, b"--json"],
                      [b"profile", file, b"--out", os.fsencode(self.root / "trace.json")]):
            ended = subprocess.run([program, *words], capture_output=True, check=False)
            self.assertEqual(ended.returncode, 0, ended.stderr)
        json.loads((self.root / "trace.json").read_text())

    def test_explain_json(self):
        for words in ((), ("--train",), ("--device", "null"), ("--device", "reference")):
            plan = json.loads(self.call("explain", "lenet", "--batch", 2, "--json", *words))
            self.assertTrue(plan["nodes"])
            for node in plan["nodes"]:
                self.assertLessEqual({"name", "operator", "kernel", "candidates", "flops", "bytes", "once"}, node.keys())
            self.assertGreaterEqual(plan["memory"]["peak_bytes"], plan["memory"]["lower_bound_bytes"])
        self.assertGreater(sum(node["flops"] for node in plan["nodes"]), 0)

    def test_explain_says_who_shares_a_workspace_and_what_is_made_once(self):
        memory = json.loads(self.call("explain", "lenet", "--batch", 64, "--beside", "1,8", "--json"))["memory"]
        workspace = memory["workspace"]
        self.assertEqual([one["batch"] for one in workspace["executables"]], [64, 1, 8])
        self.assertEqual(workspace["shared_bytes"], memory["peak_bytes"])
        self.assertEqual(workspace["alone_bytes"], sum(one["bytes"] for one in workspace["executables"]))
        for batch in (1, 8):
            alone = json.loads(self.call("explain", "lenet", "--batch", batch, "--json"))["memory"]["peak_bytes"]
            self.assertIn({"batch": batch, "bytes": alone}, workspace["executables"])
        told = self.call("explain", "lenet", "--batch", 64, "--beside", "1,8")
        self.assertRegex(told, r"Workspace: [^ ]+ .iB for 3 executables, [^ ]+ .iB if each had its own\n +[^ ]+ .iB  batch 64\n")
        # Of the weights of inference something is made once.
        plan = json.loads(self.call("explain", "resnet18", "--batch", 1, "--device", "null", "--json"))["memory"]
        self.assertEqual(sum(value["bytes"] for value in plan["derived"]), plan["persistent_bytes"])
        self.assertTrue(plan["derived"])
        self.assertIn(f"in {len(plan['derived'])} values", self.call("explain", "resnet18", "--batch", 1, "--device", "null"))

    def test_auto_says_why_it_found_no_gpu(self):
        plugins = self.root / "plugins"
        plugins.mkdir()
        library = Path(os.environ["TESSERA_PROGRAM"]).resolve().parents[1] / "lib" / "libtessera_cpu.so"
        (plugins / library.name).symlink_to(library)
        environment = {**os.environ, "TESSERA_PLUGIN_PATH": str(plugins)}
        reason = f"; auto found no GPU: device 'cuda' needs {plugins}/libtessera_cuda.so, which cannot be loaded"
        for words in (["bench", "mlp", "--iterations", 1], ["explain", "mlp"],
                      ["train", self.recipe, "--out", self.root / "run", "--device", "auto", "--quiet"]):
            output = subprocess.run(self.words(*words), env=environment, capture_output=True, text=True, check=True).stdout
            self.assertTrue(output.startswith("device: cpu, "), output)
            self.assertIn(reason, output.splitlines()[0])

        def run(*words):
            ended = subprocess.run(self.words(*words), env=environment, capture_output=True, text=True, check=True)
            return ended.stdout, ended.stderr

        # Where results alone go to standard output, once to standard error, or into the JSON.
        for command in ("eval", "predict"):
            told = run(command, self.root / "run", "--device", "auto")[1]
            self.assertEqual(told.count("\n"), 1, told)
            self.assertIn(f"device 'auto' is the CPU, no GPU: {reason.split(': ', 1)[1]}", told)
            self.assertEqual(run(command, self.root / "run", "--device", "cpu")[1], "")
        self.assertIn(reason[2:].split(": ", 1)[1],
                      json.loads(run("bench", "mlp", "--iterations", 1, "--json")[0])["device_fallback"])
        self.assertIn(reason[2:].split(": ", 1)[1], json.loads(run("explain", "mlp", "--json")[0])["device"]["fallback"])
        trace = self.root / "trace.json"
        self.assertIn(reason, run("profile", "mlp", "--iterations", 1, "--out", trace)[0].splitlines()[0])
        self.assertIn(reason, run("doctor")[0])

    def test_profile_shows_copies_that_run_at_once(self):
        trace = self.root / "trace.json"
        words = ("profile", "lenet", "--batch", 64, "--iterations", 4, "--device", "cpu", "--out", trace)
        self.assertNotIn("copies", self.call(*words))
        self.assertRegex(self.call(*words, "--copies", 2), r"; 2 copies at once, at least two of which worked in \d+ % of the time; ")
        told = json.loads(trace.read_text())
        self.assertEqual(told["otherData"]["copies"], 2)
        rows = {event["tid"]: event["args"]["name"] for event in told["traceEvents"] if event["name"] == "thread_name"}
        runs = {name: [] for name in rows.values()}
        for event in told["traceEvents"]:
            if event["ph"] == "X" and event["name"] == "run nodes":
                runs[rows[event["tid"]]].append((event["ts"], event["ts"] + event["dur"]))
        one, two = runs["runs of copy 1"], runs["runs of copy 2"]
        self.assertEqual((len(one), len(two)), (6, 6))
        # Two of each are warm-up. Whether the others meet is up to the machine, but the trace shows it.
        one, two = one[2:], two[2:]
        both = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in one for b in two)
        either = sum(end - begin for begin, end in one + two) - both
        self.assertAlmostEqual(told["otherData"]["shared_time"], both / either, places=3)

    def test_explain_recomputes_where_it_is_told(self):
        def peak(*words):
            words = ("explain", "resnet18", "--batch", 8, "--train", "--device", "null", "--json", *words)
            return json.loads(self.call(*words))["memory"]["peak_bytes"]

        self.assertLess(peak("--recompute"), peak("--no-recompute"))
        self.assertEqual(peak("--no-recompute"), peak("--disable-pass", "recompute_activations"))
        self.assertEqual(peak(), peak("--recompute"))  # what this device likes

    def test_explain_plans_for_a_named_card(self):
        words = ("explain", "lenet", "--batch", 8, "--train", "--precision", "fp16", "--text")
        process = self.start(*words, "--plan-for", "h100")
        output, errors = process.communicate(timeout=120)
        if process.returncode == 7:
            self.skipTest("built without the CUDA backend")
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(output, self.call(*words, "--device", "cuda:plan-h100"))
        self.refuses([*words, "--plan-for", "h1000"], 2, "h1000", "h200")
        self.refuses([*words, "--plan-for", "h100", "--device", "cpu"], 2, "--plan-for", "--device")

    def test_explain_shows_what_goes_on_beside_the_rest(self):
        words = ("explain", "lenet", "--batch", 8, "--train", "--plan-for", "h100", "--json")
        process = self.start(*words, "--ranks", 2, "--bucket-mib", 0.01)
        output, errors = process.communicate(timeout=120)
        if process.returncode == 7:
            self.skipTest("built without the CUDA backend")
        self.assertEqual(process.returncode, 0, errors)
        collectives = [node for node in json.loads(output)["nodes"] if node["operator"] == "all_reduce"]
        self.assertGreater(len(collectives), 3)
        for node in collectives:
            self.assertEqual(node["kernel"], "nccl")
            self.assertRegex(node["lane"], "^until ('.+'|the end)$")
        self.assertFalse([node for node in json.loads(self.call(*words))["nodes"] if "lane" in node])
        delayed = json.loads(self.call(*words, "--ranks", 2, "--bucket-mib", 0.01, "--gradient-delay"))["nodes"]
        begun = [node["operator"] == "all_reduce" for node in delayed]
        products = [i for i, node in enumerate(delayed) if "conv" in node["operator"] or "matmul" in node["operator"]]
        # All but the measures' travel while everything is computed.
        self.assertGreater(sum(begun[:products[0]]), 3)
        self.assertEqual(sum(begun[products[0]:]), 1)
        parts = json.loads(self.call(*words, "--ranks", 2, "--bucket-mib", 0.01, "--shard-optimizer"))["nodes"]
        for name in ("reduce_scatter", "all_gather"):
            collectives = [node for node in parts if node["operator"] == name]
            self.assertGreater(len(collectives), 1)
            self.assertEqual({node["kernel"] for node in collectives}, {"nccl"})
            self.assertTrue(all("lane" in node for node in collectives))
        recipe = ("explain", self.recipe, "--train", "--plan-for", "h100", "--json")
        for ranks in (1, 2):
            nodes = json.loads(self.call(*recipe, "--ranks", ranks))["nodes"]
            self.assertEqual(any(node["operator"] == "all_reduce" for node in nodes), ranks == 2)
        nodes = json.loads(self.call(*recipe, "--ranks", 2, "--shard-optimizer"))["nodes"]
        self.assertTrue(any(node["operator"] == "reduce_scatter" for node in nodes))

    def test_explain_limits(self):
        words = ("explain", "resnet18", "--batch", 8, "--train", "--precision", "fp16", "--json")
        self.assertNotIn("limit_microseconds", json.loads(self.call(*words, "--device", "null"))["total"])
        process = self.start(*words, "--device", "cuda:plan-h100")
        output, errors = process.communicate(timeout=120)
        if process.returncode == 7:
            self.skipTest("built without the CUDA backend")
        self.assertEqual(process.returncode, 0, errors)
        plan = json.loads(output)
        device, nodes = plan["device"], plan["nodes"]
        for node in nodes:
            moving = node["bytes"] / device["bytes_per_second"]
            computing = node["flops"] / device["flops_per_second"][node["arithmetic"]] if node["flops"] else 0
            # Of what JSON holds in full, in doubles; a sum of microseconds has thousands of them.
            self.assertAlmostEqual(node["limit_microseconds"], 1e6 * max(moving, computing), delta=1e-6)
            self.assertEqual(node["limited_by"], "memory" if moving >= computing else "arithmetic")
            self.assertNotIn("share_of_limit", node)
        self.assertEqual({node["arithmetic"] for node in nodes if "arithmetic" in node}, {"fp16", "fp32"})
        self.assertAlmostEqual(plan["total"]["limit_microseconds"], sum(node["limit_microseconds"] for node in nodes),
                               delta=1e-3)
        self.assertIn("at least", self.call(*words[:-1], "--device", "cuda:plan-h100"))

    def test_explain_times_of_operators(self):
        plan = json.loads(self.call("explain", "lenet", "--batch", 2, "--times", "--json"))
        self.assertFalse(plan["times_recorded"])
        # Sums of microseconds in doubles, in another order.
        self.assertAlmostEqual(plan["total"]["microseconds"], sum(node["microseconds"] for node in plan["nodes"]), delta=1e-3)
        text = self.call("explain", "lenet", "--batch", 2, "--times")
        self.assertIn("Operators", text)
        self.assertNotIn("limit", text)

    def test_explain_a_recipe(self):
        def plan(recipe, *words):
            return json.loads(self.call("explain", recipe, "--device", "null", "--json", *words))

        served, trained = plan(self.recipe), plan(self.recipe, "--train")
        self.assertLess(len(served["nodes"]), len(trained["nodes"]))
        self.assertEqual(served["memory"]["workspace"]["executables"][0]["batch"], 16)
        # The averages of the weights, and a larger batch.
        averaged = plan(self.recipe, "--train", "--set", "train.ema_decay=0.9")
        self.assertGreater(averaged["memory"]["variable_bytes"], trained["memory"]["variable_bytes"])
        larger = plan(self.recipe, "--train", "--batch", 64)
        self.assertGreater(larger["memory"]["peak_bytes"], trained["memory"]["peak_bytes"])
        self.assertEqual(plan(self.recipe, "--train", "--set", "train.batch=64")["nodes"], larger["nodes"])
        beside = plan(self.recipe, "--beside", "1,8")["memory"]["workspace"]["executables"]
        self.assertEqual([one["batch"] for one in beside], [16, 1, 8])
        for words in (["--train"], []):
            timed = json.loads(self.call("explain", self.recipe, *words, "--times", "--device", "cpu", "--json"))
            self.assertGreater(timed["total"]["microseconds"], 0)

    def test_explain_recipes_without_their_data(self):
        def names(*words):
            told = self.call("explain", ROOT / "recipes/gan.toml", "--set", "data.path=nowhere", "--train",
                             "--device", "null", "--text", *words)
            return "discriminator.conv1.weight/" in told, "generator.fc.weight/" in told

        # Moments of the optimizer: of the parameters that the phase trains.
        self.assertEqual(names(), (True, False))
        self.assertEqual(names("--phase", "generator"), (False, True))
        gan = ROOT / "recipes/gan.toml"
        self.refuses(["explain", gan, "--train", "--phase", "generater"], 2, "did you mean 'generator'", "discriminator")
        self.refuses(["explain", gan, "--phase", "generator"], 2, "--train")
        self.refuses(["explain", gan, "--image-size", 32], 2, "data.image_size")
        self.refuses(["explain", gan, "--set", "train.bach=3"], 2, "did you mean 'batch'")
        self.refuses(["explain", "lenet", "--set", "train.batch=3"], 2, "lenet")
        # How many embeddings there are the table says.
        self.refuses(["explain", ROOT / "recipes/flights.toml", "--set", "data.path=nowhere.csv"], 5, "nowhere.csv")

    def test_explain_a_graph_from_a_file(self):
        file = self.root / "sum.graph"
        file.write_text("graph sum(input %x: fp32[8, 4], input %n: int64[8]) {\n  %y = reduce_sum(%x) {axes = [1]}\n"
                        "  output y = %y\n  output n = %n\n}\n")
        plan = json.loads(self.call("explain", file, "--times", "--json"))
        self.assertEqual([node["operator"] for node in plan["nodes"]], ["reduce_sum"])
        self.assertIn("graph sum", self.call("explain", file, "--text"))
        self.assertEqual(len(json.loads(self.call("bench", file, "--iterations", 3, "--json"))["milliseconds"]), 3)
        self.refuses(["explain", file, "--train"], 2, "sum.graph")
        self.refuses(["explain", self.root / "som.graph"], 5, "som.graph")
        checked = [json.loads(self.call("bench", file, "--check", "--json", "--device", device))["outputs"] for device in ("cpu", "reference")]
        self.assertEqual(len(checked[0]), 8)
        for a, b in zip(*checked):  # sums of four numbers below one
            self.assertAlmostEqual(a, b, delta=1e-6)
        self.refuses(["bench", file, "--check", "--train"], 2, "sum.graph", "for inference")
        file.write_text("graph sum(parameter %x: fp32[8, 4], state %s: fp32[8]) {\n  %y = reduce_sum(%x) {axes = [1]}\n"
                        "  %n = add(%s, %y)\n  output y = %y\n  update %s = %n\n}\n")
        plan = json.loads(self.call("explain", file, "--json"))  # planning needs no values
        self.assertIn("add", {node["operator"] for node in plan["nodes"]})
        for words in (["explain", file, "--times"], ["profile", file]):
            self.refuses(words, 2, "sum.graph", "'x' is a variable")
        process = self.start("bench", file)
        self.assertIn("sum.graph: 'x' is a variable", process.communicate(timeout=60)[1])
        self.assertEqual(process.returncode, 2)
        file.write_text("graph sum(input %x: fp32[8, 4]) {\n  output y = %z\n}\n")
        self.refuses(["explain", file], 3, "sum.graph", "z")

    def test_explain_otherwise(self):
        self.assertTrue(self.call("explain", "lenet", "--batch", 2, "--dot").startswith("digraph"))
        self.assertIn("images", self.call("explain", "lenet", "--batch", 2, "--text"))
        self.assertIn("us", self.call("explain", "lenet", "--batch", 2, "--times"))
        text = self.call("explain", "mlp", "--batch", 2, "--disable-pass", "fuse_elementwise")
        self.assertIn("Passes", text)
        self.assertIn("mlp", self.call("explain", "mlp", "--batch", 2, "--dot", "--device", "null"))

    def test_refusals(self):
        self.refuses(["bench", "resnet51"], 2, "resnet51", "resnet50")
        self.refuses(["explain", "lnet"], 2, "lnet", "lenet")
        self.refuses(["bench", "mlp", "--device", "cpo"], 2, "cpo", "'cpu'")
        self.refuses(["bench", "mlp", "--device", "cuda:99"], 7, "cuda")
        self.refuses(["bench", "mlp", "--device", "null", "--batch", "2"], 7, "null")
        self.refuses(["bench", "mlp", "--precision", "fp17"], 2, "fp17", "fp16")
        self.refuses(["bench", "mlp", "--train", "--steps", 3], 2, "--steps", "--check")
        self.refuses(["bench", "mlp", "--train", "--check", "--steps", 0], 2, "--steps")
        self.refuses(["explain", "mlp", "--disable-pass", "fuse_elementwize"], 2, "fuse_elementwize")
        self.refuses(["bench", "lenet", "--image-size", "3"], 3)


if __name__ == "__main__":
    unittest.main()
