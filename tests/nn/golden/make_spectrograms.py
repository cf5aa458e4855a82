"""Writes spectrograms.safetensors: a sound, and what librosa makes of it.

    python3 -m venv /tmp/librosa && /tmp/librosa/bin/pip install librosa==0.11.0 safetensors
    /tmp/librosa/bin/python tests/nn/golden/make_spectrograms.py

Tensors by name:
    sound            int16 [3200], at 16 kHz
    power            fp32 [20, 257]   |STFT|², a Hann window of 400 in a transform of 512, every 160 samples, zeros
                                      around the sound; without the frame that begins after its end
    odd_power        fp32 [32, 65]    a window of 99 in a transform of 128, every 100 samples
    bands            fp32 [257, 40]   triangles of HTK's mel scale between 60 and 7,600 Hz, 1 at their tips
"""

import pathlib

import librosa
import numpy
from safetensors.numpy import save_file

RATE = 16000


def sound():
    seconds = numpy.arange(3200) / RATE
    chirp = numpy.sin(2 * numpy.pi * (300 * seconds + 9000 * seconds**2)) * numpy.exp(-6 * seconds)
    noise = numpy.random.default_rng(5).normal(size=seconds.size)
    return ((0.6 * chirp + 0.02 * noise) * 32768).astype(numpy.int16)


def power(samples, window, transform, hop):
    spectrum = librosa.stft(samples.astype(numpy.float64) / 32768, n_fft=transform, win_length=window, hop_length=hop,
                            window="hann", center=True, pad_mode="constant")
    frames = numpy.abs(spectrum.T) ** 2
    return numpy.ascontiguousarray(frames[: samples.size // hop].astype(numpy.float32))


def main():
    samples = sound()
    bands = librosa.filters.mel(sr=RATE, n_fft=512, n_mels=40, fmin=60, fmax=7600, htk=True, norm=None)
    save_file({"sound": samples,
               "power": power(samples, 400, 512, 160),
               "odd_power": power(samples, 99, 128, 100),
               "bands": numpy.ascontiguousarray(bands.T.astype(numpy.float32))},
              pathlib.Path(__file__).with_name("spectrograms.safetensors"))


if __name__ == "__main__":
    main()
