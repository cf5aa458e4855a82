"""BERT as transformers has it (src/models/bert.cpp, src/tasks/bert_pretraining.cpp): one pass of a small network with
outputs, losses and gradients, the names in its files, and the losses of a hundred steps of pretraining. It has an environment
of its own:

    python3 -m venv build/transformers
    build/transformers/bin/pip install torch==2.15.0 transformers==5.24.0
    build/transformers/bin/python tests/golden/bert.py                 # writes bert.safetensors and bert_pretraining.json
    tessera predict RUN --count 100 | build/transformers/bin/python tests/golden/bert.py compare RUN SHARDS

`compare` lets transformers fill the same gaps by the weights of a finished run, and says how many it fills otherwise.
"""

import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import safe_open, save_file
from torch.nn import functional

import curves
import formula
import random_words

FOLDER = pathlib.Path(__file__).resolve().parent
VOCABULARY, WIDTH, LAYERS, HEADS, INNER, POSITIONS = 37, 16, 2, 2, 24, 12
BATCH, TOKENS = 3, 10
LENGTHS = [10, 7, 4]
PLACES = [[1, 3], [0, 6], [2, 3]]
STEP_BATCH, MASKED, MASK, KEPT, SEED = 8, 0.25, 4, [2, 3], 1
SAMPLES = 16
MASK_NAME = "[MASK]"


def network(dtype, kind=transformers.BertForPreTraining, **settings):
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=INNER, max_position_embeddings=POSITIONS, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, attn_implementation="eager", **settings,
        pad_token_id=None)  # otherwise that token's row of the table gets no gradient where it stands in a text
    result = kind(config).to(dtype)
    with torch.no_grad():
        for name, parameter in result.named_parameters():
            name = "bert." + name if kind is transformers.BertModel else name
            parameter.copy_(torch.from_numpy(formula.parameter(name, tuple(parameter.shape))))
    return result


def integers(name, shape, classes):
    return torch.from_numpy(formula.labels(name, int(np.prod(shape)), classes).reshape(shape))


def shown(lengths):
    return (torch.arange(TOKENS)[None, :] < torch.as_tensor(lengths)[:, None]).long()


def digest(tensor):
    """[34]: as in make_golden.py."""
    flat = tensor.detach().double().reshape(-1)
    parts = [flat[:SAMPLES], flat[:: max(1, flat.numel() // SAMPLES)][:SAMPLES]]
    padded = [functional.pad(part, (0, SAMPLES - part.numel())) for part in parts]
    return torch.cat([flat.sum()[None], flat.norm()[None], *padded])


def one_pass(dtype):
    model = network(dtype)
    tokens = integers("bert.tokens", (BATCH, TOKENS), VOCABULARY)
    labels = torch.full((BATCH, TOKENS), -100)
    places = torch.tensor(PLACES)
    labels.scatter_(1, places, integers("bert.labels", (BATCH, 2), VOCABULARY))
    said = model(input_ids=tokens, attention_mask=shown(LENGTHS), token_type_ids=integers("bert.segments", (BATCH, TOKENS), 2),
                 labels=labels, next_sentence_label=integers("bert.next", (BATCH,), 2), output_hidden_states=True)
    said.loss.backward()
    encoded = said.hidden_states[-1]
    tensors = {"loss": said.loss[None], "encoded": encoded, "pooled": model.bert.pooler(encoded),
               "logits": said.prediction_logits, "next_sentence": said.seq_relationship_logits}
    tensors = {name: tensor.detach() for name, tensor in tensors.items()}
    return tensors | {"gradient." + name: digest(p.grad) for name, p in model.named_parameters()}


def names_in_files():
    """Of each class: the names and shapes that save_pretrained writes, and the file's metadata."""
    result = {}
    for kind in (transformers.BertForPreTraining, transformers.BertModel):
        with tempfile.TemporaryDirectory() as folder:
            network(torch.float32, kind).save_pretrained(folder)
            with safe_open(pathlib.Path(folder) / "model.safetensors", "pt") as file:
                assert file.metadata() == {"format": "pt"}
                result[kind.__name__] = {name: file.get_slice(name).get_shape() for name in file.keys()}
    return result


def make_pass():
    exact, single = one_pass(torch.float64), one_pass(torch.float32)
    errors = {name: ((single[name].double() - t).norm() / t.norm().clamp_min(1e-30)).item() for name, t in exact.items()}
    values = {name: error for name, error in errors.items() if not name.startswith("gradient.")}
    print(f"loss {exact['loss'].item():.6f}; float32 differs by {max(values.values()):.1e}")
    # The gradient to a key's bias is zero: it moves all scores of a query alike.
    assert max(values.values()) < 1e-5 and exact["logits"].std() > 0.1
    metadata = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__,
                "files": json.dumps(names_in_files())}
    path = FOLDER / "bert.safetensors"
    save_file({name: t.double().contiguous() for name, t in exact.items()}, path, metadata)
    path.chmod(0o644)


def masked(tokens, lengths, step):
    """Tokens with gaps, where they are, what was there, which of them count."""
    count = max(1, round(MASKED * TOKENS))
    draws = [random_words.uniform("masking.", i, SEED, step, (STEP_BATCH, TOKENS if i == 0 else count)) for i in range(3)]
    allowed = (np.arange(TOKENS)[None, :] < lengths[:, None]) & ~np.isin(tokens, KEPT)
    order = np.where(allowed, draws[0], np.float32(-1))
    places = np.argsort(-order, 1, kind="stable")[:, :count]
    wanted = np.maximum(np.round(np.float32(MASKED) * allowed.sum(1).astype(np.float32)), 1)
    counts = (np.arange(count)[None, :] < wanted[:, None]) & np.take_along_axis(allowed, places, 1)
    labels = np.take_along_axis(tokens, places, 1)
    anything = np.minimum(np.floor(draws[2] * np.float32(VOCABULARY)).astype(np.int64), VOCABULARY - 1)
    gaps = np.where(draws[1] < np.float32(0.8), MASK, np.where(draws[1] < np.float32(0.9), anything, labels))
    gapped = tokens.copy()
    np.put_along_axis(gapped, places, np.where(counts, gaps, labels), 1)
    return [torch.from_numpy(part) for part in (gapped, places, labels, counts)]


def losses(precision):
    """{"loss": [...], "masked": [...], "next_sentence": [...]}, one of each step."""
    model = network(curves.dtype_of(precision))
    decaying = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decaying, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=2e-3)
    training, result = curves.Training(optimizer, precision), {"loss": [], "masked": [], "next_sentence": []}
    for step in range(curves.STEPS):
        name = f"bert.{step}"
        tokens = formula.labels(name, STEP_BATCH * TOKENS, VOCABULARY).reshape(STEP_BATCH, TOKENS)
        lengths = 3 + formula.labels(name + ".lengths", STEP_BATCH, TOKENS - 2)
        gapped, places, labels, counts = masked(tokens, lengths, step)
        with training.precision():
            said = model(input_ids=gapped, attention_mask=shown(lengths), token_type_ids=integers(name + ".segments", (STEP_BATCH, TOKENS), 2))
            logits = said.prediction_logits.gather(1, places[..., None].expand(-1, -1, VOCABULARY))
            parts = {"masked": functional.cross_entropy(logits[counts], labels[counts]),
                     "next_sentence": functional.cross_entropy(said.seq_relationship_logits, integers(name + ".next", (STEP_BATCH,), 2))}
            parts["loss"] = parts["masked"] + parts["next_sentence"]
        for key, value in parts.items():
            result[key].append(value.item())
        training.update(parts["loss"])
    return result


def make_curves():
    golden = curves.golden("bert", losses, falls=0.1) | {"torch": torch.__version__.split("+")[0]}
    (FOLDER / "bert_pretraining.json").write_text(json.dumps(golden, indent=1) + "\n")


def tokens_of(line, numbers):
    """What `tessera predict` prints: `_` for a mask, and any other token with a space after it."""
    tokens = []
    for part in line.strip("\n")[2:].split(" "):
        rest = part.lstrip("_")
        masks = len(part) - len(rest)
        if rest == "" and masks > 0:
            masks, rest = masks - 1, "_"
        tokens += [MASK_NAME] * masks + ([rest] if rest else [])
    return [numbers[token] for token in tokens]


def compare(run, shards):
    """The rows that `tessera predict` prints, from the standard input."""
    model, report = transformers.BertForPreTraining.from_pretrained(run, output_loading_info=True)
    print({key: sorted(value) for key, value in report.items()})
    numbers = json.loads((pathlib.Path(shards) / "tokenizer" / "tokenizer.json").read_text())["model"]["vocab"]
    lines = sys.stdin.readlines()
    rows = gaps = different = 0
    for given, filled in [lines[i + 1 : i + 3] for i, line in enumerate(lines) if line.startswith("row ")]:
        tokens, expected = (torch.tensor(tokens_of(line, numbers)) for line in (given, filled))
        separators = (tokens == numbers["[SEP]"]).nonzero()[:, 0]
        places = torch.arange(len(tokens))
        with torch.inference_mode():
            said = model.eval()(input_ids=tokens[None], token_type_ids=((places > separators[0]) & (places <= separators[1])).long()[None],
                                attention_mask=(places <= separators[1]).long()[None]).prediction_logits[0].argmax(-1)
        masks = tokens == numbers[MASK_NAME]
        rows, gaps, different = rows + 1, gaps + masks.sum().item(), different + (said != expected)[masks].sum().item()
    print(f"{rows} rows, {gaps} gaps, {different} of them filled otherwise")


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        compare(*sys.argv[2:])
    else:
        make_pass()
        make_curves()
