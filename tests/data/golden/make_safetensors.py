"""Writes python.safetensors with Python's safetensors, for safetensors_test.cpp.

Needs: pip install numpy safetensors ml_dtypes
"""
import pathlib

import ml_dtypes
import numpy
from safetensors.numpy import save_file

values = numpy.arange(-3, 3).reshape(2, 3)
tensors = {
    "layer.F32": (values * 0.5).astype(numpy.float32),
    "layer.F64": values / 3,
    "layer.F16": (values * 0.25).astype(numpy.float16),
    "layer.BF16": (values * 2.0).astype(ml_dtypes.bfloat16),
    "layer.I8": (values * 40).astype(numpy.int8),
    "layer.U8": (values + 250).astype(numpy.uint8),
    "layer.I32": (values * 100_000).astype(numpy.int32),
    "layer.I64": (values * 10_000_000_000).astype(numpy.int64),
    "layer.BOOL": values > 0,
    "empty": numpy.zeros((0, 4), numpy.float32),
    "scalar": numpy.array(7, numpy.float32),
}
save_file(tensors, pathlib.Path(__file__).parent / "python.safetensors", metadata={"format": "pt", "note": "grüße"})
