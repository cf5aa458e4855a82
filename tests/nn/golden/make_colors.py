"""Writes colors.safetensors: a picture, and what Pillow and the definition of YIQ make of its colors.

    python3 -m venv /tmp/pillow && /tmp/pillow/bin/pip install pillow==13.0.0 numpy safetensors
    /tmp/pillow/bin/python tests/nn/golden/make_colors.py

Tensors by name, all uint8 [H, W, 3]:
    source
    brightness/F, contrast/F, saturation/F      ImageEnhance by the factor F
    gray                                        ImageOps.grayscale, in three channels
    hue/F                                       the plane of I and Q turned by F turns
"""

import math
import pathlib

import numpy
from PIL import Image, ImageEnhance, ImageOps
from safetensors.numpy import save_file

YIQ = numpy.array([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])


def picture(height=23, width=30):
    y, x = numpy.mgrid[0:height, 0:width] / max(height, width)
    waves = [120 + 130 * numpy.sin(9 * x + 4 * y + c) * numpy.cos(7 * y - c * x) for c in range(3)]
    pixels = numpy.stack(waves, -1)
    pixels[4:9, 6:14] = (230, 20, 60)
    return Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8))


def hue(image, turns):
    """Hue grows from red over yellow to green, which is from I towards -Q."""
    angle = -2 * math.pi * turns
    turn = numpy.array([[1, 0, 0], [0, math.cos(angle), -math.sin(angle)], [0, math.sin(angle), math.cos(angle)]])
    pixels = numpy.asarray(image) @ (numpy.linalg.inv(YIQ) @ turn @ YIQ).T
    return pixels.round().clip(0, 255).astype(numpy.uint8)


def main():
    source = picture()
    tensors = {"source": numpy.asarray(source)}
    enhancers = {"brightness": ImageEnhance.Brightness, "contrast": ImageEnhance.Contrast, "saturation": ImageEnhance.Color}
    for name, enhancer in enhancers.items():
        for factor in (0, 0.3, 1, 1.4, 2.5):
            tensors[f"{name}/{factor}"] = numpy.asarray(enhancer(source).enhance(factor))
    tensors["gray"] = numpy.asarray(ImageOps.grayscale(source).convert("RGB"))
    for turns in (-0.5, -0.1, 0, 0.05, 0.25):
        tensors[f"hue/{turns}"] = hue(source, turns)
    save_file({name: numpy.ascontiguousarray(pixels) for name, pixels in tensors.items()},
              pathlib.Path(__file__).parent / "colors.safetensors")


if __name__ == "__main__":
    main()
