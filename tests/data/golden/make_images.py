"""Writes images.safetensors: files that are difficult to decode, and what Pillow makes of them.

    python3 -m venv /tmp/pillow && /tmp/pillow/bin/pip install pillow==13.0.0 numpy safetensors
    /tmp/pillow/bin/python tests/data/golden/make_images.py

Tensors by name, all uint8:
    file/FILE                                   the bytes of a file
    pixels/FILE/FILTER/MIRROR/T,L,H,W           [H', W', 3], the crop of the upright image, resized
    gray/FILE/FILTER/MIRROR/T,L,H,W             [H', W', 1]
    source, resized/FILTER/HxW                  [H, W, 3] and what resize() makes of it
"""

import io
import pathlib
import struct
import zlib

import numpy
from PIL import Image, ImageOps
from safetensors.numpy import save_file

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "area": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
HEIGHT, WIDTH = 53, 70


def picture(height=HEIGHT, width=WIDTH):
    """Smooth colors with edges and some noise: every filter and every block differ."""
    y, x = numpy.mgrid[0:height, 0:width] / max(height, width)
    waves = [127 + 120 * numpy.sin(9 * x + 4 * y + c) * numpy.cos(7 * y - c * x) for c in range(3)]
    pixels = numpy.stack(waves, -1)
    pixels[height // 3 : height // 2, width // 4 : width // 2] = (230, 20, 60)
    pixels += numpy.random.default_rng(1).normal(0, 6, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8))


def saved(image, **options):
    target = io.BytesIO()
    image.save(target, **options)
    return target.getvalue()


def exif(orientation):
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def png_of_16_bits(pixels):
    """[H, W, C] uint16: Pillow reads such files and does not write them."""
    height, width, channels = pixels.shape

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def interlaced(image):
    """Pillow does not write such files either: the seven passes of Adam7, each by itself."""
    pixels = numpy.asarray(image)
    height, width, _ = pixels.shape
    rows = b""
    for x0, y0, dx, dy in [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]:
        rows += b"".join(b"\0" + row.tobytes() for row in pixels[y0::dy, x0::dx])

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def files():
    color = picture()
    gray = color.convert("L")
    alpha = color.copy()
    alpha.putalpha(gray)
    made = {
        "444.jpg": saved(color, format="JPEG", quality=90, subsampling=0),
        "422.jpg": saved(color, format="JPEG", quality=90, subsampling=1),
        "420.jpg": saved(color, format="JPEG", quality=85, subsampling=2),
        "progressive.jpg": saved(color, format="JPEG", quality=85, progressive=True),
        "restart.jpg": saved(color, format="JPEG", quality=85, restart_marker_blocks=3),
        "gray.jpg": saved(gray, format="JPEG", quality=85),
        "inks.jpg": saved(color.convert("CMYK"), format="JPEG", quality=90),
        "rgb.jpg": saved(color, format="JPEG", quality=90, keep_rgb=True),
        "large.jpg": saved(picture(211, 280), format="JPEG", quality=60),
        "color.png": saved(color, format="PNG"),
        "gray.png": saved(gray, format="PNG"),
        "alpha.png": saved(alpha, format="PNG"),
        "palette.png": saved(color.quantize(64), format="PNG"),
        "bits.png": saved(gray.point(lambda v: 255 * (v > 127)).convert("1"), format="PNG"),
        "interlaced.png": interlaced(color),
        "deep_gray.png": png_of_16_bits(numpy.asarray(gray).astype(numpy.uint16)[..., None] * 257),
        "deep_color.png": png_of_16_bits(numpy.asarray(color).astype(numpy.uint16) * 200 + 77),
        "lossy.webp": saved(color, format="WEBP", quality=80),
        "lossless.webp": saved(alpha, format="WEBP", lossless=True),
        "turned.webp": saved(color, format="WEBP", quality=80, exif=exif(6)),
        "turned.png": saved(color, format="PNG", exif=exif(8)),
    }
    for orientation in range(1, 9):
        made[f"exif{orientation}.jpg"] = saved(color, format="JPEG", quality=85, exif=exif(orientation))
    return made


def expected(data, mode, filter_name, mirror, crop, size):
    image = Image.open(io.BytesIO(data))
    if image.mode.startswith("I;16"):  # Pillow clips such values where others take the upper byte
        image = Image.fromarray((numpy.asarray(image) >> 8).astype(numpy.uint8))
    image = ImageOps.exif_transpose(image).convert(mode)
    top, left, height, width = crop
    assert top + height <= image.height and left + width <= image.width
    image = image.crop((left, top, left + width, top + height)).resize((size[1], size[0]), FILTERS[filter_name])
    pixels = numpy.asarray(ImageOps.mirror(image) if mirror else image)
    return numpy.ascontiguousarray(pixels.reshape(*size, -1))


def main():
    tensors = {}
    for name, data in files().items():
        tensors[f"file/{name}"] = numpy.frombuffer(data, numpy.uint8)
        large = name.startswith("large")
        crops = [(9, 13, 150, 201)] if large else [(0, 0, 53, 53), (11, 7, 30, 41)]
        for crop in crops:
            key = ",".join(map(str, crop))
            for filter_name, mirror in (("bilinear", 0), ("area", 1)):
                tensors[f"pixels/{name}/{filter_name}/{mirror}/{key}"] = expected(data, "RGB", filter_name, mirror, crop, (16, 20))
        key = ",".join(map(str, crops[0]))
        tensors[f"gray/{name}/bilinear/0/{key}"] = expected(data, "L", "bilinear", 0, crops[0], (16, 20))
    source = picture(61, 83)
    tensors["source"] = numpy.asarray(source)
    for filter_name, method in FILTERS.items():
        for height, width in ((61, 83), (24, 24), (7, 90), (100, 5), (1, 1), (90, 110)):
            tensors[f"resized/{filter_name}/{height}x{width}"] = numpy.asarray(source.resize((width, height), method))
    save_file(tensors, pathlib.Path(__file__).parent / "images.safetensors")


if __name__ == "__main__":
    main()
