"""What an all-reduce takes over links of which each message costs a time and each byte another (the α-β model)."""

import dataclasses
import math
import statistics


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Hosts of as many GPUs each. `call` is what an exchange takes whatever its size and whoever takes part."""

    call: float  # seconds
    inside_step: float  # α between two GPUs of a host, seconds
    inside_rate: float  # 1/β there, bytes/s, as nccl-tests has it: the bus bandwidth
    between_step: float  # α between two hosts
    host_rate: float  # bytes/s of all adapters of a host, in one direction
    gpus_of_host: int = 8

    def split(self, gpus):
        """(hosts, GPUs of each)"""
        if gpus <= self.gpus_of_host:
            return 1, gpus
        if gpus % self.gpus_of_host:
            raise ValueError(f"{gpus} GPUs are not whole hosts of {self.gpus_of_host}")
        return gpus // self.gpus_of_host, self.gpus_of_host

    def rate(self, hosts):
        """Of what goes through all GPUs of all hosts: the narrowest place counts."""
        return self.inside_rate if hosts == 1 else min(self.inside_rate, self.host_rate)


def bus_share(gpus):
    """How often a byte of the result travels: 2 (n - 1) / n, by which nccl-tests turns a rate of results into one of links."""
    return 2 * (gpus - 1) / gpus


def ring(size, gpus, cluster):
    """One ring through all GPUs, each host entered and left once (Patarasuk and Yuan 2009)."""
    hosts, inside = cluster.split(gpus)
    between = 2 * (hosts - 1)
    steps = (2 * (gpus - 1) - between) * cluster.inside_step + between * cluster.between_step
    return cluster.call + steps + bus_share(gpus) * size / cluster.rate(hosts)


def tree(size, gpus, cluster):
    """A chain in each host, and between hosts two binary trees of which each has half of the bytes (Sanders et al. 2009)."""
    hosts, inside = cluster.split(gpus)
    steps = (inside - 1) * cluster.inside_step + math.ceil(math.log2(hosts)) * cluster.between_step
    return cluster.call + 2 * steps + 2 * size / cluster.rate(hosts)


def hierarchical(size, gpus, cluster):
    """Reduce-scatter in each host, each GPU's part among hosts by halving and doubling (Rabenseifner 2004), all-gather: one
    after the other."""
    hosts, inside = cluster.split(gpus)
    seconds = cluster.call + 2 * (inside - 1) * cluster.inside_step + bus_share(inside) * size / cluster.inside_rate
    steps = 2 * math.ceil(math.log2(hosts))
    return seconds + steps * cluster.between_step + bus_share(hosts) * size / cluster.host_rate


ALGORITHMS = {"ring": ring, "tree": tree, "hierarchical": hierarchical}


def all_reduce(size, gpus, cluster):
    """(name of the fastest algorithm, its seconds)"""
    times = {name: algorithm(size, gpus, cluster) for name, algorithm in ALGORITHMS.items()}
    name = min(times, key=times.get)
    return name, times[name]


def fit(samples, gpus):
    """(seconds of a call, bytes/s of the bus) by which (bytes, seconds) of one number of GPUs lie closest, relatively."""
    weights = [seconds**-2 for _, seconds in samples]
    total = sum(weights)
    size = sum(w * s for w, (s, _) in zip(weights, samples)) / total
    time = sum(w * t for w, (_, t) in zip(weights, samples)) / total
    both = sum(w * (s - size) * (t - time) for w, (s, t) in zip(weights, samples))
    slope = both / sum(w * (s - size) ** 2 for w, (s, _) in zip(weights, samples))
    return time - slope * size, bus_share(gpus) / slope


def expected_largest(count):
    """Of so many numbers that are normally distributed, in standard deviations above their mean (Blom 1958)."""
    return statistics.NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0
