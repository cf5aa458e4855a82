"""A Slurm of two nodes on this machine, in a folder of its own."""

import os
import pathlib
import shutil
import socket
import subprocess
import time

COMMANDS = ("slurmctld", "slurmd", "srun", "sbatch", "scancel", "scontrol", "sinfo", "squeue")
BOUND = 60  # seconds in which it must have started, and a job too

# No accounts and no control groups: neither is there in every container.
CONFIGURATION = """
ClusterName=tessera
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool-%n
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
TmpFS={folder}/files-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4
NodeName=two NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4
PartitionName=all Nodes=one,two Default=YES State=UP
"""


def why_not():
    """Why there can be none here; "" where there can."""
    if os.geteuid() != 0:
        return "its daemons need root"
    missing = [name for name in COMMANDS if shutil.which(name) is None]
    return f"{', '.join(missing)} not found: tools/setup slurm" if missing else ""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Cluster:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.configuration = self.folder / "slurm.conf"
        self.configuration.write_text(CONFIGURATION.format(host=socket.gethostname().split(".")[0], folder=folder, ports=free_ports(3)))
        for name in ("state", "spool-one", "spool-two", "files-one", "files-two"):
            (self.folder / name).mkdir()
        self.daemons = []

    def __enter__(self):
        try:
            self.start("slurmctld")
            for node in ("one", "two"):
                self.start("slurmd", "-N", node)
            self.wait_until(lambda: self.call("sinfo", "-h", "-t", "idle", "-o", "%D") == "2", "nodes that do not come")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def start(self, *words):
        with open(self.folder / f"{'-'.join(words)}.out", "wb") as output:
            self.daemons.append(subprocess.Popen([*words, "-D", "-f", self.configuration], stdin=subprocess.DEVNULL, stdout=output,
                                                 stderr=output))

    def environment(self):
        """Of a shell that is no job of another cluster."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMIX_"))}
        return {**own, "SLURM_CONF": str(self.configuration), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}

    def run(self, *words, timeout=BOUND):
        return subprocess.run([str(word) for word in words], env=self.environment(), cwd=self.folder, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def call(self, *words):
        return self.run(*words).stdout.strip()

    def state_of(self, job):
        return self.call("squeue", "-h", "-t", "all", "-j", job, "-o", "%T")

    def wait_until(self, holds, problem):
        end = time.monotonic() + BOUND
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"{problem}\n{self.logs()}")
            time.sleep(0.2)

    def logs(self):
        return "\n".join(f"{path.name}:\n{path.read_text(errors='replace')[-2000:]}" for path in sorted(self.folder.glob("*.log")))
