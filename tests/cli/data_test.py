"""Images in files: what `tessera data` does, and training, evaluation and prediction from them."""

import json
import os
import re
import shutil
import statistics
import struct
import time
import unittest
from pathlib import Path
from unittest import mock

from program import ROOT, ProgramTest, checkpoint, tree
from task_data import write_pictures


def checksum(content):
    """The masked CRC-32C of TFRecord, bit by bit."""
    value = 0xFFFFFFFF
    for byte in content:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(content):
    length = struct.pack("<Q", len(content))
    return length + checksum(length) + content + checksum(content)


def field(number, content):
    """A text or message in protobuf's wire format."""
    length, left = b"", len(content)
    while left > 0x7F:
        length += bytes([left & 0x7F | 0x80])
        left >>= 7
    return bytes([number << 3 | 2]) + length + bytes([left]) + content


def example(image, label):
    def feature(name, kind, value):
        return field(1, field(1, name) + field(2, field(kind, field(1, value))))

    return field(1, feature(b"image/encoded", 1, image) + feature(b"image/class/label", 3, bytes([label])))


def held_by(process):
    """Bytes of memory of its own and the number of open files; nothing of one that is ending."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
        files = len(os.listdir(f"/proc/{process}/fd"))
    except OSError:
        return None
    own = re.search(r"RssAnon:\s+(\d+) kB", status) or re.search(r"VmRSS:\s+(\d+) kB", status)
    return (1024 * int(own[1]), files) if own else None


class DataTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.files = self.root / "files"
        self.call("data", "export", self.data, "-o", self.files, "--format", "png")

    def train_files(self, out, *words, path=None, kind="image_folder"):
        self.call("train", self.recipe, "--out", self.root / out, "--quiet", "--set", f"data.kind={kind}",
                  "--set", f"data.path={path or self.files}", "--set", "data.crop_share=[0.7,1]", "--set", "data.flip=true", *words)
        return self.root / out

    def test_files_are_counted_and_broken_ones_named(self):
        self.assertEqual(len(list(self.files.rglob("*.png"))), 140)
        (self.files / "train" / "0_0" / "empty.jpg").write_bytes(b"")
        (self.files / "train" / "1_1" / "text.txt").write_text("no image")
        found = json.loads(self.call("data", "inspect", self.files, "--json"))
        self.assertEqual(found["train"]["images"], 101)
        self.assertEqual(found["test"]["images"], 40)
        self.assertEqual(sum(found["train"]["classes"].values()), 100)
        self.assertEqual(found["train"]["formats"], {"png": 100})
        self.assertEqual(found["train"]["width"], [6, 6, 6])
        self.assertRegex(found["train"]["broken"][0], "empty.jpg: the file is empty")
        self.assertRegex(self.call("data", "inspect", self.files, "--headers"), "(?s)train: 101 images of 3 classes.*1 cannot be read")
        self.refuses(["data", "inspect", self.root / "nowhere"], 5, "nowhere: no such folder")
        self.refuses(["data"], 2, "subcommand")

    def test_shards_hold_the_same_images(self):
        shards = self.root / "shards"
        self.call("data", "pack", self.files, "-o", shards)
        packed = tree(shards)
        self.assertRegex(self.call("data", "pack", self.files, "-o", shards), "train: 1 shards, 1 of them from before, 100 images")
        self.assertEqual(tree(shards), packed)
        found, expected = (json.loads(self.call("data", "inspect", folder, "--json")) for folder in (shards, self.files))
        self.assertEqual(found["train"], {**expected["train"], "classes": found["train"]["classes"]})
        self.assertEqual(self.train_files("a", path=shards, kind="tar").joinpath("model.safetensors").read_bytes(),
                         self.train_files("b").joinpath("model.safetensors").read_bytes())
        shard = shards / "val" / "shard-000000.tar"
        content = bytearray(shard.read_bytes())
        content[800] ^= 1
        shard.write_bytes(content)
        self.assertRegex(json.loads(self.call("data", "inspect", shards, "--json"))["test"]["broken_shards"][0], "checksum")

    def test_tfrecords_hold_the_same_images(self):
        records = self.root / "records"
        records.mkdir()
        for part, name in (("train", "train"), ("val", "validation")):
            images = sorted((self.files / part).rglob("*.png"))
            classes = sorted(folder.name for folder in (self.files / part).iterdir())
            parts = [record(example(image.read_bytes(), classes.index(image.parent.name))) for image in images]
            for number, shard in enumerate((parts[:30], parts[30:])):
                (records / f"{name}-0000{number}-of-00002").write_bytes(b"".join(shard))
        (records / "classes.txt").write_text("".join(f"{name}\n" for name in classes))
        self.assertEqual(self.train_files("a", path=records, kind="tfrecord").joinpath("model.safetensors").read_bytes(),
                         self.train_files("b").joinpath("model.safetensors").read_bytes())
        found = json.loads(self.call("data", "inspect", records, "--json"))
        self.assertEqual((found["train"]["images"], found["test"]["images"]), (100, 40))
        shard = records / "train-00001-of-00002"
        content = bytearray(shard.read_bytes())
        content[len(parts[0]) + 500] ^= 1
        shard.write_bytes(content)
        self.refuses(["data", "inspect", records], 4, "train-00001-of-00002: the record at byte", "damaged")

    def test_images_are_shown_with_their_labels(self):
        (self.files / "train" / "0_0" / "000000.jpg").write_bytes(b"no image")
        for words in ((), ("--crops", "--size", 32)):
            self.call("data", "show", self.files, "-o", self.root / "sheet.html", "--count", 20, *words)
            page = (self.root / "sheet.html").read_text()
            self.assertEqual(page.count("data:image/png;base64,"), 39)
            self.assertEqual(page.count("<figcaption>0_0</figcaption>") + page.count("<figcaption>1_1</figcaption>")
                             + page.count("<figcaption>2_2</figcaption>"), 39)
            self.assertIn("19 of 101 images", page)
            self.assertRegex(page, "000000.jpg: its first bytes are those of no JPEG")
        self.refuses(["data", "show", self.root / "nowhere", "-o", self.root / "sheet.html"], 5, "nowhere: no such folder")

    def write_coco(self):
        """Two exported images with a box and a mask each, of which one is broken, and one of a wrong size."""
        folder = self.root / "coco"
        images = sorted((self.files / "train").rglob("*.png"))[:3]
        (folder / "train2017").mkdir(parents=True)
        for number, image in enumerate(images):
            (folder / "train2017" / f"{number}.png").write_bytes(image.read_bytes())
        entries = [{"id": n, "file_name": f"{n}.png", "height": 6, "width": 6 + (n == 2)} for n in range(3)]
        boxes = [{"image_id": 0, "category_id": 5, "bbox": [1, 1, 4, 3], "segmentation": [[1, 1, 5, 1, 5, 4]]},
                 {"image_id": 1, "category_id": 9, "bbox": [0, 0, 6, 6], "iscrowd": 1,
                  "segmentation": {"size": [6, 6], "counts": [6, 12, 18]}},
                 {"image_id": 1, "category_id": 7, "bbox": [0, 0, 6, 6]}]
        (folder / "annotations").mkdir()
        (folder / "annotations" / "instances_train2017.json").write_text(json.dumps(
            {"images": entries, "annotations": boxes, "categories": [{"id": 5, "name": "cat"}, {"id": 9, "name": "dog"}]}))
        return folder

    def test_annotations_are_counted_and_drawn(self):
        folder = self.write_coco()
        found = json.loads(self.call("data", "inspect", folder, "--json"))["train"]
        self.assertEqual(found["images"], 3)
        self.assertRegex(found["broken"][0], "2.png: has 6x6 pixels, its annotations are of 7x6")
        self.assertEqual(found["annotations"]["classes"], {"cat": 1, "dog": 1})
        self.assertEqual((found["annotations"]["boxes"], found["annotations"]["masks"], found["annotations"]["ignored"]), (2, 2, 1))
        self.assertEqual(found["annotations"]["box_width"], [4, 6, 6])
        self.assertRegex(found["annotations"]["broken"][0], "annotation 3: there is no category 7")
        self.assertRegex(self.call("data", "inspect", folder), "(?s)train: 3 images of 2 classes.*2 boxes.*1 annotations are broken")
        for words in ((), ("--crops",)):
            self.call("data", "show", folder, "-o", self.root / "sheet.html", "--size", 64, *words)
            page = (self.root / "sheet.html").read_text()
            self.assertEqual(page.count("data:image/png;base64,"), 2)
            self.assertIn("2.png: has 6x6 pixels", page)
            if not words:
                self.assertIn("<figcaption>1 cat</figcaption>", page)
                self.assertIn("<figcaption>1 dog (ignored)</figcaption>", page)
        self.refuses(["data", "pack", folder, "-o", self.root / "shards"], 7, "annotated images")

    def test_training_resumes_in_the_middle_of_an_epoch_to_the_same_bytes(self):
        straight = self.train_files("straight")
        stopped = self.train_files("stopped", "--max-steps", 8)
        self.call("train", stopped / "recipe.toml", "--out", stopped, "--resume", "--quiet", "--set", "data.workers=3")
        self.assertEqual(*(checkpoint(run / "checkpoints/last.safetensors")[1] for run in (stopped, straight)))
        summary = json.loads((straight / "summary.json").read_text())
        # The same weights see the same images on the same device: the same number.
        self.assertEqual(json.loads(self.call("eval", straight, "--json"))["accuracy"], summary["test_accuracy"])

    def test_broken_files_are_trained_through(self):
        (self.files / "train" / "0_0" / "000000.jpg").write_bytes(b"no image")
        for policy, said in (("skip", "1 of 101 samples could not be read and were skipped"), ("replace", "were replaced")):
            run = self.train_files(policy, "--set", f"data.broken={policy}")
            self.assertIn(said, (run / "report.html").read_text())
        words = ["train", self.recipe, "--out", self.root / "fail", "--quiet", "--set", "data.kind=image_folder",
                 "--set", f"data.path={self.files}"]
        self.assertRegex(self.call(*words, code=4), "000000.jpg: its first bytes are those of no JPEG")
        self.refuses([*words, "--set", "data.crop_share=[1, 0.5]"], 2, "'data.crop_share' must be two numbers")

    def test_what_is_kept_in_memory_is_told(self):
        whole = self.train_files("whole", "--set", "data.cache=pixels")
        self.assertIn("100 of 100 images are kept in memory decoded, in 3.5 KiB of 1.0 GiB", (whole / "report.html").read_text())
        # The files of this data are PNG, whose pixels are the same whatever is kept.
        plain = self.train_files("plain")
        self.assertEqual(*(checkpoint(run / "checkpoints/last.safetensors")[1] for run in (whole, plain)))
        words = ["train", self.recipe, "--out", self.root / "gpu", "--set", "data.kind=image_folder", "--set", f"data.path={self.files}"]
        self.refuses([*words, "--set", "data.cpu_share=0.2"], 2, "'data.cpu_share' is of files that the GPU decodes")

    def test_fifty_epochs_take_no_more_memory_and_files_than_ten(self):
        """Batches of 324 KiB are made by three threads anew in each epoch; what steps leave for the report is 3 KiB."""
        words = ["--set", "train.epochs=50", "--set", "data.workers=3", "--set", "data.image_size=144", "--set",
                 "optimizer.learning_rate=1e-5"]
        seen = []  # bytes, and open files
        # The address sanitizer would keep what is freed.
        kept = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
        with mock.patch.dict(os.environ, ASAN_OPTIONS=kept), self.start("train", self.recipe, "--quiet", "--out", self.root / "long", "--set", "data.kind=image_folder", "--set",
                        f"data.path={self.files}", *words) as process:
            while process.poll() is None:
                seen += [held for held in (held_by(process.pid),) if held]
                time.sleep(0.005)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(json.loads((self.root / "long/summary.json").read_text())["epochs"], 50)
        early, late = seen[len(seen) // 5:len(seen) * 2 // 5], seen[len(seen) * 4 // 5:-2]
        self.assertLessEqual(min(files for _, files in late), max(files for _, files in early))
        # A batch that each epoch left would be 9 MiB; the address sanitizer keeps 2 MiB of threads and bounds.
        self.assertLessEqual(statistics.median(size for size, _ in late), statistics.median(size for size, _ in early) + (4 << 20))

    def test_ones_own_images_are_classified(self):
        run = self.train_files("run")
        image = next((self.files / "val" / "2_2").glob("*.png"))
        self.assertRegex(self.call("predict", run, image, image), rf"(?s)^.*{image}: \d_\d \(\d+\.\d %\)\n\n.*{image}: ")
        self.refuses(["predict", run, self.root / "tiny.toml"], 4, "tiny.toml", "no JPEG, PNG or WebP")
        self.train("plain", "--quiet")
        self.refuses(["predict", self.root / "plain", image], 2, "'idx' are no files of their own")

    def test_stages_are_timed(self):
        timed = json.loads(self.call("data", "bench", self.files, "--size", 6, "--batch", 8, "--iterations", 3, "--threads", 2, "--json"))
        self.assertEqual(len(timed["milliseconds"]), 3)
        self.assertIn(timed["limited_by"], timed["stages"])
        self.assertRegex(self.call("data", "bench", self.files, "--size", 6, "--batch", 8, "--iterations", 3), "limits\n$")
        self.assertRegex(self.call("data", "bench", self.files, "--size", 6, "--batch", 8, "--iterations", 20, "--cache", "pixels"), "limits\n$")
        self.refuses(["data", "bench", self.files, "--batch", 8, "--balance"], 2, "of images that a GPU decodes")
        self.refuses(["data", "bench", self.files, "--batch", 1000], 2, "100 images do not fill one batch of 1000")

    def test_the_recipe_of_folders_trains_on_jpeg(self):
        self.call("data", "export", self.data, "-o", self.root / "jpeg", "--train", 64, "--test", 20)
        run = self.root / "jpeg-run"
        self.call("train", ROOT / "recipes/folder.toml", "--out", run, "--quiet", "--set", f"data.path={self.root / 'jpeg'}",
                  "--set", "train.epochs=1", "--set", "train.batch=16", "--set", "train.device=cpu", "--set", "model.width=4")
        self.assertIn("test_accuracy", json.loads((run / "summary.json").read_text()))

    def test_images_are_tested_larger_and_in_their_own_shapes(self):
        """Half of the test images are squares, the others twice as wide."""
        files = self.root / "shapes"
        for width, classes in ((28, "narrow"), (56, "wide")):
            write_pictures(self.root / classes, width)
            self.call("data", "export", self.root / classes, "-o", self.root / "exported", "--train", 30, "--test", 10)
            for part in ("train", "val"):
                for number, file in enumerate(sorted((self.root / "exported").glob(f"{part}*/*/*.jpg"))):
                    target = files / part / classes / f"{number}.jpg"
                    target.parent.mkdir(parents=True, exist_ok=True)
                    file.rename(target)
            shutil.rmtree(self.root / "exported")
        words = ["--set", f"data.path={files}", "--set", "data.classes=2", "--set", "data.image_size=16", "--set", "train.batch=8",
                 "--set", "data.test_size=24", "--set", "data.rectangular=true", "--set", "train.device=cpu", "--set", "model.width=4"]
        run = self.root / "shaped"
        self.call("train", ROOT / "recipes/folder.toml", "--out", run, "--quiet", "--set", "train.epochs=2", *words)
        accuracy = json.loads((run / "summary.json").read_text())["test_accuracy"]
        measured = json.loads(self.call("eval", run, "--device", "cpu", "--json"))
        self.assertAlmostEqual(measured["accuracy"], accuracy)
        photographs = [files / "val" / kind / "1.jpg" for kind in ("narrow", "wide")]
        told = self.call("predict", run, *photographs, "--device", "cpu")
        for photograph in photographs:
            self.assertIn(str(photograph), told)
        self.refuses(["train", ROOT / "recipes/folder.toml", "--out", self.root / "fixed", *words, "--set", "model.name=lenet"], 2,
                     "weights of 'lenet' are for images of one size")


if __name__ == "__main__":
    unittest.main()
