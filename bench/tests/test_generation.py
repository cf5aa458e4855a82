"""bench/generation with answers of the program and of transformers that are given."""

import contextlib
import io
import json
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from stand_ins import StandInTest  # noqa: E402
from tessera_bench import generation  # noqa: E402

PROGRAM = "#!/bin/sh\necho '{\"version\": \"0.1\", \"devices\": []}'\n"
EAGER = {"seconds": [2, 2, 2], "shared": 20, "lead": 0.001}
STATIC = {"seconds": [0.5, 1, 9], "shared": 58, "lead": None}


class GenerationTest(StandInTest):
    def measure(self, eager=EAGER, code=0, more=()):
        """The line of a case whose program takes two seconds to start and a hundredth for each token."""
        def answer(words):
            if "generate" in words:
                self.assertEqual(words[words.index("--tokens") + 1], 58)
                prompt = generation.PROMPT.encode()
                return [(1.9, prompt), (2.0, b"a "), (2.07, b"text"), (2.57, b"\n")]
            told = json.loads(words[-1])
            found = {"parameters": 7} if told["do"] == "make" else STATIC if told["compiled"] else eager
            if found is None:
                raise RuntimeError("ended with 3")
            self.assertEqual(told.get("other", generation.PROMPT + "a text"), generation.PROMPT + "a text")
            return [(1.0, json.dumps(found).encode())]

        words = ["gpt2-small", "--tokens", "58", "--results", str(self.root), "--program", self.write_program("program", PROGRAM), *more]
        with mock.patch.object(generation, "call", answer), contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(generation.main(words), code)
        (path,) = self.root.glob("*-generation.jsonl")
        return json.loads(path.read_text())

    def test_tokens_of_a_second_beside_the_faster_peer(self):
        line = self.measure()
        self.assertEqual((line["case"], line["parameters"], line["errors"]), ("cuda/generate-gpt2-small-fp32", 7, []))
        sides = {name: side["tokens_per_second"] for name, side in line["sides"].items()}
        self.assertAlmostEqual(sides["tessera"], 100)
        self.assertAlmostEqual(line["sides"]["tessera"]["start_seconds"], 2.0)
        self.assertEqual((sides["transformers"], sides["transformers-static"]), (29, 58))
        self.assertAlmostEqual(line["speed_ratio"], 100 / 58)

    def test_weights_of_another_type(self):
        line = self.measure(EAGER | {"lead": 0.09}, more=("--precision", "bf16"))
        self.assertEqual((line["case"], line["errors"]), ("cuda/generate-gpt2-small-bf16", []))
        self.assertAlmostEqual(line["sides"]["tessera"]["weight_bytes_per_second"], 7 * 2 * 100)

    def test_texts_that_part_where_a_token_leads(self):
        line = self.measure(EAGER | {"lead": 0.2}, code=1)
        self.assertEqual(line["errors"], ["transformers: the texts part after 20 tokens"])

    def test_texts_that_share_nothing(self):
        line = self.measure(EAGER | {"shared": 0, "lead": None}, code=1)
        self.assertEqual(line["errors"], ["transformers: the texts part after 0 tokens"])

    def test_a_peer_that_fails_is_said(self):
        line = self.measure(None, code=1)
        self.assertEqual(line["errors"], ["transformers: ended with 3"])
        self.assertEqual(list(line["sides"]), ["tessera", "transformers-static"])

    def test_what_a_program_says_when_it_fails(self):
        with self.assertRaisesRegex(RuntimeError, "ended with 3: no such thing"):
            generation.call([self.write_program("fails", "#!/bin/sh\necho no such thing >&2\nexit 3\n")])
        slow = generation.call([self.write_program("slow", "#!/bin/sh\nprintf a\nsleep 0.2\nprintf b\n")])
        self.assertEqual([piece for _, piece in slow], [b"a", b"b"])
        self.assertGreater(slow[1][0] - slow[0][0], 0.1)

    def test_wrong_names(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors, self.assertRaises(SystemExit):
            generation.main(["gpt2-huge"])
        self.assertIn("there is no gpt2-huge (there are: gpt2-small", errors.getvalue())


if __name__ == "__main__":
    unittest.main()
