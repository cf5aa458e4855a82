"""The random words that operators of a graph get: include/tessera/base/random.h has their definition."""

import numpy as np

import formula


def philox(counter, key):
    """Philox 4x32-10: uint64 arrays that hold 32-bit words; include/tessera/base/random.h has its definition."""
    low = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    for _ in range(10):
        a = np.uint64(0xD2511F53) * counter[0]
        b = np.uint64(0xCD9E8D57) * counter[2]
        counter = [(b >> shift) ^ counter[1] ^ key[0], b & low, (a >> shift) ^ counter[3] ^ key[1], a & low]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    return counter


def words(scope, number, seed, step, count):
    """uint64[count rounded up to four]: of the number-th random operator of a scope such as "generator."."""
    return words_of_stream((formula.fnv1a64(scope) + number) & 0xFFFFFFFF, seed, step, count)


def words_of_stream(stream, seed, step, count):
    """The same of a random operator with that stream."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    counter = [blocks, np.zeros_like(blocks), np.full_like(blocks, stream), np.full_like(blocks, step)]
    key = [np.full_like(blocks, seed), np.zeros_like(blocks)]
    return np.stack(philox(counter, key), 1).reshape(-1)


def uniform(scope, number, seed, step, shape):
    """float32 in [0, 1) of 24 bits, as random_uniform makes them."""
    return uniform_of_words(words(scope, number, seed, step, int(np.prod(shape))), shape)


def uniform_of_words(drawn, shape):
    top = drawn[:int(np.prod(shape))] >> np.uint64(8)
    return (top.astype(np.float64) * 2.0**-24).astype(np.float32).reshape(shape)
