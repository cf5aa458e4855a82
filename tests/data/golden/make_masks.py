"""Writes masks.safetensors: outlines and runs, and what pycocotools makes of them.

    python3 -m venv /tmp/coco && /tmp/coco/bin/pip install pycocotools==2.0.11 numpy safetensors
    /tmp/coco/bin/python tests/data/golden/make_masks.py

Tensors by name:
    outline/CASE/PART       float32 [2 * corners], x, y, x, y, ...
    outline/CASE/pixels     uint8 [H, W] of all parts of the case
    outline/CASE/area       int64 [1]
    outline/CASE/bounds     float32 [4]: left, top, width, height
    runs/CASE/text          uint8: the characters of the compressed runs
    runs/CASE/pixels, runs/CASE/area, runs/CASE/bounds
"""

import pathlib

import numpy
from pycocotools import mask
from safetensors.numpy import save_file

HEIGHT, WIDTH = 37, 53


def outlines(random):
    yield "triangle", [[3, 4, 30, 8, 11, 29]]
    yield "halves", [[0.5, 0.5, 20.5, 0.5, 20.5, 15.5, 0.5, 15.5]]
    yield "whole", [[0, 0, WIDTH, 0, WIDTH, HEIGHT, 0, HEIGHT]]
    yield "beyond", [[-10, -6.5, 70, 5, 60, 50, -5.25, 40]]
    yield "crossing", [[5, 5, 40, 30, 40, 5, 5, 30]]
    yield "repeated", [[5, 5, 5, 5, 30, 5, 30, 20, 30, 20, 5, 20]]
    yield "thin", [[2, 2, 50, 2.2, 50, 2.4, 2, 2.3]]
    yield "two", [[3, 3, 20, 3, 20, 20, 3, 20], [15, 10, 45, 12, 30, 33]]
    for number in range(12):
        corners = random.integers(3, 12)
        yield f"random{number}", [list(random.uniform(-4, 58, 2 * corners)) for _ in range(random.integers(1, 4))]


def add(tensors, name, runs):
    tensors[f"{name}/pixels"] = numpy.ascontiguousarray(mask.decode(runs))
    tensors[f"{name}/area"] = numpy.array([mask.area(runs)], numpy.int64)
    tensors[f"{name}/bounds"] = mask.toBbox(runs).astype(numpy.float32)


def main():
    random = numpy.random.default_rng(7)
    tensors = {}
    for case, parts in outlines(random):
        parts = [numpy.array(part, numpy.float32) for part in parts]
        add(tensors, f"outline/{case}", mask.merge(mask.frPyObjects([part.astype(float).tolist() for part in parts], HEIGHT, WIDTH)))
        for number, part in enumerate(parts):
            tensors[f"outline/{case}/{number}"] = part
    images = {f"density{share}": random.random((HEIGHT, WIDTH)) < share for share in (0.02, 0.5, 0.97)}
    images |= {"empty": numpy.zeros((HEIGHT, WIDTH), bool), "full": numpy.ones((HEIGHT, WIDTH), bool)}
    for case, image in images.items():
        runs = mask.encode(numpy.asfortranarray(image.astype(numpy.uint8)))
        add(tensors, f"runs/{case}", runs)
        tensors[f"runs/{case}/text"] = numpy.frombuffer(runs["counts"], numpy.uint8).copy()
    save_file(tensors, pathlib.Path(__file__).parent / "masks.safetensors")


if __name__ == "__main__":
    main()
