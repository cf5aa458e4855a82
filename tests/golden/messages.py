"""The training of recipes/messages.toml in PyTorch, by torch's own layers: what it reaches on the messages that are held out,
beside what `tessera eval` and `tessera translate --beams 1` say of a run. It needs sacrebleu 2.6.0 and tokenizers:

    bench/.venv/bin/python tests/golden/messages.py build/messages/shards [SEED]    # minutes
"""

import json
import math
import pathlib
import random
import sys
import time

import numpy as np
import sacrebleu
import tokenizers
import torch
from torch import nn

from transformer import Network, mean_loss

LENGTHS, LONGEST_ROWS, TEST_SHARE = (8, 16, 24, 48), 32, 0.02
EPOCHS, RATE, WARMUP, INITIAL, CLIP, SMOOTHING, DROPOUT = 5, 3e-3, 200, 0.04, 1.0, 0.1, 0.1
BEGIN, END, PADDING = 1, 2, 0


def read_shards(folder):
    """(source, target) tokens of all documents; docs/text.md has the format."""
    pairs = []
    for shard in json.loads((folder / "tokens.json").read_text())["shards"]:
        data = (folder / shard["file"]).read_bytes()
        count, documents = np.frombuffer(data, "<u8", 2, 16)
        tokens = np.frombuffer(data, "<u2", int(count), 64).astype(np.int64)
        places = np.frombuffer(data, "<u8", 2 * int(documents) + 1, 64 + (2 * int(count) + 7) // 8 * 8).astype(np.int64)
        fields = [tokens[first:last] for first, last in zip(places, places[1:])]
        pairs += zip(fields[::2], fields[1::2])
    return pairs


def rows(pairs):
    """source [N, length], its lengths, target [N, length + 1] from its begin to its end, and theirs."""
    length = next(length for length in LENGTHS if length > max(max(map(len, pair)) for pair in pairs))
    source, target = (torch.full((len(pairs), length + more), PADDING) for more in (0, 1))
    for row, (text, translation) in enumerate(pairs):
        source[row, : len(text) + 1] = torch.tensor([*text, END])
        target[row, : len(translation) + 2] = torch.tensor([BEGIN, *translation, END])
    return source, torch.tensor([len(text) + 1 for text, _ in pairs]), target, torch.tensor([len(t) + 2 for _, t in pairs])


def batches(pairs, drop_last):
    for below, length in zip((0, *LENGTHS), LENGTHS):
        members = [pair for pair in pairs if below <= max(map(len, pair)) < length]
        size = LONGEST_ROWS * LENGTHS[-1] // length
        for first in range(0, len(members), size):
            if not drop_last or first + size <= len(members):
                yield members[first : first + size]


def network(vocabulary):
    """With dropout where fairseq's base has it, and the same starting weights as ours but for what is drawn."""
    model = Network(True, vocabulary, 128, 4, 512, (2, 2), DROPOUT)
    for module in model.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
            nn.init.xavier_uniform_(module.in_proj_weight)
            nn.init.xavier_uniform_(module.out_proj.weight)
        if isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
            module.dropout.p = 0.0
            for layer in (module.linear1, module.linear2):
                layer.reset_parameters()
    nn.init.normal_(model.table.weight, std=128**-0.5)
    return model


def factor(step):
    if step >= WARMUP:
        return math.sqrt(WARMUP / step)
    return INITIAL + (1 - INITIAL) * (step + 1) / WARMUP


def train(model, pairs):
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    for epoch in range(EPOCHS):
        random.shuffle(pairs)
        epoch_batches = list(batches(pairs, True))
        random.shuffle(epoch_batches)
        for members in epoch_batches:
            source, lengths, target, target_lengths = rows(members)
            loss = mean_loss(model(source, lengths, target[:, :-1]), target, target_lengths, SMOOTHING)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch + 1}: {time.process_time():.0f} s of the processor", flush=True)


def measure(model, pairs, decode):
    total = count = hits = 0
    said, right = [], []
    for members in batches(pairs, False):
        source, lengths, target, target_lengths = rows(members)
        logits = model(source, lengths, target[:, :-1])
        places = int((target_lengths - 1).sum())
        total += mean_loss(logits, target, target_lengths, 0.0).item() * places
        counts = torch.arange(target.shape[1] - 1)[None, :] < target_lengths[:, None] - 1
        hits += int((logits.argmax(-1) == target[:, 1:])[counts].sum())
        count += places
        text = torch.full((len(members), 1), BEGIN)
        for _ in range(2 * source.shape[1] - 1):  # always the likeliest token
            text = torch.cat([text, model(source, lengths, text)[:, -1].argmax(-1, keepdim=True)], 1)
            if (text == END).any(1).all():
                break
        for row, (_, translation) in zip(text.tolist(), members):
            end = row.index(END) if END in row else len(row)
            said.append(decode(row[1:end]))
            right.append(decode(translation.tolist()))
    bleu = sacrebleu.corpus_bleu(said, [right]).score
    return {"bleu": bleu, "perplexity": math.exp(total / count), "accuracy": hits / count, "texts": len(said)}


def main(folder, seed=1):
    torch.manual_seed(int(seed))
    random.seed(int(seed))
    folder = pathlib.Path(folder)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer/tokenizer.json"))
    pairs = read_shards(folder)
    parts = {True: [], False: []}
    for place, pair in enumerate(pairs):
        if max(map(len, pair)) < LENGTHS[-1]:
            parts[math.floor((place + 1) * TEST_SHARE) > math.floor(place * TEST_SHARE)].append(pair)
    model = network(json.loads((folder / "tokens.json").read_text())["vocabulary"])
    train(model.train(), parts[False])
    with torch.no_grad():
        print(json.dumps(measure(model.eval(), parts[True], tokenizer.decode)))


if __name__ == "__main__":
    main(*sys.argv[1:])
