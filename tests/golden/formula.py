"""Deterministic numbers from a name and an index; README.md defines them for C++."""

import math

import numpy as np

MASK = (1 << 64) - 1


def fnv1a64(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def splitmix64(state):
    """state: uint64 array; one step of the generator from each state."""
    with np.errstate(over="ignore"):
        z = state + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def bits(name, count, start=0):
    with np.errstate(over="ignore"):
        return splitmix64(np.uint64(fnv1a64(name)) + np.arange(start, start + count, dtype=np.uint64))


def uniform(name, shape, chunk=1 << 22):
    """float32 in [-1, 1): multiples of 2^-23."""
    count = math.prod(shape)
    out = np.empty(count, np.float32)
    for start in range(0, count, chunk):
        stop = min(start + chunk, count)
        top = (bits(name, stop - start, start) >> np.uint64(40)).astype(np.float64)
        out[start:stop] = top * 2.0**-23 - 1.0
    return out.reshape(shape)


def labels(name, count, classes):
    return (bits(name, count) % np.uint64(classes)).astype(np.int64)


def parameter(name, shape, closing_norm=None):
    """A network's parameter or buffer; closing_norm: suffix of the normalisation that ends a residual branch."""
    u = uniform(name, shape)
    if name.endswith("running_mean"):
        return np.float32(0.125) * u
    if name.endswith("running_var"):
        return np.float32(1) + np.float32(0.5) * u
    if len(shape) >= 2:
        return np.float32(math.sqrt(6.0 / math.prod(shape[1:]))) * u
    if name.endswith("bias"):
        return np.float32(0.125) * u
    if closing_norm and name.endswith(closing_norm):
        return np.float32(0.125) + np.float32(0.03125) * u
    return np.float32(1) + np.float32(0.25) * u
