"""The networks of the golden values, filled by the formula."""

import torch
import torchvision
from torch import nn

import formula

TORCHVISION = ("alexnet", "vgg11", "vgg16", "vgg16_bn", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d")


class LeNet(nn.Module):
    """LeCun et al. 1998 with ReLU and max pooling, for 1x28x28 images."""

    def __init__(self, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x):  # x: [N, 1, 28, 28]
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)  # order C, H, W
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


def build(name, classes):
    return LeNet(classes) if name == "lenet" else getattr(torchvision.models, name)(weights=None, num_classes=classes)


def image_size(name):
    """AlexNet and VGG at the size where their adaptive pooling passes everything through."""
    return 28 if name == "lenet" else 64 if name.startswith("res") else 224


def channels(name):
    return 1 if name == "lenet" else 3


def closing_norm(name):
    if name in ("resnet18", "resnet34"):
        return ".bn2.weight"
    return ".bn3.weight" if name.startswith("res") else None


@torch.no_grad()
def kink_distance(network, images):
    """The smallest |x| that any ReLU of the network sees."""
    smallest = []
    hooks = [
        module.register_forward_pre_hook(lambda _, inputs: smallest.append(inputs[0].abs().min().item()))
        for module in network.modules()
        if isinstance(module, nn.ReLU)
    ]
    network(images)
    for hook in hooks:
        hook.remove()
    return min(smallest, default=float("inf"))


@torch.no_grad()
def fill(network, name):
    for key, tensor in network.state_dict().items():
        if not key.endswith("num_batches_tracked"):
            tensor.copy_(torch.from_numpy(formula.parameter(key, tuple(tensor.shape), closing_norm(name))))


def filled(name, classes, dtype=torch.float64):
    with torch.device("meta"):
        network = build(name, classes)
    network = network.to_empty(device="cpu").to(dtype)
    fill(network, name)
    return network


def batch(name, count, classes, dtype=torch.float64, source="input"):
    size = image_size(name)
    images = torch.from_numpy(formula.uniform(source, (count, channels(name), size, size))).to(dtype)
    return images, torch.from_numpy(formula.labels("labels", count, classes))
