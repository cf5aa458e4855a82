"""python -m tessera_bench.torch_curves CASE THREADS STEPS: {"losses": [...], "versions": {...}} of PyTorch, eager."""

import json
import sys

import torch

from . import torch_peer


def main(case, threads, steps):
    torch.set_num_threads(int(threads))
    training = torch_peer.Training(json.loads(case), compiled=False)
    if training.random:
        sys.exit("the network has dropout, whose random numbers are not the same")
    losses = [loss.read() for loss in [training.iterate() for _ in range(int(steps))]]
    print(json.dumps({"losses": losses, "versions": torch_peer.versions()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
