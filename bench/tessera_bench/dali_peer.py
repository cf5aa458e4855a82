"""DALI's pipeline on the processor: the part of the crop is decoded, resized with antialiasing, mirrored and normalized."""

import nvidia.dali
from nvidia.dali import fn, pipeline_def, types

from . import photographs


def versions():
    return {"dali": nvidia.dali.__version__}


@pipeline_def
def images():
    files, labels = fn.readers.file(file_root=str(photographs.FOLDER), random_shuffle=True)
    pixels = fn.decoders.image_random_crop(files, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0])
    pixels = fn.resize(pixels, device="cpu", resize_x=224, resize_y=224, interp_type=types.INTERP_LINEAR, antialias=True)
    pixels = fn.crop_mirror_normalize(
        pixels,
        device="cpu",
        dtype=types.FLOAT,
        output_layout="HWC",
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        mirror=fn.random.coin_flip(),
    )
    return pixels, labels


class Batches:
    def __init__(self, case, threads):
        self.pipeline = images(batch_size=case["batch"], num_threads=threads, device_id=None)
        self.pipeline.build()

    def iterate(self):
        return self.pipeline.run()

    def check(self, _):
        return None


def make(_, case, threads):
    return Batches(case, threads)
