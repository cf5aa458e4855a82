"""torchvision on Pillow: ImageFolder and its transforms as in PyTorch's ImageNet example; two threads are two workers."""

import itertools

import PIL
import torch
import torchvision
from torchvision import transforms

from . import photographs


def versions():
    return {"torch": torch.__version__, "torchvision": torchvision.__version__, "pillow": PIL.__version__}


class Batches:
    def __init__(self, case, threads):
        torch.set_num_threads(1)
        steps = transforms.Compose(
            [
                transforms.RandomResizedCrop(224),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
            ]
        )
        images = torchvision.datasets.ImageFolder(photographs.FOLDER, steps)
        # An epoch is as long as a turn can be, since workers begin anew with each.
        endless = torch.utils.data.RandomSampler(images, replacement=True, num_samples=1_000_000)
        workers = threads if threads > 1 else 0
        self.batches = iter(torch.utils.data.DataLoader(images, case["batch"], sampler=endless, num_workers=workers))

    def iterate(self):
        return next(self.batches)

    def check(self, _):
        return None


def make(_, case, threads):
    return Batches(case, threads)
