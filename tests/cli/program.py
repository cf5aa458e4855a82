"""What the tests of the program share: calling it, a tiny data set, a tiny recipe."""

import gzip
import json
import os
import random
import struct
import subprocess
import tempfile
import time
import unittest
import zlib
from pathlib import Path

PROGRAM = os.environ["TESSERA_PROGRAM"]
ROOT = Path(__file__).resolve().parents[2]

RECIPE = """
[model]
name = "mlp"
hidden = [12]
dropout = 0.2

[data]
kind = "idx"
path = "{data}"
image_size = 6
classes = 3
mean = [0.3]
std = [0.3]

[train]
epochs = 4
batch = 16
device = "cpu"

[optimizer]
name = "sgd"
learning_rate = 0.1

[schedule]
name = "cosine"
"""


# Of a run that ends only when it is ended, and of one that is stopped somewhere: two thousand steps, and no checkpoint but what the stop makes.
ENDLESS = ("--set", "train.epochs=1000000")
LONG = ("--set", "train.epochs=400", "--set", "train.checkpoint_every=0", "--set", "train.evaluate_every=0")


def idx(shape, values):
    return struct.pack(">HBB", 0, 8, len(shape)) + struct.pack(f">{len(shape)}I", *shape) + bytes(values)


def read_idx(path):
    """The bytes of the elements of a file that idx() made, plain or with ".gz"."""
    content = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(path.name + ".gz").read_bytes())
    return content[4 + 4 * content[3]:]


def write_images(folder, prefix, count, seed, zipped=False):
    """Images of 6x6 noisy pixels whose bright third is the label."""
    source = random.Random(seed)
    labels = [source.randrange(3) for _ in range(count)]
    pixels = [source.randrange(90) + (120 if i % 6 // 2 == label else 0) for label in labels for i in range(36)]
    for name, content in ((f"{prefix}-images-idx3-ubyte", idx((count, 6, 6), pixels)),
                          (f"{prefix}-labels-idx1-ubyte", idx((count,), labels))):
        if zipped:
            (folder / (name + ".gz")).write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


def npy(shape, content, kind):
    """An array of such elements as NumPy writes it."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content


def png(height, width, pixels):
    """A gray image, a byte for each pixel."""
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    rows = b"".join(b"\0" + pixels[row * width:(row + 1) * width] for row in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def checkpoint(path):
    """Metadata and tensors' bytes of a safetensors file, which must be whole."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    metadata = header.pop("__metadata__", {})
    assert sum(end - begin for begin, end in (entry["data_offsets"] for entry in header.values())) == len(data), path
    return metadata, data


def tree(folder):
    """Every file below with its contents."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class ProgramTest(unittest.TestCase):
    def setUp(self):
        # In memory where possible: each checkpoint is synced, which takes long on a busy disk.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.temporary = tempfile.TemporaryDirectory(prefix="tessera-cli-", dir=memory)
        self.addCleanup(self.temporary.cleanup)
        self.root = Path(self.temporary.name)
        self.data = self.root / "data"
        self.data.mkdir()
        write_images(self.data, "train", 100, 1)
        write_images(self.data, "t10k", 40, 2, zipped=True)
        self.recipe = self.root / "tiny.toml"
        self.recipe.write_text(RECIPE.format(data=self.data))

    def words(self, *words):
        return [PROGRAM, *map(str, words)]

    def start(self, *words, threads=0, **options):
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
        if threads:
            environment["OMP_NUM_THREADS"] = str(threads)
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen(self.words(*words), text=True, cwd=self.root, env=environment, **streams)

    def begin(self, out, *words, **options):
        """A training that has begun, which none of these lets end soon."""
        process = self.start("train", self.recipe, "--out", out, "--quiet", *LONG, *words, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while not any(out.glob("events.out.tfevents.*")):
            if process.poll() is not None:
                self.fail(process.stderr.read())
            time.sleep(0.002)
        return process

    def stop(self, signals, *words, code=130):
        """Sends these to a training that has begun; the folder of the run that they stopped, and what it said. One that
        ended before they came, on a busy machine, is begun anew."""
        for attempt in range(50):
            out = self.root / f"stopped{attempt}-{signals[0]}"
            process = self.begin(out, *words)
            for number in signals:
                process.send_signal(number)
            output, errors = process.communicate(timeout=60)
            if process.returncode != 0:
                self.assertEqual(process.returncode, code, output + errors)
                return out, output
        self.fail("it ended before it could be stopped, each time")

    def goes_on_to(self, out, expected, told):
        """By the command that a stopped run printed, to the same bytes as one that was not stopped."""
        self.assertFalse((out / "model.safetensors").exists())
        self.call(*told.split("Go on with:")[1].split()[1:], "--quiet")
        self.assertEqual(self.weights(out), self.weights(expected))

    def call(self, *words, code=0):
        """Standard output; a failure must be one line on standard error and nothing else."""
        process = self.start(*words)
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, code, f"{words}: {output}{errors}")
        if code:
            self.assertEqual(errors.count("\n"), 1, errors)
            self.assertTrue(errors.startswith("tessera: "), errors)
            return errors
        return output

    def refuses(self, words, code, *parts):
        """A clear refusal that leaves every file as it was."""
        before = tree(self.root)
        message = self.call(*words, code=code)
        for part in parts:
            self.assertIn(str(part), message)
        self.assertEqual(tree(self.root), before)

    def train(self, out, *words, **options):
        return self.call("train", self.recipe, "--out", self.root / out, *words, **options)

    def weights(self, out):
        return (self.root / out / "model.safetensors").read_bytes()
