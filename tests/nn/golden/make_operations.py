"""Writes operations.safetensors: a picture, and what Pillow makes of it as torchvision's RandAugment calls it.

    python3 -m venv /tmp/pillow && /tmp/pillow/bin/pip install pillow==13.0.0 numpy safetensors
    /tmp/pillow/bin/python tests/nn/golden/make_operations.py

Tensors by name, all uint8 [H, W, 3]:
    source, dark                        pictures; the second of few levels
    NAME/MAGNITUDE                      the operation on `source`, by its parameter
    stretch, equalize                   on `source`
    stretch_dark, equalize_dark         on `dark`
    affine/FILTER/DEGREES,RIGHT,DOWN,SCALE,SHEAR

torchvision 0.25 (transforms/autoaugment.py, _apply_op) hands shears on as an affine map around the upper left corner,
translations in whole pixels, and rotations to Image.rotate(), all with the nearest pixels.
"""

import math
import pathlib

import numpy
from PIL import Image, ImageEnhance, ImageOps
from safetensors.numpy import save_file

from make_colors import picture


def affine(image, *matrix):
    return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST)


def around_middle(image, degrees, right, down, scale, shear):
    """torchvision's _get_inverse_affine_matrix(), for one shear."""
    turn, tangent = math.radians(degrees), math.tan(math.radians(shear))
    a, b = math.cos(turn) / scale, (math.cos(turn) * tangent + math.sin(turn)) / scale
    c, d = -math.sin(turn) / scale, (math.cos(turn) - math.sin(turn) * tangent) / scale
    x, y = image.width / 2, image.height / 2
    return (d, b, x - d * (x + right) - b * (y + down), c, a, y - c * (x + right) - a * (y + down))


AFFINE = ((0, 0, 0, 1, 0), (20, 0, 0, 1, 0), (-75, 3, -2, 1, 0), (0, 0, 0, 1.6, 0), (0, 0, 0, 0.4, 0), (0, 0, 0, 1, 30),
          (160, -4, 5, 0.8, -20))
OPERATIONS = {
    "shear_x": lambda image, shear: affine(image, 1, shear, 0, 0, 1, 0),
    "shear_y": lambda image, shear: affine(image, 1, 0, 0, shear, 1, 0),
    "translate_x": lambda image, pixels: affine(image, 1, 0, -pixels, 0, 1, 0),
    "translate_y": lambda image, pixels: affine(image, 1, 0, 0, 0, 1, -pixels),
    "rotate": lambda image, degrees: image.rotate(degrees, Image.Resampling.NEAREST),
    "sharpness": lambda image, factor: ImageEnhance.Sharpness(image).enhance(factor),
    "posterize": ImageOps.posterize,
    "solarize": ImageOps.solarize,
}
PARAMETERS = {
    "shear_x": (-0.3, 0.09, 0.3), "shear_y": (-0.3, 0.09, 0.3), "translate_x": (-12, 5), "translate_y": (-9, 4),
    "rotate": (-30, -9, 9, 17, 30), "sharpness": (0.1, 0.73, 1, 1.27, 1.9), "posterize": (4, 6, 7, 8),
    "solarize": (0, 100, 178.5, 255),
}


def main():
    source = picture()
    dark = Image.fromarray(numpy.asarray(source) // 16 + numpy.array([0, 40, 90], numpy.uint8))
    tensors = {"source": source, "dark": dark}
    for name, image in (("", source), ("_dark", dark)):
        tensors[f"stretch{name}"] = ImageOps.autocontrast(image)
        tensors[f"equalize{name}"] = ImageOps.equalize(image)
    for name, parameters in PARAMETERS.items():
        for parameter in parameters:
            tensors[f"{name}/{parameter}"] = OPERATIONS[name](source, parameter)
    for parameters in AFFINE:
        matrix = around_middle(source, *parameters)
        for name, mode in (("nearest", Image.Resampling.NEAREST), ("bilinear", Image.Resampling.BILINEAR)):
            tensors[f"affine/{name}/{','.join(map(str, parameters))}"] = source.transform(
                source.size, Image.Transform.AFFINE, matrix, mode)
    save_file({name: numpy.ascontiguousarray(numpy.asarray(image)) for name, image in tensors.items()},
              pathlib.Path(__file__).parent / "operations.safetensors")


if __name__ == "__main__":
    main()
