"""Training steps of language networks in PyTorch: transformers' BERT, GPT-2 and Llama, torch's own Transformer, and Transformer-XL.

Rows are full but in the case of packed rows, so that nobody else needs a mask of attention, whose fastest kernels are taken.
Dropout is where our networks have it: of attention's weights only where the case says so. Tokens are drawn anew; what a step takes does not depend on them.
"""

import functools
import math
import random

import torch
import transformers
from torch import nn
from torch.nn import functional as F

from . import token_shards

MASKED = 0.15
SMOOTHING = 0.1


def tokens(case, count, length):
    return torch.randint(5, case["vocabulary"], (count, length), generator=torch.Generator().manual_seed(0)).to(case["device"])


class Pretraining(nn.Module):
    """BERT's two losses; as ours, of all places it decodes those that are masked."""

    def __init__(self, case, **sizes):
        super().__init__()
        config = transformers.BertConfig(
            vocab_size=case["vocabulary"], attention_probs_dropout_prob=case["attention_dropout"], attn_implementation="sdpa", **sizes)
        self.network = transformers.BertForPreTraining(config)

    def forward(self, rows, places, right, follows, shown=None):
        encoded, pooled = self.network.bert(rows, attention_mask=shown, return_dict=False)[:2]
        words, follow = self.network.cls(encoded.flatten(0, 1)[places], pooled)
        return F.cross_entropy(words, right) + F.cross_entropy(follow, follows)

    @staticmethod
    def batch(case):
        rows = tokens(case, case["batch"], case["tokens"])
        if case["packed"]:
            return Pretraining.padded(case, rows)
        masked = max(1, round(MASKED * case["tokens"]))
        order = torch.rand(rows.shape, device=rows.device).argsort(1)[:, :masked]
        places = (order + torch.arange(len(rows), device=rows.device)[:, None] * case["tokens"]).flatten()
        return rows, places, rows.flatten()[places], torch.arange(len(rows), device=rows.device) % 2

    @staticmethod
    def padded(case, rows):
        """A text to a row, of the lengths that ours are drawn with; gaps are where it is."""
        draw = random.Random(case["tokens"])
        lengths = [token_shards.drawn_length(draw, case["tokens"]) for _ in range(len(rows))]
        places = [row * case["tokens"] + place for row, length in enumerate(lengths)
                  for place in draw.sample(range(length), max(1, round(MASKED * length)))]
        places = torch.tensor(places, device=rows.device)
        shown = (torch.arange(case["tokens"])[None] < torch.tensor(lengths)[:, None]).long().to(rows.device)
        return rows, places, rows.flatten()[places], torch.arange(len(rows), device=rows.device) % 2, shown


class Decoder(nn.Module):
    """A network of transformers that says of each token which one is next."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    @classmethod
    def gpt2(cls, case):
        return cls(transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=case["vocabulary"], n_positions=case["tokens"], n_embd=1024, n_layer=24, n_head=16, attn_pdrop=0.0,
            bos_token_id=None, eos_token_id=None, use_cache=False, attn_implementation="sdpa")))

    @classmethod
    def llama(cls, case):
        return cls(transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=case["vocabulary"], max_position_embeddings=case["tokens"], hidden_size=1024, num_hidden_layers=24,
            num_attention_heads=16, num_key_value_heads=4, intermediate_size=2816, tie_word_embeddings=True,
            bos_token_id=None, eos_token_id=None, use_cache=False, attn_implementation="sdpa")))

    def forward(self, rows):
        logits = self.network.lm_head(self.network.base_model(rows)[0][:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())

    @staticmethod
    def batch(case):
        return (tokens(case, case["batch"], case["tokens"]),)


class Translator(nn.Module):
    """The big size of Vaswani et al. 2017: dropout of 0.3, one table of tokens for both sides and the output."""

    WIDTH, HEADS, INNER, LAYERS, DROPOUT = 1024, 16, 4096, 6, 0.3

    def __init__(self, case):
        super().__init__()
        self.table = nn.Embedding(case["vocabulary"], self.WIDTH)
        nn.init.normal_(self.table.weight, std=self.WIDTH**-0.5)
        self.dropout = nn.Dropout(self.DROPOUT)
        settings = dict(d_model=self.WIDTH, nhead=self.HEADS, dim_feedforward=self.INNER, dropout=self.DROPOUT, batch_first=True)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**settings), self.LAYERS, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**settings), self.LAYERS)
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            if isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
                module.dropout.p = 0.0  # between the two linear layers
        half = torch.arange(self.WIDTH // 2) * -(math.log(10000) / (self.WIDTH // 2 - 1))
        angles = torch.arange(case["tokens"])[:, None] * half.exp()
        self.register_buffer("places", torch.cat([angles.sin(), angles.cos()], 1))

    def embedded(self, rows):
        return self.dropout(self.table(rows) * math.sqrt(self.WIDTH) + self.places)

    def forward(self, source, target, right):
        encoded = self.encoder(self.embedded(source))
        later = nn.Transformer.generate_square_subsequent_mask(target.shape[1], target.device)
        decoded = self.decoder(self.embedded(target), encoded, tgt_mask=later, tgt_is_causal=True)
        return F.cross_entropy(F.linear(decoded, self.table.weight).flatten(0, 1), right.flatten(), label_smoothing=SMOOTHING)

    @staticmethod
    def batch(case):
        source, target = (tokens(case, case["batch"], case["tokens"]) for _ in range(2))
        return source, target, target.roll(-1, 1)


def shifted(scores):
    """[..., queries, distances], the farthest first -> [..., queries, keys]: each row moves by its place, as in the paper's appendix B."""
    *outer, queries, keys = scores.shape
    return F.pad(scores, (1, 0)).view(*outer, keys + 1, queries)[..., 1:, :].reshape(scores.shape)


class TransformerXl(nn.Module):
    """Of NVIDIA's base size (Dai et al. 2019): what is kept of the segment before is attended to, positions are distances."""

    WIDTH, HEADS, INNER, LAYERS, MEMORY, DROPOUT = 512, 8, 2048, 16, 192, 0.1

    def __init__(self, case):
        super().__init__()
        self.table = nn.Embedding(case["vocabulary"], self.WIDTH)
        nn.init.normal_(self.table.weight, std=0.02)
        self.bias = nn.Parameter(torch.zeros(case["vocabulary"]))
        of_head = self.WIDTH // self.HEADS
        self.of_content, self.of_place = (nn.Parameter(torch.zeros(self.HEADS, 1, of_head)) for _ in range(2))
        self.layers = nn.ModuleList(self.layer() for _ in range(self.LAYERS))
        self.dropout = nn.Dropout(self.DROPOUT)
        keys = self.MEMORY + case["tokens"]
        angles = torch.arange(keys - 1, -1, -1.0)[:, None] * 10000.0 ** (-torch.arange(0, self.WIDTH, 2) / self.WIDTH)
        self.register_buffer("places", torch.cat([angles.sin(), angles.cos()], 1))
        later = torch.ones(case["tokens"], keys, dtype=torch.bool).triu(1 + self.MEMORY)
        self.register_buffer("hidden", torch.zeros(later.shape).masked_fill(later, -math.inf))
        self.register_buffer("memory", torch.zeros(self.LAYERS, case["batch"], self.MEMORY, self.WIDTH))

    def layer(self):
        linear = functools.partial(nn.Linear, self.WIDTH, self.WIDTH, bias=False)
        return nn.ModuleDict({
            "query": linear(), "pair": nn.Linear(self.WIDTH, 2 * self.WIDTH, bias=False), "place": linear(), "end": linear(),
            "norm": nn.LayerNorm(self.WIDTH), "inner": nn.Linear(self.WIDTH, self.INNER), "outer": nn.Linear(self.INNER, self.WIDTH),
            "last": nn.LayerNorm(self.WIDTH)})

    def attended(self, layer, x, memory):
        by_head = lambda t: t.unflatten(-1, (self.HEADS, -1)).transpose(-3, -2)
        key, value = map(by_head, layer["pair"](torch.cat([memory, x], 1)).chunk(2, -1))
        query, place = by_head(layer["query"](x)), by_head(layer["place"](self.places))
        scale = query.shape[-1] ** -0.5
        bias = shifted((query + self.of_place) @ place.transpose(-1, -2)) * scale + self.hidden
        y = F.scaled_dot_product_attention((query + self.of_content).to(key.dtype), key, value, attn_mask=bias.to(key.dtype), scale=scale)
        return layer["end"](y.transpose(1, 2).flatten(2))

    def forward(self, rows, right):
        x, kept = self.dropout(self.table(rows) * math.sqrt(self.WIDTH)), []
        for layer, memory in zip(self.layers, self.memory):
            kept.append(torch.cat([memory, x], 1)[:, -self.MEMORY:].detach())
            x = layer["norm"](x + self.dropout(self.attended(layer, x, memory)))
            x = layer["last"](x + self.dropout(layer["outer"](self.dropout(layer["inner"](x).relu()))))
        self.memory.copy_(torch.stack(kept))
        return F.cross_entropy(F.linear(self.dropout(x), self.table.weight, self.bias).flatten(0, 1), right.flatten())

    @staticmethod
    def batch(case):
        rows = tokens(case, case["batch"], case["tokens"])
        return rows, rows.roll(-1, 1)


LARGE = dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
NETWORKS = {
    "bert_base": Pretraining,
    "bert_large": functools.partial(Pretraining, **LARGE),
    "decoder_350m": Decoder.gpt2,
    "llama_300m": Decoder.llama,
    "transformer_big": Translator,
    "transformer_xl_base": TransformerXl,
}


def training(case):
    """(network that gives the loss of a batch, that batch, optimizer), as torch_peer.Training has them."""
    network = NETWORKS[case["recipe"]](case).to(case["device"]).train()
    optimizer = torch.optim.Adam if isinstance(network, (Translator, TransformerXl)) else torch.optim.AdamW
    return network, network.batch(case), optimizer(network.parameters(), lr=1e-4, fused=True)
