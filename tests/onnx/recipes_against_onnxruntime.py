#!/usr/bin/env python3
"""Exports what every recipe's task serves and holds it beside ONNX Runtime on the same inputs, of which bf16 beside
`onnx.reference`: ONNX Runtime multiplies no matrices in bf16 on a CPU.

Each recipe trains three steps on small data of its kind, as cli.recipes has them, so that no two weights of a kind are
alike. Needs what against_onnxruntime.py needs, and the packages `onnx` and `ml_dtypes`:

    venv/bin/python tests/onnx/recipes_against_onnxruntime.py --program build/release/bin/tessera [RECIPE...]
"""

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"voices": 60}  # of 80 samples each
BELOW = {"flights": 1, "voices": 4800}  # a row of a table, samples of a sound
MOST = {"fp32": 1e-5, "fp16": 2e-3, "bf16": 2e-2}


class ReferenceSession:
    """The reference of the format by ONNX Runtime's interface."""

    def __init__(self, model):
        import onnx
        from onnx.reference import ReferenceEvaluator

        onnx.checker.check_model(model, full_check=True)
        self.evaluator = ReferenceEvaluator(model)
        graph = onnx.load(model).graph
        self.inputs, self.outputs = (list(map(self.declared, values)) for values in (graph.input, graph.output))

    @staticmethod
    def declared(value):
        tensor = value.type.tensor_type
        name = {1: "float", 3: "int8", 2: "uint8", 5: "int16", 6: "int32", 7: "int64", 9: "bool"}[tensor.elem_type]
        shape = [extent.dim_value if extent.HasField("dim_value") else extent.dim_param for extent in tensor.shape.dim]
        return argparse.Namespace(name=value.name, type=f"tensor({name})", shape=shape)

    def get_inputs(self):
        return self.inputs

    def get_outputs(self):
        return self.outputs

    def run(self, names, inputs):
        return self.evaluator.run(names, inputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/bin/tessera")
    parser.add_argument("recipes", nargs="*", help="names; all of them unless said")
    arguments = parser.parse_args()
    os.environ["TESSERA_PROGRAM"] = str(Path(arguments.program).resolve())
    sys.path.insert(0, str(ROOT / "tests/cli"))
    import against_onnxruntime
    import recipes_test

    failed = 0
    for file in sorted((ROOT / "recipes").glob("*.toml")):
        if arguments.recipes and file.stem not in arguments.recipes:
            continue
        test = recipes_test.RecipesTest(f"test_{file.stem}")
        recipes_test.RecipesTest.setUpClass()
        test.setUp()
        recipes_test.STEPS = 3
        test.run_steps(file)
        for precision, most in MOST.items():
            model = test.root / f"{file.stem}-{precision}.onnx"
            test.call("export", test.root / "run", "--checkpoint", test.root / "run/checkpoints/last.safetensors", "--output", model,
                      "--precision", precision)
            # Of the smallest vocabulary, that of kinds of text.
            options = argparse.Namespace(program=arguments.program, size=SIZES.get(file.stem, 7), below=BELOW.get(file.stem, 2), deviation=1)
            session = ReferenceSession(str(model)) if precision == "bf16" else None
            try:
                each = against_onnxruntime.compare(options, str(model), session)
            except (RuntimeError, TypeError) as error:  # of its own softmax, norms and tables, which give fp32 of bf16
                print(f"{file.stem} {precision}: onnx.reference does not run it: {str(error)[:80]}", flush=True)
                continue
            worst = max(each.values())
            failed += worst > most
            print(f"{file.stem} {precision}: {worst:.2g}{'  TOO FAR' if worst > most else ''}", flush=True)
        test.doCleanups()
        recipes_test.RecipesTest.doClassCleanups()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
