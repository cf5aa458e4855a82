"""Values of the operator `cast` between all real element types, written to ../ops/casts.json.

numpy, ml_dtypes and onnx say what is right: ml_dtypes rounds to the narrow types, onnx saturates (as its reference of
Cast does), packs elements of less than a byte and makes powers of two. Each line is a case: the types, whether the cast
saturates, the count of elements, and the bytes of operand and result as hexadecimal digits.

    python3 -m venv build/golden && build/golden/bin/pip install numpy ml_dtypes onnx
    build/golden/bin/python tests/golden/casts.py
"""

import json
import math
import pathlib

import ml_dtypes
import numpy as np
from onnx import numpy_helper

FLOATS = {
    "fp32": np.float32, "fp64": np.float64, "fp16": np.float16, "bf16": ml_dtypes.bfloat16,
    "fp8_e4m3fn": ml_dtypes.float8_e4m3fn, "fp8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "fp8_e5m2": ml_dtypes.float8_e5m2, "fp8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "fp8_e8m0": ml_dtypes.float8_e8m0fnu, "fp4_e2m1": ml_dtypes.float4_e2m1fn,
}
INTEGERS = {
    "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32,
    "uint32": np.uint32, "int64": np.int64, "uint64": np.uint64, "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4,
    "int2": ml_dtypes.int2, "uint2": ml_dtypes.uint2,
}
BITS = {"int4": 4, "uint4": 4, "fp4_e2m1": 4, "int2": 2, "uint2": 2}
EIGHT_BITS = {"fp8_e4m3fn", "fp8_e4m3fnuz", "fp8_e5m2", "fp8_e5m2fnuz", "fp8_e8m0"}


def limits(name):
    info = ml_dtypes.iinfo(INTEGERS[name])
    return int(info.min), int(info.max)


def packed(name, array):
    """The bytes as ONNX stores them."""
    if name not in BITS:
        return array.tobytes().hex()
    in_byte = 8 // BITS[name]
    codes = [int(code) & ((1 << BITS[name]) - 1) for code in array.view(np.uint8)]
    codes += [0] * (-len(codes) % in_byte)
    ours = bytes(sum(code << (BITS[name] * i) for i, code in enumerate(codes[at:at + in_byte]))
                 for at in range(0, len(codes), in_byte))
    assert ours == numpy_helper.from_array(array).raw_data, name
    return ours.hex()


def to_float(array, name, saturate):
    values = array.astype(np.float32) if array.dtype != np.float64 or name in EIGHT_BITS else array
    if name == "fp8_e8m0":
        return numpy_helper.to_float8e8m0(values, saturate, "nearest")
    if name in EIGHT_BITS and saturate:
        return numpy_helper.saturate_cast(values, FLOATS[name])
    source = array if name in ("fp32", "fp64") and array.dtype.kind in "iuf" else values
    return source.astype(FLOATS[name])


def to_integer(array, name, wraps):
    low, high = limits(name)

    def one(value):
        if isinstance(value, float) and math.isnan(value):
            return 0
        if isinstance(value, float) and math.isinf(value):
            return low if value < 0 else high
        whole = int(value)
        if wraps:
            span = high - low + 1
            return (whole - low) % span + low
        return min(max(whole, low), high)

    wide = [one(value) for value in numbers(array)]
    return np.array(wide, dtype=np.uint64 if low == 0 else np.int64).astype(INTEGERS[name])


def numbers(array):
    return [float(v) if array.dtype.kind == "f" or array.dtype in FLOATS.values() else int(v) for v in array]


def operand(name, target):
    random = np.random.default_rng(7)
    if name == "bool":
        return np.array([False, True, True])
    if name in INTEGERS:
        low, high = limits(name)
        values = [0, 1, low, high, high // 2, low // 2 + 1, high - 1]
        values += [int(v) for v in random.integers(max(low, -600), min(high, 600) + 1, 6)]
        return np.array(values, dtype=np.uint64 if low == 0 else np.int64).astype(INTEGERS[name])
    if name in BITS or name in EIGHT_BITS:
        every = 1 if target == "fp32" or name in BITS else 21
        return np.arange(0, 1 << BITS.get(name, 8), every, dtype=np.uint8).view(FLOATS[name])
    special = [0.0, -0.0, 1.5, -2.5, 0.5, np.inf, -np.inf, np.nan, 447, 449, 465, -61441, 300, -129.75, 3e38, 1e-40]
    scale = 2.0 ** random.uniform(-14, 14, 8)
    with np.errstate(over="ignore"):
        return np.concatenate([special, scale * random.choice([-1, 1], 8)]).astype(FLOATS[name])


def ties(name):
    """Halfway between neighbors, and on both sides of it."""
    if name == "fp8_e8m0":
        codes = np.arange(1, 254, 23, dtype=np.uint8)
    else:
        codes = np.arange(0, (1 << (BITS.get(name, 8) - 1)) - 4, 5 if name in EIGHT_BITS else 1, dtype=np.uint8)
    below = codes.view(FLOATS[name]).astype(np.float32)
    above = (codes + 1).astype(np.uint8).view(FLOATS[name]).astype(np.float32)
    middle = (below + (above - below) / 2).astype(np.float32)
    all_sides = [middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(0))]
    return np.concatenate(all_sides + [-side for side in all_sides])


def case(source, x, target, saturate):
    if target == "bool":
        y = np.array([value != 0 for value in numbers(x)])
    elif target in INTEGERS:
        y = to_integer(x, target, wraps=not saturate)
    else:
        y = to_float(x, target, saturate)
    return {"from": source, "to": target, "saturate": saturate, "count": len(x),
            "x": packed(source, x), "y": packed(target, y)}


def main():
    names = [*FLOATS, *INTEGERS, "bool"]
    cases = []
    for source in names:
        whole = source in INTEGERS or source == "bool"
        for target in names:
            if source == target:
                continue
            cases.append(case(source, operand(source, target), target, True))
            if target in EIGHT_BITS or (whole and target in INTEGERS):
                cases.append(case(source, operand(source, target), target, False))
    for target in [*sorted(EIGHT_BITS), "fp4_e2m1"]:
        for saturate in (True, False):
            cases.append(case("fp32", ties(target), target, saturate))
    path = pathlib.Path(__file__).parent.parent / "ops" / "casts.json"
    path.write_text("[\n" + ",\n".join(json.dumps(own, separators=(",", ":")) for own in cases) + "\n]\n")


main()
