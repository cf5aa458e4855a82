"""Decoders of transformers: makes one in a folder, as its users have them, or says how fast it goes on with a text.

`python -m tessera_bench.transformers_peer JSON`, with what bench/generation gives; the answer is a line of JSON on stdout.
"""

import glob
import json
import pathlib
import sys
import sysconfig
import time

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

POSITIONS = 1024
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def gpt2(**sizes):
    return lambda vocabulary: transformers.GPT2Config(
        vocab_size=vocabulary, n_positions=POSITIONS, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=None, eos_token_id=None, **sizes)


# Parameters without the vocabulary: 85 million, 303 million and a billion.
CONFIGURATIONS = {
    "gpt2-small": gpt2(),
    "gpt2-medium": gpt2(n_embd=1024, n_layer=24, n_head=16),
    "llama-1b": lambda vocabulary: transformers.LlamaConfig(
        vocab_size=vocabulary, hidden_size=2048, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, intermediate_size=8192,
        max_position_embeddings=POSITIONS, bos_token_id=None, eos_token_id=None),
}


def tokenizer_of(vocabulary):
    """Pairs of bytes as they are frequent in Python's own library."""
    found = Tokenizer(models.BPE())
    found.pre_tokenizer, found.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    files = sorted(glob.glob(f"{sysconfig.get_path('stdlib')}/*.py"))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    found.train(files, trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False))
    return found


def make(told):
    """A network of random weights of a seed, and its tokenizer."""
    tokenizer = tokenizer_of(told["vocabulary"])
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(CONFIGURATIONS[told["network"]](tokenizer.get_vocab_size())).float()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.05)
    model.save_pretrained(told["folder"])
    tokenizer.save(str(pathlib.Path(told["folder"], "tokenizer.json")))
    return {"parameters": sum(parameter.numel() for parameter in model.parameters())}


def generate(told):
    """What each call takes, and where another text parts from this one."""
    tokenizer = Tokenizer.from_file(str(pathlib.Path(told["folder"], "tokenizer.json")))
    model = transformers.AutoModelForCausalLM.from_pretrained(told["folder"]).to(told["device"], TYPES[told["precision"]]).eval()
    given = torch.tensor([tokenizer.encode(told["prompt"]).ids], device=told["device"])
    cache = {"cache_implementation": "static"} if told["compiled"] else {}
    seconds = []
    with torch.no_grad():
        for _ in range(1 + told["rounds"]):  # the first compiles
            begin = time.perf_counter()
            said = model.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=told["tokens"], min_new_tokens=told["tokens"],
                                  do_sample=False, pad_token_id=0, **cache)[0]
            tokenizer.decode(said.tolist())  # as the program, whose tokens come as text
            seconds.append(time.perf_counter() - begin)
        return {"seconds": seconds[1:], **parting(model, tokenizer, said, told["other"])}


def parting(model, tokenizer, said, other):
    """How many tokens another text shares, and the lead of the likeliest next one, in standard deviations of the logits."""
    tokens = said.tolist()
    shared = next((n for n in range(len(tokens), 0, -1) if other.startswith(tokenizer.decode(tokens[:n]))), 0)
    if shared in (0, len(tokens)):
        return {"shared": shared, "lead": None}
    logits = model(said[None, :shared]).logits[0, -1].float()
    first, second = logits.topk(2).values.tolist()
    return {"shared": shared, "lead": (first - second) / logits.std().item()}


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    print(json.dumps({"make": make, "generate": generate}[told["do"]](told)))
