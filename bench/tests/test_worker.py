"""The peers' process: when it reads what a step gave, against a stand-in for a peer."""

import json
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tessera_bench import late, worker  # noqa: E402


class Loss:
    def __init__(self, events, step):
        self.events, self.step = events, step

    def read(self):
        self.events.append(f"read {self.step}")
        return float(self.step)


class Training:
    """Notes when it submits a step and when a loss is read."""

    events = []

    def __init__(self):
        self.late, self.steps = late.Late(), 0

    def iterate(self):
        self.steps += 1
        self.events.append(f"submit {self.steps}")
        loss = Loss(self.events, self.steps)
        self.late.push(loss)
        return loss

    def finish(self):
        self.late.finish()

    def check(self, results):
        return {"losses": [loss.read() for loss in results]}


class Answers:
    def __init__(self):
        self.lines = []

    def write(self, text):
        self.lines.append(json.loads(text))

    def flush(self):
        pass


class WorkerTest(unittest.TestCase):
    def serve(self, *requests):
        module = types.ModuleType("tessera_bench.stand_in")
        module.make, module.versions = lambda *_: Training(), lambda: {}
        sys.modules[module.__name__] = module
        Training.events = []
        answers = Answers()
        known = dict(worker.MODULES)
        worker.MODULES["stand-in"] = "stand_in"
        self.addCleanup(worker.MODULES.update, known)
        worker.serve([json.dumps(request) for request in requests], answers)
        return answers.lines

    def test_losses_are_read_one_step_late_and_every_turn_begins_with_a_step_under_way(self):
        ready, turn, again = self.serve({"peer": "stand-in", "case": {}, "threads": 1, "warmup": 0}, {"run": 2}, {"run": 1})
        self.assertEqual(ready["check"], {"losses": [1.0, 2.0]})
        self.assertEqual(len(turn["milliseconds"]), 2)
        self.assertEqual(len(again["milliseconds"]), 1)
        first_turn = ["submit 3", "submit 4", "read 3", "submit 5", "read 4", "read 5"]
        second_turn = ["submit 6", "submit 7", "read 6", "read 7"]
        self.assertEqual(Training.events[-len(first_turn + second_turn):], first_turn + second_turn)

    def test_a_peer_that_waits_for_each_result_has_no_step_under_way(self):
        self.assertFalse(worker.works_ahead(object()))


if __name__ == "__main__":
    unittest.main()
