"""PyTorch's DistributedDataParallel: one process of it, which says on stdout what its steps took.

`python -m tessera_bench.ddp_peer CASE`, with the case as JSON. RANK and WORLD_SIZE as torch.distributed.run sets them; without
them the process trains alone.
"""

import json
import os
import sys

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

from . import torch_peer, worker


def connected(case):
    """What makes a network one of several; none where this process is alone."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        return lambda network: network
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", device_id=device)
    return lambda network: DistributedDataParallel(network, device_ids=[device], gradient_as_bucket_view=True)


def main():
    case = json.loads(sys.argv[1])
    parallel = connected(case)
    training = torch_peer.Training(case, case["compiled"], parallel)
    first = [training.iterate() for _ in range(case["warmup"])][:2]
    training.finish()
    check = training.check(first)
    milliseconds = worker.turn(training, case["iterations"])
    if int(os.environ.get("RANK", 0)) == 0:
        told = {"milliseconds": milliseconds, "losses": check and check["losses"], "versions": torch_peer.versions()}
        print(json.dumps(told), flush=True)
    if torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
