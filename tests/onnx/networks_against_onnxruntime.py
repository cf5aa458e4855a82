#!/usr/bin/env python3
"""Runs the networks of docs/networks.md here and by ONNX Runtime on the same real inputs, and prints how far the outputs
are apart: a share of the largest output.

ONNX Runtime runs twice: as it does by itself, and without the memory layout that it chooses for convolutions
(`ORT_ENABLE_EXTENDED` is all but that). How far these two are apart is its own rounding, and is printed beside. What is
here has to be within --most of one of them.

Needs the packages `onnxruntime`, `numpy` and `pillow`, and what `tools/setup networks sounds` brings:

    venv/bin/python tests/onnx/networks_against_onnxruntime.py --program build/release/bin/tessera
"""

import argparse
import sys
import tempfile
import wave
from pathlib import Path

import numpy
import onnxruntime
from PIL import Image

from against_onnxruntime import apart, here, session_of

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = ROOT / ".deps/networks"
PICTURE = Path("/usr/share/doc/libtomlplusplus-dev/docs/images/banner.png")
SPEECH = Path("/usr/share/asterisk/sounds/en_US_f_Allison/demo-moreinfo.wav")
MUSIC = Path("/usr/share/asterisk/moh/manolo_camp-morning_coffee.wav")
FILTERS = ("NEAREST", "BOX", "BILINEAR", "HAMMING", "BICUBIC", "LANCZOS")


def file_bytes(path):
    """The first and the last 1,024 bytes of a longer file: what Magika takes."""
    text = path.read_bytes()
    begin, end = text[:4096].strip()[:1024], text[-4096:].strip()[-1024:]
    return {"bytes": numpy.frombuffer(begin + end, dtype="u1").astype("i4").reshape(1, 2048)}


def picture(part, height, width, how):
    """[1, 3, height, width], -1 to 1, blue first."""
    scaled = Image.open(PICTURE).convert("RGB").crop(part).resize((width, height), getattr(Image, how))
    pixels = numpy.asarray(scaled)[:, :, ::-1].astype("f4") / 127.5 - 1
    return {"x": numpy.ascontiguousarray(pixels.transpose(2, 0, 1)[None])}


def samples(path, rate):
    with wave.open(str(path)) as file:
        sound = numpy.frombuffer(file.readframes(file.getnframes()), dtype="<i2").astype("f4") / 32768
        times = numpy.arange(int(len(sound) * rate / file.getframerate())) * file.getframerate() / rate
    return numpy.interp(times, numpy.arange(len(sound)), sound).astype("f4")


def speech(session):
    """One step of 32 ms after forty others, whose state it takes."""
    sound = samples(SPEECH, 16000)
    state = numpy.zeros((2, 1, 128), "f4")
    for step in range(60, 101):
        begin = step * 512
        inputs = {"input": sound[begin - 64:begin + 512][None], "state": state, "sr": numpy.array(16000, "i8")}
        state = session.run(["stateN"], inputs)[0]
    return inputs


def cases():
    """Names, models and what makes the inputs from a session."""
    text = NETWORKS / "rapidocr_onnxruntime/models"
    whole = (0, 0, *Image.open(PICTURE).size)
    title = (0, 0, whole[2], whole[3] // 2)
    yield "Magika", NETWORKS / "magika/models/standard_v3_3/model.onnx", lambda _: file_bytes(ROOT / "README.md")
    yield "Silero VAD", NETWORKS / "silero_vad/data/silero_vad.onnx", speech
    music = {"serving_default_input_2:0": samples(MUSIC, 22050)[:43844].reshape(1, 43844, 1)}
    yield "Basic Pitch", NETWORKS / "basic_pitch/saved_models/icassp_2022/nmp.onnx", lambda _: music
    yield "PP-OCRv4, reading", text / "ch_PP-OCRv4_rec_infer.onnx", lambda _: picture(title, 48, 320, "BILINEAR")
    for height, width in ((288, 960), (192, 640)):
        for how in FILTERS:
            yield (f"PP-OCRv4, finding, {width} x {height} {how.lower()}", text / "ch_PP-OCRv4_det_infer.onnx",
                   lambda _, size=(height, width), how=how: picture(whole, *size, how))


def furthest(own, theirs):
    return max(apart(own[name.replace("/", "_")], array) for name, array in theirs.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/bin/tessera")
    parser.add_argument("--most", type=float, default=1e-4, help="largest difference / largest output that passes")
    arguments = parser.parse_args()
    print(f"{'':42}  ONNX Runtime  its other layout  these two")
    failed = 0
    for name, model, inputs_of in cases():
        sessions = [session_of(model), session_of(model, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED)]
        inputs = inputs_of(sessions[0])
        names = [one.name.replace("/", "_") for one in sessions[0].get_outputs()]
        theirs = [dict(zip(names, session.run(None, inputs))) for session in sessions]
        with tempfile.TemporaryDirectory() as folder:
            own = here(arguments.program, model, inputs, Path(folder))
        differences = [furthest(own, one) for one in theirs]
        failed += min(differences) > arguments.most
        print(f"{name:42}  {differences[0]:12.1e}  {differences[1]:16.1e}  {furthest(theirs[1], theirs[0]):9.1e}"
              f"{'  TOO FAR' if min(differences) > arguments.most else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
