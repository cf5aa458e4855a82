"""Networks in the ONNX format, through the program: those of the format's own tests."""

import gzip
import json
import os
import pathlib
import random
import struct
import unittest
import zipfile

from program import RECIPE, ProgramTest, checkpoint, idx, npy, png

NODES = pathlib.Path(os.environ["TESSERA_ONNX_TESTS"])


class OnnxTest(ProgramTest):
    def write(self, name, shape, values):
        path = self.root / name
        path.write_bytes(npy(shape, struct.pack(f"<{len(values)}f", *values), "<f4"))
        return path

    def test_lists_inputs_without_any(self):
        output = self.call("run", NODES / "test_add" / "model.onnx")
        self.assertIn("x: fp32[3, 4, 5]", output)
        self.assertIn("sum: fp32[3, 4, 5]", output)

    def test_runs_and_writes_outputs(self):
        x = self.write("x.npy", (3, 4, 5), range(60))
        y = self.write("y.npy", (3, 4, 5), [1] * 60)
        output = self.call("run", NODES / "test_add" / "model.onnx", "--input", f"x={x}", "--input", f"y={y}",
                           "--output-folder", self.root / "out", "--explain")
        self.assertIn("sum: fp32[3, 4, 5]", output)
        self.assertIn("on cpu, 1 nodes; the block ends", output)
        written = (self.root / "out" / "sum.npy").read_bytes()
        self.assertEqual(struct.unpack("<60f", written[-240:]), tuple(range(1, 61)))

    def test_takes_all_inputs_from_one_file(self):
        with zipfile.ZipFile(self.root / "inputs.npz", "w", zipfile.ZIP_DEFLATED) as inputs:
            for name in "xy":
                inputs.write(self.write(f"{name}.npy", (3, 4, 5), range(60)), f"{name}.npy")
        self.call("run", NODES / "test_add" / "model.onnx", "--input", self.root / "inputs.npz",
                  "--output-folder", self.root / "out")
        written = (self.root / "out" / "sum.npy").read_bytes()
        self.assertEqual(struct.unpack("<60f", written[-240:]), tuple(range(0, 120, 2)))

    def test_bad_input(self):
        model = NODES / "test_add" / "model.onnx"
        x = self.write("x.npy", (2,), [1, 2])
        self.refuses(["run", model, "--input", f"x={x}"], 2, "'x'", "fp32[3, 4, 5]", "fp32[2]")
        self.refuses(["run", model, "--input", f"z={x}"], 2, "no input 'z'")
        self.refuses(["run", model, "--input", "x"], 2, "NAME=FILE")
        self.refuses(["run", model, "--input", f"x={self.root / 'nowhere.npy'}"], 5, "nowhere.npy")
        self.refuses(["run", x], 4, "x.npy", "no onnx.ModelProto")
        self.refuses(["run", NODES / "test_image_decoder_decode_png_rgb" / "model.onnx"], 7, "ImageDecoder")

    def test_takes_images_and_json(self):
        pixels = [random.Random(7).randrange(256) if i % 3 else i % 251 for i in range(784)]
        real = [(pixel / 255 - 0.25) / 0.5 for pixel in pixels]
        image = self.root / "image.PNG"
        image.write_bytes(png(28, 28, bytes(pixels)))
        array = self.write("image.npy", (1, 28, 28, 1), real)
        listed = self.root / "image.json"
        listed.write_text(json.dumps([[[[real[28 * y + x]] for x in range(28)] for y in range(28)]]))
        self.call("export", "lenet", "--output", self.root / "lenet.onnx")
        words = ["run", self.root / "lenet.onnx", "--mean", 0.25, "--deviation", 0.5, "--output-folder", self.root / "out"]
        logits = {}
        for name, path, more in (("image", image, []), ("array", array, []), ("listed", listed, []),
                                 ("half", image, ["--precision", "fp16"])):
            output = self.call(*words, "--input", f"images={path}", *more)
            logits[name] = struct.unpack("<10f", (self.root / "out" / "logits.npy").read_bytes()[-40:])
            self.assertIn(f"{logits[name][0]:.6g}, {logits[name][1]:.6g}", output)
        self.assertEqual(logits["image"], logits["array"])
        self.assertEqual(logits["listed"], logits["array"])
        largest = max(logits["array"])
        difference = max(abs(a - b) for a, b in zip(logits["array"], logits["half"]))
        self.assertTrue(0 < difference < 2e-3 * max(map(abs, logits["array"])))  # some roundings of 11 digits in five layers
        self.assertIn(f"  {logits['array'].index(largest)}: {largest:.6g}, ", self.call(*words, "--input", f"images={image}", "--top", 2))

    def test_bad_images_and_json(self):
        model = NODES / "test_add" / "model.onnx"
        broken = self.root / "broken.png"
        broken.write_bytes(png(28, 28, bytes(784))[:60])
        self.call("export", "lenet", "--output", self.root / "lenet.onnx")
        self.refuses(["run", self.root / "lenet.onnx", "--input", f"images={broken}"], 4, "broken.png")
        self.refuses(["run", self.root / "lenet.onnx", "--input", f"image={broken}"], 2, "no input 'image'")
        self.refuses(["run", self.root / "lenet.onnx", "--mean", "0.1,0.2", "--input", f"images={broken}"], 2, "2 numbers for the 1 channels")
        self.refuses(["run", model, "--input", f"x={broken}"], 2, "is not one image")
        self.refuses(["run", model, "--precision", "fp12", "--input", f"x={broken}"], 2, "fp12")
        for text, words in (("[1, [2]]", "nested evenly"), ("[[1, 2], [3]]", "nested evenly"), ("[1", "is no JSON"),
                            ('[1, "a"]', "no number"), ('["a", 1]', "texts and others"), ("[" * 99 + "]" * 99, "nested more than")):
            path = self.root / "x.json"
            path.write_text(text)
            self.refuses(["run", model, "--input", f"x={path}"], 4, "x.json", words)

    def serve(self, model):
        """The logits that a model gives for the test images, through the program."""
        pixels = gzip.decompress((self.data / "t10k-images-idx3-ubyte.gz").read_bytes())[16:]
        images = self.root / "images.npy"
        images.write_bytes(npy((40, 6, 6, 1), pixels, "|u1"))
        self.call("run", model, "--input", f"images={images}", "--output-folder", self.root / "served")
        return struct.unpack("<120f", (self.root / "served" / "logits.npy").read_bytes()[-480:])

    def test_export_gives_what_predict_gives(self):
        self.train("run", "--quiet", "--set", "train.epochs=2", "--set", "train.keep_checkpoints=0")
        run = self.root / "run"
        self.assertIn("tiny.onnx", self.call("export", run, "--output", self.root / "tiny.onnx"))
        self.call("predict", run, "--all", "--out", self.root / "logits.safetensors")
        predicted = struct.unpack("<120f", checkpoint(self.root / "logits.safetensors")[1])
        served = self.serve(self.root / "tiny.onnx")
        self.assertGreater(len(set(served)), 60)
        # Two layers sum 36 and 12 products of numbers below 2 in fp32, in any order (tests/support/tolerance.h).
        for own, theirs in zip(served, predicted):
            self.assertAlmostEqual(own, theirs, delta=4 * (36 + 12) * 2 * 2**-24)
        self.assertIn(b"classes", (self.root / "tiny.onnx").read_bytes())
        # Weights of a checkpoint on the way are other weights.
        earlier = min((run / "checkpoints").glob("step-*.safetensors"))
        self.call("export", run, "--checkpoint", earlier, "--output", self.root / "earlier.onnx")
        self.assertNotEqual(self.serve(self.root / "earlier.onnx"), served)
        # Names of classes come with the data, and a model does without.
        for file in self.data.iterdir():
            file.unlink()
        self.call("export", run, "--output", self.root / "nameless.onnx")
        self.assertNotIn(b"classes", (self.root / "nameless.onnx").read_bytes())

    def test_trains_a_network_in_a_file(self):
        self.call("export", "lenet", "--output", self.root / "lenet.onnx")
        source = random.Random(3)
        for prefix, count in (("train", 32), ("t10k", 16)):
            pixels = [source.randrange(256) for _ in range(count * 28 * 28)]
            labels = [pixels[i * 784] // 86 for i in range(count)]
            for path in self.data.glob(f"{prefix}-*"):
                path.unlink()
            (self.data / f"{prefix}-images-idx3-ubyte").write_bytes(idx((count, 28, 28), pixels))
            (self.data / f"{prefix}-labels-idx1-ubyte").write_bytes(idx((count,), labels))
        self.recipe.write_text(RECIPE.format(data=self.data).replace("hidden = [12]\ndropout = 0.2\n", ""))
        words = ["train", self.recipe, "--quiet", "--network", "lenet.onnx", "--set", "data.image_size=28",
                 "--set", "model.classes=10", "--set", "train.epochs=3"]
        self.call(*words, "--out", "straight")
        recipe = (self.root / "straight" / "recipe.toml").read_text()
        self.assertIn('name = "file"', recipe)
        self.assertIn('file = "lenet.onnx"', recipe)
        # Its own weights are what it begins with, whatever the seed.
        self.call(*words, "--out", "stopped", "--max-steps", 3)
        self.call("train", "stopped/recipe.toml", "--out", "stopped", "--resume", "--quiet")
        last = [checkpoint(self.root / run / "model.safetensors") for run in ("straight", "stopped")]
        self.assertEqual(last[0][1], last[1][1])
        self.assertIn("accuracy", self.call("eval", "straight"))
        self.assertIn("right", self.call("predict", "straight"))
        self.call("export", "straight", "--output", "trained.onnx")
        self.assertIn("images: uint8[batch, 28, 28, 1]", self.call("run", "trained.onnx"))
        self.refuses([*words, "--set", "model.classes=7", "--out", "x"], 7, "lenet.onnx", "fp32[3, 7] is wanted")
        self.refuses([*words, "--set", "data.image_size=6", "--out", "x"], 7, "lenet.onnx", "6 x 6 pixels")
        for network, code, parts in (("trained.onnx", 7, ["'images' is uint8"]), ("nowhere.onnx", 5, []),
                                     ("tiny.toml", 7, ["end with .onnx"])):
            other = [network if word == "lenet.onnx" else word for word in words]
            self.refuses([*other, "--out", "x"], code, network, *parts)
        self.refuses(["train", self.recipe, "--set", "model.name=file", "--out", "x"], 2, "'model.file' is missing")

    def test_times_and_explains_files_as_networks_by_name(self):
        model = self.root / "lenet.onnx"
        self.call("export", "lenet", "--output", model)
        plan = json.loads(self.call("explain", model, "--batch", 3, "--times", "--json", "--device", "cpu"))
        self.assertIn("onednn", " ".join(node["kernel"] for node in plan["nodes"]))
        self.assertGreater(plan["total"]["microseconds"], 0)
        planned = json.loads(self.call("explain", model, "--plan-for", "h100", "--precision", "fp16", "--json"))
        self.assertIn("cudnn.convolution", {node["kernel"] for node in planned["nodes"]})
        timed = json.loads(self.call("bench", model, "--size", "batch=5", "--iterations", 2, "--json", "--device", "cpu"))
        self.assertEqual((timed["batch"], len(timed["milliseconds"])), (5, 2))
        # A name that is no word, as files of PaddlePaddle have it, and as ours say it.
        named = self.root / "named.onnx"
        bytes_of = model.read_bytes()
        named.write_bytes(bytes_of.replace(b"batch", b"b.tch"))
        self.assertNotEqual(named.read_bytes(), bytes_of)
        for size in ("b.tch=5", "b_tch=5"):
            timed = json.loads(self.call("bench", named, "--size", size, "--iterations", 2, "--json", "--device", "cpu"))
            self.assertEqual(timed["batch"], 5)
        self.assertIn("batch 2 on cpu", self.call("profile", model, "--batch", 2, "--device", "cpu",
                                                  "--out", self.root / "trace.json"))
        checked = [json.loads(self.call("bench", model, "--check", "--json", "--device", device))["outputs"] for device in ("cpu", "reference")]
        self.assertEqual(len(checked[0]), 10)
        for a, b in zip(*checked):  # logits of about one, of sums of at most a thousand products
            self.assertAlmostEqual(a, b, delta=1e-5 + 1e-5 * abs(b))
        # A batch that the file says is the batch, whatever else is said.
        self.assertIn("batch 3 on cpu", self.call("bench", NODES / "test_add" / "model.onnx", "--batch", 7, "--device", "cpu",
                                                  "--iterations", 1))

    def test_refuses_files_that_are_no_single_graph(self):
        model = self.root / "lenet.onnx"
        self.call("export", "lenet", "--output", model)
        self.refuses(["bench", model, "--size", "bach=4"], 2, "no size 'bach'", "did you mean 'batch'")
        self.refuses(["bench", model, "--size", "batch=none"], 2, "NAME=N", "batch=none")
        self.refuses(["bench", model, "--train"], 2, "lenet.onnx", "for inference")
        self.refuses(["bench", "lenet", "--size", "batch=4"], 2, "--size", "network by name")
        self.refuses(["bench", NODES / "test_nonzero_example" / "model.onnx"], 7, "NonZero")
        self.refuses(["explain", NODES / "test_sequence_insert_at_back" / "model.onnx"], 7, "sequence")

    def test_explains_what_is_several_graphs(self):
        # Range as its function says: how many there are, on the host so many iterations of a body.
        model = NODES / "test_range_float_type_positive_delta_expanded" / "model.onnx"
        names = [line.split(":")[0].strip() for line in self.call("run", model).split("outputs")[0].splitlines()[1:]]
        inputs = []
        for name, value in zip(names, (1, 5, 2)):
            inputs += ["--input", f"{name}={self.write(f'{value}.npy', (), [value])}"]
        words = ["explain", model, *inputs, "--plan-for", "h100"]
        parts = json.loads(self.call(*words, "--json"))["parts"]
        count, loop, body = parts
        self.assertEqual((count["runs"], loop["runs"], body["runs"]), (1, 1, 2))  # which gives 1 and 3
        self.assertIn("(Loop) runs on the host", count["ends"])
        self.assertEqual(loop["done"], "on the host")
        self.assertIn("'loop_body_attribute', instructions 0 to 2", body["place"])
        for part in (count, body):
            self.assertEqual(part["plan"]["device"]["name"], "cuda")
            self.assertTrue(part["plan"]["nodes"])
        text = self.call(*words)
        self.assertIn("Part 1 of 3: '", text)
        self.assertIn("2 runs; the block ends", text)
        self.assertIn("on the host", self.call("explain", NODES / "test_nonzero_example" / "model.onnx", "--device", "cpu"))
        self.refuses([*words, "--times"], 2, "--times", "of one graph")
        self.refuses(["explain", "lenet", "--input", f"x={self.root / '1.npy'}"], 2, "--input", "'lenet' is none")

    def test_exports_narrow_types_and_external_data(self):
        images = self.root / "images.npy"
        images.write_bytes(npy((2, 28, 28, 1), struct.pack("<1568f", *(i % 7 / 7 for i in range(1568))), "<f4"))
        logits = {}
        for name, words in (("wide", []), ("half", ["--precision", "fp16"]), ("brain", ["--precision", "bf16"]),
                            ("beside", ["--external-data"])):
            model = self.root / f"{name}.onnx"
            self.call("export", "lenet", *words, "--output", model)
            self.call("run", model, "--input", f"images={images}", "--output-folder", self.root / name)
            logits[name] = struct.unpack("<20f", (self.root / name / "logits.npy").read_bytes()[-80:])
        self.assertEqual(logits["wide"], logits["beside"])
        largest = max(map(abs, logits["wide"]))
        for name, share in (("half", 2e-3), ("brain", 2e-2)):  # some roundings of 11 and 8 digits in five layers
            difference = max(abs(a - b) for a, b in zip(logits["wide"], logits[name]))
            self.assertTrue(0 < difference < share * largest, (name, difference, largest))
        size = {name: (self.root / f"{name}.onnx").stat().st_size for name in logits}
        self.assertLess(size["half"], 0.52 * size["wide"])
        self.assertLess(size["beside"], 0.1 * size["wide"])
        (self.root / "beside.onnx.data").unlink()
        self.refuses(["run", self.root / "beside.onnx"], 5, "beside.onnx.data")

    def test_export_refuses(self):
        self.call("export", "lenet", "--output", self.root / "lenet.onnx")
        self.assertIn("images: fp32[batch, 28, 28, 1]", self.call("run", self.root / "lenet.onnx"))
        self.refuses(["export", "lenett", "--output", self.root / "x.onnx"], 5, "lenett")
        self.refuses(["export", "lenet", "--output", self.root / "nowhere" / "x.onnx"], 5, "nowhere")
        self.refuses(["export", "lenet", "--checkpoint", "x", "--output", self.root / "x.onnx"], 2, "--checkpoint")


if __name__ == "__main__":
    unittest.main()
