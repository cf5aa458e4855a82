"""All-reduces of torch.distributed: one process of several, of which the first says on stdout what a chain of them takes.

`python -m torch.distributed.run ... -m tessera_bench.torch_exchanges JSON`, with what bench/exchanges gives. On GPUs a chain is
recorded once and replayed, so that no call from Python is timed.
"""

import json
import os
import statistics
import sys
import time

import torch
import torch.distributed


def recorded(work):
    """The work as something to be called; it ends on the GPU alone."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()  # connects, which cannot be recorded
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        work()
    return graph.replay


def milliseconds_of(values, told):
    def work():
        for _ in range(told["chain"]):
            torch.distributed.all_reduce(values)

    run = recorded(work) if values.is_cuda else work
    wait = torch.cuda.synchronize if values.is_cuda else lambda: None
    times = []
    for i in range(told["warmup"] + told["iterations"]):
        begin = time.perf_counter()
        run()
        wait()
        if i >= told["warmup"]:
            times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def main():
    told = json.loads(sys.argv[1])
    if told["device"] == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        torch.distributed.init_process_group("nccl", device_id=device)
    else:
        device = torch.device("cpu")
        torch.distributed.init_process_group("gloo")
    found = [milliseconds_of(torch.zeros(elements, device=device), told) for elements in told["elements"]]
    if torch.distributed.get_rank() == 0:
        print(json.dumps({"milliseconds": found}), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
