"""Training steps of language networks in PyTorch: transformers' BERT and GPT-2, and torch's own Transformer.

Rows are full, so that nobody needs a mask of attention, whose fastest kernels are taken. Dropout is where our networks have it:
not of attention's weights. Tokens are drawn anew; what a step takes does not depend on them.
"""

import functools
import math

import torch
import transformers
from torch import nn
from torch.nn import functional as F

MASKED = 0.15
SMOOTHING = 0.1


def tokens(case, count, length):
    return torch.randint(5, case["vocabulary"], (count, length), generator=torch.Generator().manual_seed(0)).to(case["device"])


class Pretraining(nn.Module):
    """BERT's two losses; as ours, of all places it decodes those that are masked."""

    def __init__(self, case, **sizes):
        super().__init__()
        config = transformers.BertConfig(vocab_size=case["vocabulary"], attention_probs_dropout_prob=0.0, attn_implementation="sdpa", **sizes)
        self.network = transformers.BertForPreTraining(config)

    def forward(self, rows, places, right, follows):
        encoded, pooled = self.network.bert(rows, return_dict=False)[:2]
        words, follow = self.network.cls(encoded.flatten(0, 1)[places], pooled)
        return F.cross_entropy(words, right) + F.cross_entropy(follow, follows)

    @staticmethod
    def batch(case):
        rows = tokens(case, case["batch"], case["tokens"])
        masked = max(1, round(MASKED * case["tokens"]))
        order = torch.rand(rows.shape, device=rows.device).argsort(1)[:, :masked]
        places = (order + torch.arange(len(rows), device=rows.device)[:, None] * case["tokens"]).flatten()
        return rows, places, rows.flatten()[places], torch.arange(len(rows), device=rows.device) % 2


class Decoder(nn.Module):
    def __init__(self, case):
        super().__init__()
        config = transformers.GPT2Config(
            vocab_size=case["vocabulary"], n_positions=case["tokens"], n_embd=1024, n_layer=24, n_head=16, attn_pdrop=0.0,
            bos_token_id=None, eos_token_id=None, use_cache=False, attn_implementation="sdpa")
        self.network = transformers.GPT2LMHeadModel(config)

    def forward(self, rows):
        logits = self.network.lm_head(self.network.transformer(rows)[0][:, :-1])
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


LARGE = dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
NETWORKS = {
    "bert_base": Pretraining,
    "bert_large": functools.partial(Pretraining, **LARGE),
    "decoder_350m": Decoder,
    "transformer_big": Translator,
}


def training(case):
    """(network that gives the loss of a batch, that batch, optimizer), as torch_peer.Training has them."""
    network = NETWORKS[case["recipe"]](case).to(case["device"]).train()
    optimizer = torch.optim.Adam if isinstance(network, Translator) else torch.optim.AdamW
    return network, network.batch(case), optimizer(network.parameters(), lr=1e-4, fused=True)
