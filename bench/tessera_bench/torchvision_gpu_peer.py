"""torchvision on nvJPEG: files of a batch decoded together, then cut, resized and mirrored one by one on the GPU."""

import concurrent.futures
import random

import torch
import torchvision
from torchvision.transforms import v2

from . import photographs


def versions():
    return {"torch": torch.__version__, "torchvision": torchvision.__version__}


class Batches:
    def __init__(self, case, threads):
        self.batch = case["batch"]
        self.paths = [str(path) for path in sorted(photographs.FOLDER.glob("*/*.jpg"))]
        self.crop = v2.RandomResizedCrop(224, antialias=True)
        self.readers = concurrent.futures.ThreadPoolExecutor(min(threads, 8))
        self.files = self.read()

    def read(self):
        chosen = random.choices(self.paths, k=self.batch)
        return [self.readers.submit(torchvision.io.read_file, path) for path in chosen]

    def iterate(self):
        files, self.files = self.files, self.read()  # the next ones meanwhile
        images = torchvision.io.decode_jpeg([file.result() for file in files], mode=torchvision.io.ImageReadMode.RGB, device="cuda")
        images = torch.stack([self.crop(image) for image in images])
        mirrored = torch.rand(self.batch, 1, 1, 1, device="cuda") < 0.5
        images = torch.where(mirrored, images.flip(3), images)
        torch.cuda.synchronize()
        return images

    def check(self, _):
        return None


def make(_, case, threads):
    return Batches(case, threads)
