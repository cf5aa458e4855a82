"""Makes the golden files of this folder. Run: bench/.venv/bin/python tests/golden/make_golden.py [FILE...]

`make_golden.py --search NETWORK` looks for the training input that keeps every ReLU farthest from its kink.
"""

import json
import pathlib
import sys

import torch
import torchvision
from safetensors.torch import save_file
from torch.nn import functional as F

import click_through
import gan
import masked_language_model
import networks
import optimizers

FOLDER = pathlib.Path(__file__).resolve().parent
CLASSES = 10
TRAINING_BATCH = 4
EVALUATION_BATCH = 2
SAMPLES = 16
# float32 moves a value near zero across a ReLU's kink, and the gradient jumps. Of 100 inputs these stay farthest away.
TRAINING_INPUT = {"lenet": "input", "resnet18": "input.48", "resnet50": "input.96"}


def digest(tensor):
    """[34]: sum, L2 norm, the first 16 elements, 16 elements count/16 apart; zeros after the end of a short tensor."""
    flat = tensor.detach().double().reshape(-1)
    stride = max(1, flat.numel() // SAMPLES)
    parts = [flat[:SAMPLES], flat[::stride][:SAMPLES]]
    return torch.cat([flat.sum()[None], flat.norm()[None]] + [F.pad(part, (0, SAMPLES - part.numel())) for part in parts])


def training_step(name, dtype):
    """Logits, losses and gradients of one forward and backward pass in training mode."""
    network = networks.filled(name, CLASSES, dtype).train()
    images, labels = networks.batch(name, TRAINING_BATCH, CLASSES, dtype, TRAINING_INPUT[name])
    logits = network(images)
    loss = F.cross_entropy(logits, labels)
    loss.backward()
    tensors = {
        "logits": logits.detach(),
        "loss": loss.detach()[None],
        "loss_smoothed": F.cross_entropy(logits, labels, label_smoothing=0.1).detach()[None],
    }
    tensors |= {"gradient." + key: parameter.grad for key, parameter in network.named_parameters()}
    tensors |= {"buffer." + key: b for key, b in network.named_buffers() if not key.endswith("num_batches_tracked")}
    return tensors


def relative(a, b):
    return ((a.double() - b).norm() / b.norm()).item()


def make_training(name):
    exact = training_step(name, torch.float64)
    single = training_step(name, torch.float32)
    errors = {key: relative(single[key], exact[key]) for key in exact}
    worst = max((key for key in errors if key.startswith("gradient.")), key=errors.get)
    print(f"{name}: logits deviate by {exact['logits'].std():.3f}, loss {exact['loss'].item():.6f}; float32 differs by {errors['logits']:.1e} (logits), {errors['loss']:.1e} (loss), {errors[worst]:.1e} (gradient, worst: {worst})")
    assert 0.1 < exact["logits"].std() < 10 and errors["logits"] < 1e-4 and errors[worst] < 1e-2
    whole = name == "lenet"
    kept = ("logits", "loss", "loss_smoothed")
    tensors = {key: t if key in kept else t.float() if whole else digest(t) for key, t in exact.items()}
    save(name, tensors, network=name, batch=TRAINING_BATCH, image_size=networks.image_size(name), classes=CLASSES, input=TRAINING_INPUT[name])


def search(name):
    network = networks.filled(name, CLASSES).train()
    distances = {}
    for source in (f"input.{i}" for i in range(100)):
        images, _ = networks.batch(name, TRAINING_BATCH, CLASSES, source=source)
        distances[source] = networks.kink_distance(network, images)
    best = max(distances, key=distances.get)
    print(f"{name}: {best} stays {distances[best]:.1e} away")


@torch.inference_mode()
def make_torchvision_logits():
    tensors = {}
    for name in networks.TORCHVISION:
        logits = {}
        for dtype in (torch.float64, torch.float32):
            images, _ = networks.batch(name, EVALUATION_BATCH, CLASSES, dtype)
            logits[dtype] = networks.filled(name, CLASSES, dtype).eval()(images)
        exact = logits[torch.float64]
        apart = (exact[0] - exact[1]).std() / exact.std()
        print(f"{name}: deviation {exact.std():.3f}, of the two images' difference {apart:.3f} of it; float32 differs by {relative(logits[torch.float32], exact):.1e}")
        # Both images must show in the logits, or a network that ignores its input would pass.
        assert 0.1 < exact.std() < 10 and apart > 0.02
        tensors[name] = exact
    save("torchvision_logits", tensors, batch=EVALUATION_BATCH, classes=CLASSES)


def make_torchvision_parameters():
    table = {}
    for name in networks.TORCHVISION:
        with torch.device("meta"):
            network = networks.build(name, 1000)
        parameters = [[key, list(p.shape)] for key, p in network.named_parameters()]
        buffers = [[key, list(b.shape)] for key, b in network.named_buffers()]
        total = sum(p.numel() for p in network.parameters())
        table[name] = {"total": total, "parameters": parameters, "buffers": buffers}
    lines = []
    for name, entry in table.items():
        rows = {key: ",\n".join("      " + json.dumps(row) for row in entry[key]) for key in ("parameters", "buffers")}
        body = [f'    "total": {entry["total"]}'] + [f'    "{key}": [\n{text}\n    ]' if text else f'    "{key}": []' for key, text in rows.items()]
        lines.append(f'  "{name}": {{\n' + ",\n".join(body) + "\n  }")
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    assert json.loads(text) == table
    (FOLDER / "torchvision_parameters.json").write_text(text)


def make_optimizers():
    tensors = {}
    for case in optimizers.CASES:
        for name, steps in optimizers.run(case).items():
            assert steps.isfinite().all() and (steps[-1] - steps[0]).abs().max() > 1e-3, case
            tensors[f"{case}.{name}"] = steps
    options = {case: json.dumps({"learning_rate": base, **options}) for case, (base, options) in optimizers.CASES.items()}
    save("optimizers", tensors, **options)


def make_curves(module, name, measure, least_change):
    """The losses of a training's first steps."""
    exact, single = module.losses(), module.losses(torch.float32)
    deviation = max(abs(a - b) for key in exact for a, b in zip(exact[key], single[key]))
    first, last = exact[measure][0], exact[measure][-1]
    print(f"{name}: {measure} {first:.4f} to {last:.4f}; float32 differs by {deviation:.1e}")
    assert deviation < 1e-3 and abs(last - first) > least_change
    golden = exact | {"float32_deviation": deviation, "torch": torch.__version__.split("+")[0]}
    (FOLDER / f"{name}.json").write_text(json.dumps(golden, indent=1) + "\n")


def make_gan():
    make_curves(gan, "gan", "generator", 0.1)


def make_masked_language_model():
    make_curves(masked_language_model, "masked_language_model", "masked", 0.1)


def make_click_through():
    make_curves(click_through, "click_through", "loss", 0.02)


def save(name, tensors, **metadata):
    metadata |= {"torch": torch.__version__.split("+")[0], "torchvision": torchvision.__version__.split("+")[0]}
    tensors = {key: tensor.contiguous() for key, tensor in tensors.items()}
    path = FOLDER / f"{name}.safetensors"
    save_file(tensors, path, {key: str(value) for key, value in metadata.items()})
    path.chmod(0o644)


FILES = {
    "lenet": lambda: make_training("lenet"),
    "resnet18": lambda: make_training("resnet18"),
    "resnet50": lambda: make_training("resnet50"),
    "optimizers": make_optimizers,
    "gan": make_gan,
    "masked_language_model": make_masked_language_model,
    "click_through": make_click_through,
    "torchvision_parameters": make_torchvision_parameters,
    "torchvision_logits": make_torchvision_logits,
}


def main():
    if sys.argv[1:2] == ["--search"]:
        for name in sys.argv[2:]:
            search(name)
        return
    unknown = [name for name in sys.argv[1:] if name not in FILES]
    if unknown:
        sys.exit(f"unknown: {' '.join(unknown)}; files: {' '.join(FILES)}")
    for name in sys.argv[1:] or FILES:
        FILES[name]()


if __name__ == "__main__":
    main()
