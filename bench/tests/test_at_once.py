"""bench/at_once with a program whose answers are given."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from stand_ins import StandInTest  # noqa: E402
from tessera_bench import at_once  # noqa: E402

# Writes the trace where its last word says.
PROGRAM = """#!/bin/sh
case "$*" in
  profile*"--copies 3"*) ;;
  *) echo '{"version": "0.1", "devices": []}'; exit ;;
esac
for trace; do :; done
echo '{"otherData": {"copies": 3, "shared_time": 0.75, "device_model": "NVIDIA H100"}}' > "$trace"
"""


class AtOnceTest(StandInTest):
    def test_what_the_trace_says_is_kept(self):
        said, lines = self.measure(at_once, PROGRAM, "--copies", "3")
        self.assertIn("cuda/resnet50-infer-b1-fp16: 3 at once, at least two of which worked in 75 % of the time", said)
        self.assertEqual([(line["kind"], line["copies"], line["shared_time"]) for line in lines], [("at once", 3, 0.75)])

    def test_a_program_that_fails(self):
        said, lines = self.measure(at_once, "#!/bin/sh\necho broken >&2\nexit 5\n", "--copies", "3", code=1)
        self.assertEqual(lines, [])
        self.assertIn("ended with status 5: broken", said)


if __name__ == "__main__":
    unittest.main()
