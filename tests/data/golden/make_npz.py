"""Writes plain.npz and deflated.npz with NumPy, for npz_test.cpp, and images.npz, for array_images_test.cpp.

Needs: pip install numpy
"""
import pathlib

import numpy

arrays = {
    "rows": numpy.arange(-3, 3).astype(numpy.int32).reshape(2, 3),
    "columns": numpy.asfortranarray(numpy.arange(6).astype(numpy.float32).reshape(2, 3) / 4),
    "scalar": numpy.array(7, numpy.uint64),
    "nothing": numpy.zeros((0, 4), numpy.float64),
    "folder/same": numpy.full(5000, True),
}
folder = pathlib.Path(__file__).parent
numpy.savez(folder / "plain.npz", **arrays)
numpy.savez_compressed(folder / "deflated.npz", **arrays)
numpy.savez_compressed(
    folder / "images.npz",
    x_train=numpy.arange(36, dtype=numpy.uint8).reshape(3, 2, 2, 3),
    y_train=numpy.array([[2], [0], [1]], numpy.int64),
    x_test=numpy.asfortranarray(numpy.arange(100, 124, dtype=numpy.uint8).reshape(2, 2, 2, 3)),
    y_test=numpy.array([[1], [2]], numpy.int64),
)
