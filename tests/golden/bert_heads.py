"""The heads that BERT is fine tuned with, as transformers has them (src/models/bert.cpp): of each one pass of the small
network of bert.py with outputs, loss and gradients, and the names in its files. It has the environment that bert.py names:

    build/transformers/bin/python tests/golden/bert_heads.py                 # writes bert_heads.safetensors
    tessera predict RUN LINES.txt --out logits.safetensors
    build/transformers/bin/python tests/golden/bert_heads.py compare RUN TOKENIZER LINES.txt logits.safetensors

`compare` says how far transformers is from the logits of texts that a finished run of text_classification gave.
"""

import json
import pathlib
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, safe_open, save_file

import bert

LABELS = ("one", "two", "three")
NAMES = {"id2label": dict(enumerate(LABELS)), "label2id": {label: i for i, label in enumerate(LABELS)}}
# Of the tokens 0 to LENGTH of each row those that have a tag: every second one.
TAGGED = [[i < length and i % 2 == 1 for i in range(bert.TOKENS)] for length in bert.LENGTHS]


def tags():
    labels = bert.integers("heads.tags", (bert.BATCH, bert.TOKENS), len(LABELS))
    return labels.masked_fill(~torch.tensor(TAGGED), -100)


# Of each: its class, settings, what it is asked for beside the texts, and what it says.
HEADS = {
    "classification": (transformers.BertForSequenceClassification, NAMES,
                       lambda: {"labels": bert.integers("heads.labels", (bert.BATCH,), len(LABELS))}, ["logits"]),
    "tagging": (transformers.BertForTokenClassification, NAMES, lambda: {"labels": tags()}, ["logits"]),
    "answering": (transformers.BertForQuestionAnswering, {},
                  lambda: {"start_positions": torch.tensor([3, 0, 1]), "end_positions": torch.tensor([5, 0, 1])},
                  ["start_logits", "end_logits"]),
}


def one_pass(head, dtype):
    kind, settings, asked, outputs = HEADS[head]
    model = bert.network(dtype, kind, **settings)
    said = model(input_ids=bert.integers("bert.tokens", (bert.BATCH, bert.TOKENS), bert.VOCABULARY),
                 attention_mask=bert.shown(bert.LENGTHS),
                 token_type_ids=bert.integers("bert.segments", (bert.BATCH, bert.TOKENS), 2), **asked())
    said.loss.backward()
    tensors = {name: said[name].detach() for name in outputs} | {"loss": said.loss.detach()[None]}
    return tensors | {"gradient." + name: bert.digest(p.grad) for name, p in model.named_parameters()}


def names_in_file(head):
    kind, settings, _, _ = HEADS[head]
    with tempfile.TemporaryDirectory() as folder:
        bert.network(torch.float32, kind, **settings).save_pretrained(folder)
        with safe_open(pathlib.Path(folder) / "model.safetensors", "pt") as file:
            return {name: file.get_slice(name).get_shape() for name in file.keys()}


def main():
    tensors = {}
    for head in HEADS:
        exact, single = one_pass(head, torch.float64), one_pass(head, torch.float32)
        error = max(((single[name].double() - tensor).norm() / tensor.norm()).item()
                    for name, tensor in exact.items() if not name.startswith("gradient."))
        print(f"{head}: loss {exact['loss'].item():.6f}; float32 differs by {error:.1e}")
        assert error < 1e-5
        tensors |= {f"{head}.{name}": tensor.double().contiguous() for name, tensor in exact.items()}
    metadata = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__,
                "files": json.dumps({head: names_in_file(head) for head in HEADS})}
    path = bert.FOLDER / "bert_heads.safetensors"
    save_file(tensors, path, metadata)
    path.chmod(0o644)


def compare(run, tokenizer, lines, logits):
    model, report = transformers.BertForSequenceClassification.from_pretrained(run, output_loading_info=True)
    print({key: sorted(value) for key, value in report.items()})
    encode = transformers.PreTrainedTokenizerFast(tokenizer_file=str(pathlib.Path(tokenizer) / "tokenizer.json"))
    texts = pathlib.Path(lines).read_text().splitlines()
    with torch.inference_mode():
        theirs = torch.cat([model.eval()(input_ids=torch.tensor([encode(text)["input_ids"]])).logits for text in texts])
    print(f"{len(texts)} texts, logits differ by {(load_file(logits)['logits'] - theirs).abs().max():.1e} at most")


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        compare(*sys.argv[2:])
    else:
        main()
