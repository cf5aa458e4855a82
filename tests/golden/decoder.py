"""Decoders as transformers has them (src/models/decoder.cpp, src/tasks/language_model.cpp): one pass of small networks
with logits, loss and gradients, their config.json and the names in their files, and the losses of a hundred steps of
training. In the environment of bert.py:

    build/transformers/bin/python tests/golden/decoder.py              # writes decoder.safetensors and language_model.json
    build/transformers/bin/python tests/golden/decoder.py compare TESSERA FOLDER... # the program, transformers' files

`compare` lets transformers go on with a text, always by the likeliest token, and says where `tessera generate` differs.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import safe_open, save_file
from torch.nn import functional

import curves
import formula
from bert import digest, integers

FOLDER = pathlib.Path(__file__).resolve().parent
VOCABULARY, POSITIONS, BATCH, TOKENS = 29, 12, 8, 12
GPT2 = dict(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=2, n_inner=None, n_positions=POSITIONS, resid_pdrop=0.0,
            embd_pdrop=0.0, attn_pdrop=0.0)
LLAMA = dict(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=24, max_position_embeddings=POSITIONS)
CASES = {
    "gpt2": lambda: transformers.GPT2Config(**GPT2),
    "gpt2_untied": lambda: transformers.GPT2Config(**GPT2 | dict(n_inner=40, layer_norm_epsilon=1e-3, tie_word_embeddings=False)),
    "llama": lambda: transformers.LlamaConfig(**LLAMA),
    "llama_tied": lambda: transformers.LlamaConfig(
        **LLAMA, head_dim=6, attention_bias=True, mlp_bias=True, rms_norm_eps=1e-3, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 300.0}),
    # Of four pairs one rotates as before, one by something between, and two by a sixth.
    "llama_scaled": lambda: transformers.LlamaConfig(
        **LLAMA, head_dim=8, rope_parameters={"rope_type": "llama3", "rope_theta": 300.0, "factor": 6.0, "low_freq_factor": 1.0,
                                              "high_freq_factor": 4.0, "original_max_position_embeddings": 64}),
}


def network(case, dtype):
    config = CASES[case]()
    config._attn_implementation = "eager"
    result = transformers.AutoModelForCausalLM.from_config(config).to(dtype)
    with torch.no_grad():
        for name, parameter in result.named_parameters():
            parameter.copy_(torch.from_numpy(formula.parameter(name, tuple(parameter.shape))))
    return result


def mean_loss(logits, tokens):
    return functional.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))


def one_pass(case, dtype):
    model = network(case, dtype)
    tokens = integers("decoder.tokens", (2, TOKENS), VOCABULARY)
    logits = model(input_ids=tokens).logits
    loss = mean_loss(logits, tokens)
    loss.backward()
    tensors = {"logits": logits.detach(), "loss": loss.detach()[None]}
    return tensors | {"gradient." + name: digest(p.grad) for name, p in model.named_parameters()}


def files_of(case):
    """config.json, and the names and shapes that save_pretrained writes."""
    with tempfile.TemporaryDirectory() as folder:
        network(case, torch.float32).save_pretrained(folder)
        with safe_open(pathlib.Path(folder) / "model.safetensors", "pt") as file:
            names = {name: file.get_slice(name).get_shape() for name in file.keys()}
        return json.loads((pathlib.Path(folder) / "config.json").read_text()), names


def make_pass():
    metadata = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
    tensors = {}
    for case in CASES:
        exact, single = one_pass(case, torch.float64), one_pass(case, torch.float32)
        errors = {name: ((single[name].double() - t).norm() / t.norm().clamp_min(1e-30)).item() for name, t in exact.items()}
        print(f"{case}: loss {exact['loss'].item():.6f}; float32 differs by {max(errors['logits'], errors['loss']):.1e}")
        assert max(errors["logits"], errors["loss"]) < 1e-5 and exact["logits"].std() > 0.1
        tensors |= {f"{case}/{name}": t.double().contiguous() for name, t in exact.items()}
        config, names = files_of(case)
        metadata[case] = json.dumps({"config": config, "files": names})
    path = FOLDER / "decoder.safetensors"
    save_file(tensors, path, metadata)
    path.chmod(0o644)


def losses(case, precision):
    model = network(case, curves.dtype_of(precision))
    decaying = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decaying, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=2e-3)
    training, result = curves.Training(optimizer, precision), []
    for step in range(curves.STEPS):
        tokens = integers(f"language.{step}", (BATCH, TOKENS), VOCABULARY)
        with training.precision():
            loss = mean_loss(model(input_ids=tokens).logits, tokens)
        result.append(loss.item())
        training.update(loss)
    return {"loss": result}


def make_curves():
    golden = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
    for case in ("gpt2", "llama"):
        golden[case] = curves.golden(case, lambda precision, case=case: losses(case, precision))
    (FOLDER / "language_model.json").write_text(json.dumps(golden, indent=1) + "\n")


def compare(program, *folders):
    prompt = "The trouble with"
    for folder in folders:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder).float().eval()
        given = tokenizer(prompt, return_tensors="pt")
        said = model.generate(**given, max_new_tokens=40, do_sample=False, eos_token_id=None, pad_token_id=0)
        expected = tokenizer.decode(said[0], skip_special_tokens=True)
        own = subprocess.run([program, "generate", folder, "--prompt", prompt, "--tokens", "40",
                              "--temperature", "0"], capture_output=True, text=True, check=True).stdout.removesuffix("\n")
        print(folder, "equal" if own == expected else f"differs:\n  {expected!r}\n  {own!r}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        compare(*sys.argv[2:])
    else:
        make_pass()
        make_curves()
