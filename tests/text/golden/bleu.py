"""BLEU as sacreBLEU counts it (src/text/bleu.cpp): the words of difficult lines, and the scores of corpora. It needs sacrebleu
2.6.0 (pip install sacrebleu==2.6.0):

    python3 tests/text/golden/bleu.py    # writes bleu.json
"""

import json
import pathlib

import sacrebleu
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

LINES = [
    "", " ", "a", "The cat sat on the mat.", "It costs $1,000.50, or 3.14-2.71 (about).", "e.g. U.S.A., i.e. 1.2.3",
    "&quot;quoted&quot; &amp; &lt;tag&gt; &amp;lt;", "10-20 -5 a-b 7- -", "under_score back`tick [brackets] {braces}~^|\\",
    "Größe: 5,5 m² – „so“ »etwas« …", "äöü.ß,é", "no break\u00a0space\u2009thin\u3000wide", "line\nbreak hy-\nphen <skipped>kept",
    "..,, ,.1.,2", "'single' don't it's", "a/b@c.de;x:y=z?!", "%s: %d #1 *star* a+b", "日本語。テスト、1.5倍", "1. 2, 3.x,y.4",
    "tab\tand\rreturn\x1cthere", "end.",
]
CORPORA = {
    "equal": ([line for line in LINES if line.strip()],) * 2,
    "near": (["the cat sat on a mat .", "Die Datei konnte nicht geöffnet werden.", "1,000 files"],
             ["the cat sat on the mat .", "Die Datei kann nicht geöffnet werden.", "1,000 files were found"]),
    "long": (["a b c d e f g h i", "x y z"], ["a b c d", "x y z z"]),
    "repeated": (["the the the the the the the"], ["the cat is on the mat"]),
    "no_runs_of_four": (["a b c x y z"], ["a b c d e f"]),
    "no_pairs": (["a x b y c"], ["a b c d e"]),
    "short": (["a b c"], ["a b c"]),
    "nothing_right": (["x y z w v"], ["a b c d e"]),
    "nothing_said": (["", ""], ["a b c d", "e"]),
}


def main():
    tokenizer = Tokenizer13a()
    words = [[line, tokenizer(line.rstrip()).split()] for line in LINES]
    scores = {name: {"said": said, "right": right, "score": sacrebleu.corpus_bleu(said, [right]).score}
              for name, (said, right) in CORPORA.items()}
    print({name: round(entry["score"], 2) for name, entry in scores.items()})
    golden = {"sacrebleu": sacrebleu.__version__, "words": words, "corpora": scores}
    (pathlib.Path(__file__).parent / "bleu.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
