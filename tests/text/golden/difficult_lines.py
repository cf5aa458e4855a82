"""Lines of text that tokenizers tend to differ in: scripts, emoji, marks, control characters, long words, odd spaces. The
same ones at each call."""

import random
import unicodedata

WORDS = (
    "the of and to in Internationalization café naïve Straße İstanbul Ελλάδα ΣΊΣΥΦΟΣ Привет мир שלום नमस्ते ภาษาไทย 日本語 "
    "한국어 中文 العربية it's we'll I'm don't they'd he'S 'tis rock'n'roll 3.14159 1,000,000 ½ ² Ⅷ ①②③ e-mail "
    "user@example.com https://example.com/a?b=c#d C++20 x=y*z __init__ $100 €50 100% #tag @name ... -- — ‘quote’ "
    "“double” «guillemets» (a) [b] {c} \\n \\t 🙂 👩‍👩‍👧‍👦 🇩🇪 👍🏽 ❤️ [MASK] [CLS] [SEP] [UNK] [PAD] <|endoftext|> <s> </s> ﬁ "
    "Å ﷺ ǆ ㍿ ｆｕｌｌ"
).split(" ")
SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u2003", "\u3000", "\u1680", "\u2028", "\u0085",
          "\x0b", "\x0c", " \n ", "\n  "]
CJK = [(0x4E00, 0x9FFF), (0x3040, 0x30FF), (0xAC00, 0xD7A3), (0x3400, 0x4DBF), (0xF900, 0xFAFF), (0x20000, 0x2FA1D)]
EMOJI = [(0x1F300, 0x1F64F), (0x1F680, 0x1F6FF), (0x2600, 0x27BF), (0x1F1E6, 0x1F1FF), (0x1F3FB, 0x1F3FF),
         (0x200D, 0x200D), (0xFE0F, 0xFE0F)]
MARKS = [(0x300, 0x36F), (0x1AB0, 0x1ABE), (0x20D0, 0x20F0), (0x302A, 0x302F), (0x591, 0x5C7), (0x64B, 0x65F),
         (0xE31, 0xE3A), (0x93C, 0x94D)]
CONTROL = [(0, 31), (0x7F, 0x9F), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x2064), (0xFEFF, 0xFEFF), (0xAD, 0xAD),
           (0xE000, 0xE010), (0xFFF9, 0xFFFD), (0xE0001, 0xE007F)]
PUNCTUATION = [(33, 47), (58, 64), (91, 96), (123, 126), (0x2010, 0x2027), (0x3001, 0x3011), (0xFF01, 0xFF0F),
               (0xA1, 0xBF)]
DIGITS = [(0x660, 0x669), (0x966, 0x96F), (0x2150, 0x2189), (0x1D7CE, 0x1D7FF)]
PLANES = [(0, 0x2FFF), (0x3000, 0xFFFF), (0x10000, 0x1FFFF), (0x20000, 0x3FFFF), (0xE0000, 0x10FFFF)]


class Lines:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.kinds = (
            [self.word] * 8 + [self.ascii] * 2 + [self.letters] * 3 + [self.number] * 2 + [self.anything] * 2
            + [lambda: self.some(CJK, 8), lambda: self.some(EMOJI, 6), lambda: self.some(PUNCTUATION, 4)]
            + [self.marked] * 2 + [lambda: self.some(CONTROL, 1), self.space, self.space, self.long])

    def some(self, ranges, most):
        pick = self.random
        return "".join(chr(pick.randint(*pick.choice(ranges))) for _ in range(pick.randint(1, most)))

    def word(self):
        return self.random.choice(WORDS)

    def ascii(self):
        return self.some([(32, 126)], 30)

    def letters(self):
        return "".join(self.random.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ") for _ in range(self.random.randint(1, 14)))

    def marked(self):
        return self.random.choice("aeiouAEOncsz") + self.some(MARKS, 5)

    def space(self):
        return self.random.choice(SPACES)

    def long(self):
        return self.random.choice(["a", "ab", "x1", "é", "水", "the", "!", "-="]) * self.random.randint(20, 120)

    def number(self):
        plain = str(self.random.randint(0, 10 ** self.random.randint(1, 12)))
        return self.random.choice([plain, "%.3f" % self.random.random(), self.some(DIGITS, 1)])

    def anything(self):
        """Characters that are assigned, of any kind."""
        found = []
        while len(found) < 6:
            character = self.some(PLANES, 1)
            if unicodedata.category(character) not in ("Cs", "Cn"):
                found.append(character)
        return "".join(found)

    def line(self, most):
        parts = []
        for _ in range(self.random.randint(1, most)):
            parts.append(self.random.choice(self.kinds)())
            if self.random.random() < 0.6:
                parts.append(" " if self.random.random() < 0.8 else self.space())
        return "".join(parts)


def difficult_lines(count, seed=1, most=12):
    lines = Lines(seed)
    return [lines.line(most) for _ in range(count)]


def broken_lines(count, seed=1):
    """Bytes that are no UTF-8, each on one line."""
    lines = Lines(seed)
    broken = []
    for _ in range(count):
        line = bytearray(lines.line(8).encode())
        for _ in range(lines.random.randint(1, 4)):
            at = lines.random.randint(0, len(line))
            if lines.random.random() < 0.5:
                line[at:at] = bytes(lines.random.randint(0x80, 0xFF) for _ in range(lines.random.randint(1, 4)))
            else:
                del line[at:at + 1]
        broken.append(bytes(line).replace(b"\n", b" ").replace(b"\r", b" ") + b".")
    return broken
