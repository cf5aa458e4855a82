"""bench/first_start with a program whose answers are given."""

import pathlib
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from stand_ins import StandInTest  # noqa: E402
from tessera_bench import first_start  # noqa: E402

# It compiles in 9 s where it finds no file of its own, and in 0.5 s where it does, and is ready in 11 s.
PROGRAM = """#!/bin/sh
case "$*" in
  bench*) ;;
  *) echo '{"version": "0.1", "devices": []}'; exit ;;
esac
seconds=9
if [ -e "$TESSERA_CUDA_CACHE" ]; then seconds=0.5; fi
touch "$TESSERA_CUDA_CACHE"
echo "{\\"compile_seconds\\": $seconds, \\"ready_seconds\\": 11, \\"milliseconds\\": [3, 2, 9], \\"device_model\\": \\"NVIDIA H100\\", \\"train\\": true}"
"""


class FirstStartTest(StandInTest):
    def test_two_starts_find_nothing_and_the_third_what_the_second_left(self):
        said, lines = self.measure(first_start, PROGRAM, "--batch", "8")
        self.assertEqual([line["compile_seconds"] for line in lines], [9, 9, 0.5])
        self.assertEqual([line["caches"] for line in lines], ["none, the first start of the machine", "none", "kept"])
        self.assertEqual([line["options"].split()[-1] for line in lines], ["(new)", "(new)", "(known)"])
        self.assertEqual({(line["case"], line["milliseconds"]) for line in lines}, {("cuda/resnet50-train-b8-fp16", 3)})
        self.assertIn("our files kept: ready in 11.0 s, of which compiled in 0.5 s", said)

    def test_a_case_that_trains_a_recipe(self):
        with unittest.mock.patch("tessera_bench.token_shards.ensure") as made:
            said, lines = self.measure(first_start, PROGRAM, "cuda/decoder-350m-train-bf16")
        self.assertEqual(made.call_args.args[0].name, "cuda/decoder-350m-train-bf16")
        self.assertEqual({(line["case"], line["precision"]) for line in lines}, {("cuda/decoder-350m-train-bf16", "bf16")})

    def test_other_cases(self):
        for name, why in (("cuda/resnet18-train-b256-fp16", "trains no recipe"), ("cuda/none", "there is no case cuda/none")):
            said, lines = self.measure(first_start, PROGRAM, name, code=1)
            self.assertEqual(lines, [])
            self.assertIn(why, said)

    def test_a_program_that_fails(self):
        said, lines = self.measure(first_start, "#!/bin/sh\necho broken >&2\nexit 5\n", "--batch", "8", code=1)
        self.assertEqual(lines, [])
        self.assertIn("ended with status 5: broken", said)


if __name__ == "__main__":
    unittest.main()
