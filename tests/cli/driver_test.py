"""What is said of a driver that is too old, of a GPU that cannot be used, and of one that is lost: by the program, over
a library that stands in for the driver."""

import json
import os
import shutil
import unittest

from program import ProgramTest

STAND_IN = os.environ["TESSERA_STAND_IN_DRIVER"]
OLD_STAND_IN = os.environ["TESSERA_OLD_STAND_IN_DRIVER"]


class DriverTest(ProgramTest):
    def setUp(self):
        super().setUp()
        for name in ("TESSERA_CUDA_PATH", "STAND_IN_DRIVER"):
            self.addCleanup(os.environ.pop, name, None)

    def expect(self, behavior, *parts, driver=STAND_IN, code=7):
        """The same reason from `doctor`, which goes on, and from a command that needs the GPU."""
        os.environ["TESSERA_CUDA_PATH"] = driver
        os.environ["STAND_IN_DRIVER"] = behavior
        devices = {device["name"]: device for device in json.loads(self.call("doctor", "--json"))["devices"]}
        self.assertFalse(devices["cuda"]["found"])
        self.assertTrue(devices["cpu"]["found"])
        for part in parts:
            self.assertIn(part, devices["cuda"]["detail"])
            self.assertIn(part, devices["auto"]["detail"])
        self.refuses(["train", self.recipe, "--device", "cuda", "--out", self.root / "run"], code, *parts)
        self.assertFalse((self.root / "run").exists())
        # Left to choose, a training takes the processor and says why.
        told = self.call("train", self.recipe, "--device", "auto", "--out", self.root / "auto", "--max-steps", 1)
        self.assertRegex(told, "^device: cpu, .*; auto found no GPU: ")
        for part in parts:
            self.assertIn(part, told.splitlines()[0])
        shutil.rmtree(self.root / "auto")

    def test_an_old_driver(self):
        self.expect("version=12080", "the driver supports CUDA 12.8", "13.0 is needed: update it")
        for status in (803, 804):
            self.expect(f"cuInit={status}", "starting the driver failed", "the driver is too old for CUDA 13: update it")

    def test_a_driver_without_functions_that_are_needed(self):
        self.expect("", "the library lacks 'cuDriverGetVersion'", "older than the CUDA 13", driver=OLD_STAND_IN)

    def test_no_gpu_that_can_be_used(self):
        self.expect("cuInit=100", "there is no GPU that the driver can use")
        self.expect("count=0", "there is no GPU 0", "CUDA_VISIBLE_DEVICES")
        self.expect("cuDeviceGet=101", "there is no GPU of that number")
        self.expect("major=7", "compute capability 7.0, at least 8.0 is needed")
        self.expect("cuDevicePrimaryCtxRetain=46", "another process holds the GPU exclusively")

    def test_a_lost_gpu(self):
        for status in (700, 715, 716, 719):
            self.expect(f"cuStreamCreate={status}", "creating a stream failed", "the GPU's context is lost",
                        "start the process again", code=9)
        for status in (214, 714):
            self.expect(f"cuStreamCreate={status}", "hardware fault", "on another one", code=9)
        self.expect("cuStreamCreate=999", "creating a stream failed with CUDA_ERROR_OF_STAND_IN (as the test wants)", code=9)

    def test_training_without_a_gpu_goes_on_the_cpu(self):
        os.environ["TESSERA_CUDA_PATH"] = STAND_IN
        os.environ["STAND_IN_DRIVER"] = "cuInit=803"
        self.train("run", "--set", "train.device=auto", "--set", "train.epochs=1")
        self.assertTrue((self.root / "run" / "model.safetensors").exists())


if __name__ == "__main__":
    unittest.main()
