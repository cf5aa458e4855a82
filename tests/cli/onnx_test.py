"""Networks in the ONNX format, through the program: those of the format's own tests."""

import os
import pathlib
import struct
import unittest

from program import ProgramTest

NODES = pathlib.Path(os.environ["TESSERA_ONNX_TESTS"])


def npy(shape, values):
    """An array of fp32 as NumPy writes it."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values)


class OnnxTest(ProgramTest):
    def write(self, name, shape, values):
        path = self.root / name
        path.write_bytes(npy(shape, values))
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

    def test_bad_input(self):
        model = NODES / "test_add" / "model.onnx"
        x = self.write("x.npy", (2,), [1, 2])
        self.refuses(["run", model, "--input", f"x={x}"], 2, "'x'", "fp32[3, 4, 5]", "fp32[2]")
        self.refuses(["run", model, "--input", f"z={x}"], 2, "no input 'z'")
        self.refuses(["run", model, "--input", "x"], 2, "NAME=FILE")
        self.refuses(["run", model, "--input", f"x={self.root / 'nowhere.npy'}"], 5, "nowhere.npy")
        self.refuses(["run", x], 4, "x.npy", "no onnx.ModelProto")
        self.refuses(["run", NODES / "test_image_decoder_decode_png_rgb" / "model.onnx"], 7, "ImageDecoder")


if __name__ == "__main__":
    unittest.main()
