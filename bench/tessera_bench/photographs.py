"""What the cases data/ decode: pictures of 500x375 pixels and 45 kB, as photographs are: many scales, shapes, some noise.

`python photographs.py FOLDER` makes them, with Pillow and numpy; the driver, which has neither, starts it.
"""

import concurrent.futures
import functools
import io
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1] / ".venv" / "photographs-256"
COUNT, CLASSES = 256, 4  # the largest batch of a case
HEIGHT, WIDTH = 375, 500
BYTES = 45_000


def ensure(folder, python):
    """Makes them where they are not."""
    if (folder / "complete").exists():
        return
    subprocess.run([str(python), __file__, str(folder)], check=True, stdout=sys.stderr)


def noise_of_scales(random):
    """[H, W, 3], mean 0 and deviation 1, the power of each frequency falling with it as in photographs."""
    import numpy

    frequency = numpy.hypot(numpy.fft.fftfreq(HEIGHT)[:, None], numpy.fft.rfftfreq(WIDTH)[None])
    frequency[0, 0] = 1
    layers = []
    for _ in range(3):
        spectrum = random.normal(size=(2, *frequency.shape)) / frequency**1.35
        layer = numpy.fft.irfft2(spectrum[0] + 1j * spectrum[1], (HEIGHT, WIDTH))
        layers.append((layer - layer.mean()) / layer.std())
    return numpy.stack(layers, -1)


def photograph(number):
    import numpy
    from PIL import Image

    random = numpy.random.default_rng(number)
    noise = noise_of_scales(random)
    pixels = 120 + 55 * noise[..., :1] + 18 * noise  # brightness varies more than color
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    for _ in range(12):
        height, width = random.uniform(15, 120, 2)
        inside = ((y - random.uniform(0, HEIGHT)) / height) ** 2 + ((x - random.uniform(0, WIDTH)) / width) ** 2 < 1
        pixels[inside] = 0.6 * pixels[inside] + 0.4 * random.uniform(0, 255, 3)
    return Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8))


def jpeg(image):
    """At the best quality that fits."""
    low, high, best = 30, 97, b""
    while low <= high:
        quality, target = (low + high) // 2, io.BytesIO()
        image.save(target, "JPEG", quality=quality)
        if target.tell() <= BYTES:
            low, best = quality + 1, target.getvalue()
        else:
            high = quality - 1
    return best


def make_one(folder, number):
    path = folder / f"class{number % CLASSES}" / f"{number:04}.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jpeg(photograph(number)))


def make(folder):
    with concurrent.futures.ProcessPoolExecutor() as pool:
        list(pool.map(functools.partial(make_one, folder), range(COUNT), chunksize=8))
    (folder / "complete").touch()


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]))
