"""Writes anchors.safetensors: anchors, objects, and which of them torchvision matches.

    python3 -m venv /tmp/vision && /tmp/vision/bin/pip install torch==2.11.0 torchvision numpy safetensors
    /tmp/vision/bin/python tests/data/golden/make_anchors.py

Tensors by name:
    retinanet/anchors    fp32 [A, 4]  AnchorGenerator's, as RetinaNet has them, on maps of 12x16, 6x8 and 3x4
    retinanet/objects    fp32 [9, 4]
    retinanet/matches    int64 [A]    Matcher(0.5, 0.4, allow_low_quality_matches=True)
    retinanet/offsets    fp32 [A, 4]  BoxCoder((1, 1, 1, 1)) of those that find one, else 0
    rpn/matches          int64 [A]    Matcher(0.7, 0.3, allow_low_quality_matches=True) of the same
    strict/matches       int64 [A]    Matcher(0.5, 0.4) of the same
    ssd/anchors          fp32 [A, 4]  DefaultBoxGenerator's, on maps of 9x9, 4x4 and 2x2
    ssd/objects, matches, offsets     SSDMatcher(0.5), BoxCoder((10, 10, 5, 5))
"""

import pathlib

import torch
from safetensors.torch import save_file
from torchvision.models.detection._utils import BoxCoder, Matcher, SSDMatcher
from torchvision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
from torchvision.models.detection.image_list import ImageList
from torchvision.ops import box_iou


def objects(generator, count, height, width):
    sides = torch.exp(torch.empty(count, 2).uniform_(2, 4.6, generator=generator))
    sides = torch.minimum(sides, torch.tensor([width, height]) - 2.0)
    corner = torch.rand(count, 2, generator=generator) * (torch.tensor([width, height]) - sides)
    return torch.cat([corner, corner + sides], 1)


def offsets(coder, anchors, boxes, matches):
    result = torch.zeros_like(anchors)
    found = matches >= 0
    result[found] = coder.encode_single(boxes[matches[found]], anchors[found])
    return result


def anchors_of(generator, height, width, maps):
    image = ImageList(torch.zeros(1, 3, height, width), [(height, width)])
    return generator(image, [torch.zeros(1, 1, *size) for size in maps])[0]


def main():
    random = torch.Generator().manual_seed(3)
    tensors = {}
    sizes = tuple((x, int(x * 2 ** (1 / 3)), int(x * 2 ** (2 / 3))) for x in (16, 32, 64))
    anchors = anchors_of(AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * 3), 96, 128, [(12, 16), (6, 8), (3, 4)])
    boxes = objects(random, 9, 96, 128)
    overlap = box_iou(boxes, anchors)
    matches = Matcher(0.5, 0.4, allow_low_quality_matches=True)(overlap.clone())
    tensors.update({"retinanet/anchors": anchors, "retinanet/objects": boxes, "retinanet/matches": matches})
    tensors["retinanet/offsets"] = offsets(BoxCoder((1.0, 1.0, 1.0, 1.0)), anchors, boxes, matches)
    tensors["rpn/matches"] = Matcher(0.7, 0.3, allow_low_quality_matches=True)(overlap.clone())
    tensors["strict/matches"] = Matcher(0.5, 0.4)(overlap.clone())
    defaults = DefaultBoxGenerator([[2], [2, 3], [2]], scales=[0.1, 0.35, 0.6, 0.9], clip=False)
    anchors = anchors_of(defaults, 96, 96, [(9, 9), (4, 4), (2, 2)])
    boxes = objects(random, 7, 96, 96)
    matches = SSDMatcher(0.5)(box_iou(boxes, anchors))
    tensors.update({"ssd/anchors": anchors, "ssd/objects": boxes, "ssd/matches": matches})
    tensors["ssd/offsets"] = offsets(BoxCoder((10.0, 10.0, 5.0, 5.0)), anchors, boxes, matches)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()},
              pathlib.Path(__file__).with_name("anchors.safetensors"))


if __name__ == "__main__":
    main()
