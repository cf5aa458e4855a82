#!/usr/bin/env python3
"""Reads events.golden with TensorBoard itself, to show that the bytes the test expects are right.

Needs the package `tensorboard` (tried with 2.21.0).
"""

import pathlib
import shutil
import tempfile

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

GOLDEN = pathlib.Path(__file__).parent / "events.golden"


def main():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(GOLDEN, pathlib.Path(folder) / "events.out.tfevents.1700000000.golden")
        events = EventAccumulator(folder)
        events.Reload()
    assert events.file_version == 2.0, events.file_version
    loss = [(event.step, event.value, event.wall_time) for event in events.Scalars("train/loss")]
    assert loss == [(7, 0.5, 1700000001.5), (300, -1.25, 1700000001.5)], loss
    tensor = events.Tensors("recipe")[0]
    assert (tensor.step, tensor.tensor_proto.string_val[0].decode()) == (7, "# Recipe\n\u00e9"), tensor
    assert events.SummaryMetadata("recipe").plugin_data.plugin_name == "text"
    print("check_events: TensorBoard reads", GOLDEN.name)


if __name__ == "__main__":
    main()
