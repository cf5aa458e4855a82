"""Copies of models whose weights are drawn, for models that carry constants in their place. Needs the package `onnx`."""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

PRODUCTS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
# Through these a product may still come to a ReLU; past a residual sum it does not.
PASSES = {"BatchNormalization", "Mul", "Add", "Concat", "MaxPool", "AveragePool", "Dropout"}
FEW = 0.1  # biases and means: not 0, and no more than the signal


def near_one(generator, shape):
    return generator.uniform(0.8, 1.2, shape)


def small(generator, shape):
    return FEW * generator.standard_normal(shape, "f4")


def reaches_relu(graph, name):
    """Whether the value of this name ends in a ReLU, and not in a sum with what went past it or as an output."""
    readers = [node for node in graph.node if name in node.input]
    return any(node.op_type == "Relu" or (node.op_type in PASSES and reaches_relu(graph, node.output[0])) for node in readers)


def product_weights(graph, node):
    """So that the mean square goes on unchanged through a layer and its ReLU, and grows little at sums of two paths."""

    def draw(generator, shape):
        transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        inner = shape[0] if node.op_type == "MatMul" or (node.op_type == "Gemm" and not transposed) else int(numpy.prod(shape[1:]))
        gain = 2 if reaches_relu(graph, node.output[0]) else 0.5
        return generator.standard_normal(shape, "f4") * numpy.float32(numpy.sqrt(gain / inner))

    return draw


def how_drawn(graph, name):
    """What draws the weight of this name, by what it is to its first reader; None where it is no weight."""
    for node in graph.node:
        if name not in node.input:
            continue
        place = list(node.input).index(name)
        if node.op_type in ("Unsqueeze", "Reshape") and place == 0:
            return how_drawn(graph, node.output[0])
        if node.op_type in PRODUCTS and place > 0:
            return product_weights(graph, node) if place == 1 else small
        if node.op_type == "BatchNormalization" and place > 0:
            return near_one if place in (1, 4) else small  # scale, bias, mean, variance
        return {"Mul": near_one, "Add": small}.get(node.op_type)
    return None


def filled_shapes(graph):
    """The nodes that fill a known shape with one float, by the name of what they make, and that shape."""
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer if tensor.data_type == TensorProto.INT64}
    found = {}
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            if all(attribute.t.data_type == TensorProto.FLOAT for attribute in node.attribute):
                found[node.output[0]] = (node, shapes[node.input[0]].tolist())
    return found


def show_logits(graph):
    """The operand of a last Softmax is an output too: a softmax hides errors of what is far from the largest."""
    for node in reversed(graph.node):
        if node.op_type == "Softmax" and node.output[0] in [output.name for output in graph.output]:
            graph.output.append(helper.make_tensor_value_info(node.input[0], TensorProto.FLOAT, None))
            return


def write(source, target, seed):
    """Gives how many weights were drawn."""
    model = onnx.load(source)
    graph = model.graph
    generator = numpy.random.default_rng(seed)
    filled = filled_shapes(graph)
    shapes = {name: shape for name, (_, shape) in filled.items()}
    shapes |= {tensor.name: list(tensor.dims) for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT}
    drawn = {}
    for name, shape in shapes.items():
        if draw := how_drawn(graph, name):
            drawn[name] = numpy_helper.from_array(draw(generator, shape).astype("f4", copy=False), name)
    for name in drawn.keys() & filled.keys():
        graph.node.remove(filled[name][0])
    read = {name for node in graph.node for name in node.input} - drawn.keys()
    constants = {tensor.name for tensor in graph.initializer}
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept + list(drawn.values()))
    # From the format's version 4 on what is no input is a constant, for whoever folds it.
    model.ir_version = max(model.ir_version, 4)
    inputs = [one for one in graph.input if one.name not in constants]
    del graph.input[:]
    graph.input.extend(inputs)
    show_logits(graph)
    onnx.save(model, target)
    return len(drawn)
