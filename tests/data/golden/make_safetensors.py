"""Writes python.safetensors and narrow.safetensors with Python's safetensors, for safetensors_test.cpp.

Needs: pip install numpy safetensors ml_dtypes
"""
import pathlib

import ml_dtypes
import numpy
from safetensors import TensorSpec, serialize_file
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

narrow = {
    "I16": (values * 10_000).astype(numpy.int16),
    "U16": (values + 65_000).astype(numpy.uint16),
    "U32": (values + 4_000_000_000).astype(numpy.uint32),
    "U64": values.astype(numpy.uint64) + numpy.uint64(10_000_000_003),
    "C64": (values * (0.5 + 2j)).astype(numpy.complex64),
    "float8_e4m3fn": values.astype(ml_dtypes.float8_e4m3fn),
    "float8_e4m3fnuz": values.astype(ml_dtypes.float8_e4m3fnuz),
    "float8_e5m2": values.astype(ml_dtypes.float8_e5m2),
    "float8_e5m2fnuz": values.astype(ml_dtypes.float8_e5m2fnuz),
    "float8_e8m0fnu": (2.0**values).astype(ml_dtypes.float8_e8m0fnu),
}
codes = values.astype(ml_dtypes.float4_e2m1fn).view(numpy.uint8).reshape(3, 2)
narrow["float4_e2m1fn_x2"] = (codes[:, 0] | codes[:, 1] << 4).astype(numpy.uint8)  # shape [3]: six elements
specs = {
    name: TensorSpec(dtype=name if name.startswith("float") else array.dtype.name, shape=list(array.shape),
                     data_ptr=array.ctypes.data, data_len=array.nbytes)
    for name, array in narrow.items()
}
serialize_file(specs, str(pathlib.Path(__file__).parent / "narrow.safetensors"))
