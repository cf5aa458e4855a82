"""Values and gradients of operators, from PyTorch in float64, for tests/ops/golden_test.cpp.

Writes tests/ops/golden.json. Inputs are made by the same formula on both sides:
element i = low + (high - low) * ((i * 7919 + seed * 104729) mod 1009) / 1009, which has no ties below 1009 elements.
Arrays are as the operators have them: channels last, weights [K, spatial..., C/groups].

    nice bench/.venv/bin/python tests/golden/operators.py
"""

import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

import random_words

OUTPUT = pathlib.Path(__file__).resolve().parents[1] / "ops" / "golden.json"
GRADIENT_SEED = 100


def values(shape, seed, low=-1.0, high=1.0):
    count = 1
    for extent in shape:
        count *= extent
    ranks = [(i * 7919 + seed * 104729) % 1009 for i in range(count)]
    return torch.tensor([low + (high - low) * rank / 1009 for rank in ranks], dtype=torch.float64).reshape(shape)


class Input:
    """By the formula, or listed; integers are listed and have no gradient."""

    def __init__(self, *shape, seed=1, low=-1.0, high=1.0, listed=None, integer=False):
        self.shape, self.seed, self.low, self.high = list(shape), seed, low, high
        self.listed, self.integer = listed, integer

    def tensor(self):
        if self.integer:
            return torch.tensor(self.listed, dtype=torch.int64).reshape(self.shape)
        if self.listed is not None:
            return torch.tensor(self.listed, dtype=torch.float64).reshape(self.shape)
        return values(self.shape, self.seed, self.low, self.high)

    def description(self):
        result = {"shape": self.shape, "type": "int64" if self.integer else "fp64"}
        formula = {"seed": self.seed, "low": self.low, "high": self.high}
        return result | ({"values": self.listed} if self.listed is not None else formula)


def kept(counter, rate, stream, shape):
    """What dropout multiplies by: 0, or 1 / (1 - rate)."""
    seed, step = counter.tolist()
    drawn = random_words.words_of_stream(stream, seed, step, int(np.prod(shape)))
    uniform = random_words.uniform_of_words(drawn, shape)
    return torch.from_numpy(uniform >= np.float32(rate)).double() / (1 - rate)


def dropout_attention(scale, causal, rate, stream):
    def run(q, k, v, counter, bias=None):
        scores = scale * q @ k.mT
        if bias is not None:
            scores = scores + bias
        if causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, float("-inf"))
        weights = F.softmax(scores, -1)
        return (weights * kept(counter, rate, stream, tuple(weights.shape))) @ v
    return run


def rotary_embedding(interleaved, inverse):
    """By complex numbers of the angles' cosines and sines: x [..., tokens, heads, width]."""
    def run(x, cosines, sines):
        pairs = x.unflatten(-1, (-1, 2)) if interleaved else x.unflatten(-1, (2, -1)).mT
        angles = torch.complex(cosines, -sines if inverse else sines).unsqueeze(-2)
        pairs = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * angles)
        return (pairs if interleaved else pairs.mT).flatten(-2)
    return run


def first(x):
    """Channels first, as PyTorch has them."""
    return x.movedim(-1, 1)


def last(x):
    return x.movedim(1, -1)


def convolution(strides, low, high, dilations, groups):
    def run(x, weight, bias=None):
        function = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[x.dim()]
        padding = [p for pair in zip(reversed(low), reversed(high)) for p in pair]
        return last(function(F.pad(first(x), padding), first(weight), bias, strides, 0, dilations, groups))
    return run


def transposed(strides, padding, dilations, output_padding, groups):
    def run(x, weight):
        function = {3: F.conv_transpose1d, 4: F.conv_transpose2d, 5: F.conv_transpose3d}[x.dim()]
        return last(function(first(x), first(weight), None, strides, padding, output_padding, groups, dilations))
    return run


def max_pool(window, strides, padding):
    return lambda x: last({4: F.max_pool2d, 5: F.max_pool3d}[x.dim()](first(x), window, strides, padding))


def average_pool(window, strides, padding, count):
    return lambda x: last(F.avg_pool2d(first(x), window, strides, padding, False, count))


def batch_norm(x, scale, bias):
    return last(F.batch_norm(first(x), None, None, scale, bias, True, 0.1, 1e-3))


def batch_norm_inference(x, scale, bias, mean, variance):
    # Spelt out, because PyTorch gives no gradient to mean and variance.
    return (x - mean) / torch.sqrt(variance + 1e-3) * scale + bias


def conv_attributes(strides, low, high, dilations, groups):
    return {"strides": strides, "padding_low": low, "padding_high": high, "dilations": dilations, "groups": groups}


def conv_case(name, x, weight, *options, bias=None):
    inputs = [Input(*x), Input(*weight, seed=2)] + ([Input(bias, seed=3)] if bias else [])
    return name, "convolution", conv_attributes(*options), inputs, convolution(*options)


def transposed_case(name, x, weight, strides, padding, dilations, output_padding, groups):
    attributes = conv_attributes(strides, padding, padding, dilations, groups)
    attributes["output_padding"] = output_padding
    run = transposed(strides, padding, dilations, output_padding, groups)
    return name, "transposed_convolution", attributes, [Input(*x), Input(*weight, seed=2)], run


def pool_attributes(window, strides, padding):
    return {"window": window, "strides": strides, "padding_low": padding, "padding_high": padding}


def cases():
    tied = [2.0, 5.0, 5.0, 1.0, 3.0, 3.0, 3.0, 0.0]
    zeros = [2.0, 0.0, 3.0, 0.5, 0.0, 0.0, 4.0, 2.0, 1.5, -1.0, 2.0, 3.0]
    labels = Input(5, listed=[2, 0, 3, -100, 1], integer=True)
    norm = [Input(4, seed=2, low=0.5, high=2), Input(4, seed=3)]
    norm_extra = [Input(4, seed=4), Input(4, seed=5, low=0.5, high=2)]
    yield conv_case("1d, stride, uneven padding", [2, 7, 2], [3, 3, 2], [2], [2], [1], [1], 1)
    yield conv_case("2d, bias", [1, 4, 3, 2], [3, 3, 2, 2], [1, 1], [1, 0], [1, 0], [1, 1], 1, bias=3)
    yield conv_case("2d, stride, dilation", [1, 6, 5, 2], [2, 2, 3, 2], [2, 1], [1, 2], [1, 2], [3, 2], 1)
    yield conv_case("2d, groups", [1, 4, 4, 4], [4, 3, 3, 2], [2, 2], [1, 1], [1, 1], [1, 1], 2)
    yield conv_case("2d, depthwise", [1, 4, 4, 3], [6, 2, 2, 1], [1, 2], [0, 0], [0, 0], [1, 1], 3)
    yield conv_case("3d", [1, 3, 4, 3, 1], [2, 2, 3, 2, 1], [1, 2, 1], [0, 1, 0], [1, 1, 0], [1, 1, 1], 1)
    yield transposed_case("1d, output padding", [1, 4, 2], [2, 3, 3], [2], [1], [1], [1], 1)
    yield transposed_case("2d, groups", [1, 3, 2, 4], [4, 3, 2, 1], [2, 3], [1, 0], [1, 1], [1, 2], 2)
    yield transposed_case("2d, dilation", [1, 3, 2, 1], [1, 2, 3, 2], [1, 2], [1, 2], [2, 2], [0, 1], 1)
    yield ("2d", "max_pool", pool_attributes([3, 2], [2, 2], [1, 1]), [Input(1, 5, 6, 2)],
           max_pool([3, 2], [2, 2], [1, 1]))
    yield ("3d", "max_pool", pool_attributes([2, 2, 2], [1, 2, 1], [0, 1, 1]), [Input(1, 3, 3, 2, 2)],
           max_pool([2, 2, 2], [1, 2, 1], [0, 1, 1]))
    for count in (True, False):
        attributes = dict(pool_attributes([3, 2], [2, 2], [1, 1]), count_padding=count)
        yield (f"count_padding {count}", "average_pool", attributes, [Input(1, 5, 6, 2)],
               average_pool([3, 2], [2, 2], [1, 1], count))
    yield "2d", "batch_norm_training", {"epsilon": 1e-3}, [Input(2, 2, 3, 4)] + norm, batch_norm
    yield "2d", "batch_norm_inference", {"epsilon": 1e-3}, [Input(1, 2, 3, 4)] + norm + norm_extra, batch_norm_inference
    yield ("two axes", "layer_norm", {"axes": 2}, [Input(3, 2, 4), Input(2, 4, seed=2, low=0.5, high=2),
           Input(2, 4, seed=3)], lambda x, scale, bias: F.layer_norm(x, [2, 4], scale, bias, 1e-5))
    yield ("root mean square", "layer_norm", {"axes": 1, "centered": False, "epsilon": 1e-2},
           [Input(3, 8, low=-2.0, high=3.0), Input(8, seed=2, low=0.5, high=2)],
           lambda x, scale: F.rms_norm(x, [8], scale, 1e-2))
    yield ("two groups", "group_norm", {"groups": 2}, [Input(2, 2, 3, 4)] + norm,
           lambda x, scale, bias: last(F.group_norm(first(x), 2, scale, bias, 1e-5)))
    yield ("instances", "group_norm", {"groups": 4}, [Input(2, 5, 4)] + norm,
           lambda x, scale, bias: last(F.instance_norm(first(x), None, None, scale, bias, True, 0.1, 1e-5)))
    yield "axis 1", "softmax", {"axis": 1}, [Input(2, 5, 3, low=-4, high=4)], lambda x: F.softmax(x, 1)
    yield "axis 1", "log_softmax", {"axis": 1}, [Input(2, 5, 3, low=-4, high=4)], lambda x: F.log_softmax(x, 1)
    for causal in (False, True):
        yield (f"causal {causal}", "attention", {"scale": 0.4, "causal": causal},
               [Input(2, 2, 5, 4, low=-2, high=2), Input(2, 2, 7, 4, seed=2, low=-2, high=2), Input(2, 2, 7, 3, seed=3)],
               lambda q, k, v, c=causal: F.scaled_dot_product_attention(q, k, v, scale=0.4, is_causal=c))
    yield ("bias", "attention", {"scale": 0.5},
           [Input(2, 2, 3, 4, low=-2, high=2), Input(2, 2, 5, 4, seed=2, low=-2, high=2), Input(2, 2, 5, 6, seed=3),
            Input(1, 2, 3, 5, seed=4)],
           lambda q, k, v, bias: F.scaled_dot_product_attention(q, k, v, attn_mask=bias))
    counter = Input(2, listed=[7, 3], integer=True)
    for causal in (False, True):
        yield (f"causal {causal}", "dropout_attention", {"scale": 0.4, "causal": causal, "rate": 0.3, "stream": 5},
               [Input(2, 2, 5, 4, low=-2, high=2), Input(2, 2, 7, 4, seed=2, low=-2, high=2), Input(2, 2, 7, 3, seed=3),
                counter], dropout_attention(0.4, causal, 0.3, 5))
    yield ("bias", "dropout_attention", {"scale": 0.5, "rate": 0.1, "stream": 2},
           [Input(2, 2, 3, 4, low=-2, high=2), Input(2, 2, 5, 4, seed=2, low=-2, high=2), Input(2, 2, 5, 6, seed=3),
            counter, Input(1, 2, 3, 5, seed=4)], dropout_attention(0.5, False, 0.1, 2))
    yield ("halves", "rotary_embedding", {}, [Input(2, 3, 2, 8), Input(3, 4, seed=2), Input(3, 4, seed=3)],
           rotary_embedding(False, False))
    yield ("side by side, back, angles for each", "rotary_embedding", {"interleaved": True, "inverse": True},
           [Input(2, 3, 2, 6), Input(2, 3, 3, seed=2), Input(2, 3, 3, seed=3)], rotary_embedding(True, True))
    for smoothing in (0.0, 0.1):
        yield (f"smoothing {smoothing}", "cross_entropy", {"smoothing": smoothing},
               [Input(5, 4, low=-4, high=4), labels],
               lambda x, y, s=smoothing: F.cross_entropy(x, y, reduction="none", label_smoothing=s))
        yield (f"4 classes of 6 columns, smoothing {smoothing}", "cross_entropy",
               {"smoothing": smoothing, "classes": 4}, [Input(5, 6, low=-4, high=4), labels],
               lambda x, y, s=smoothing: F.cross_entropy(x[:, :4], y, reduction="none", label_smoothing=s))
    yield "ties", "reduce_max", {"axes": [1]}, [Input(2, 4, listed=tied)], lambda x: torch.amax(x, 1)
    yield "ties", "reduce_min", {"axes": [1]}, [Input(2, 4, listed=[-v for v in tied])], lambda x: torch.amin(x, 1)
    yield "zeros", "reduce_product", {"axes": [1]}, [Input(3, 4, listed=zeros)], lambda x: torch.prod(x, 1)
    yield "two axes", "reduce_mean", {"axes": [0, 2]}, [Input(3, 2, 4)], lambda x: torch.mean(x, (0, 2))
    yield ("transposed, broadcast", "matmul", {"transpose_a": True, "transpose_b": True},
           [Input(2, 3, 2), Input(2, 3, seed=2)], lambda a, b: a.mT @ b.mT)
    yield ("one weight for all rows", "matmul", {"transpose_b": True}, [Input(2, 2, 3), Input(4, 3, seed=2)],
           lambda a, b: a @ b.mT)


def array(tensor):
    return [float(f"{value:.10g}") for value in tensor.reshape(-1).tolist()]


def run_case(name, operator, attributes, inputs, run):
    tensors = [i.tensor() if i.integer else i.tensor().requires_grad_() for i in inputs]
    y = run(*tensors)
    y.backward(values(list(y.shape), GRADIENT_SEED))
    return {"name": name, "operator": operator, "attributes": attributes,
            "inputs": [i.description() for i in inputs], "shape": list(y.shape), "y": array(y.detach()),
            "gradients": [[] if t.grad is None else array(t.grad) for t in tensors]}


def text_of(result):
    return "{" + ",\n  ".join(f'"{key}": {json.dumps(value)}' for key, value in result.items()) + "}"


def main():
    OUTPUT.write_text("[" + ",\n ".join(text_of(run_case(*case)) for case in cases()) + "]\n")


if __name__ == "__main__":
    main()
