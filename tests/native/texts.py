"""The corpus the native tokenizer is compared on: the 10,000 lines of ``corpus.jsonl``, one JSON string each.

``python -m tests.native.texts`` makes the file again; a byte that is not UTF-8 is a lone surrogate in it.

Prose in several scripts, code, numbers, emoji with joiners and modifiers, combining marks, white space of
every kind, turn markers, random characters, and bytes that are not UTF-8. The random characters leave out the
marks that are newer than the Unicode version of the library's normaliser (U+0870 to U+089F).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

LINES = 10_000
CORPUS = Path(__file__).with_name("corpus.jsonl")
WORDS = (
    *(
        "the",
        "other",
        "hour",
        "I'll",
        "don't",
        "WE'RE",
        "it's",
        "naïve",
        "Straße",
        "Ελλάδα",
        "Москва",
        "שלום",
    ),
    *(
        "مرحبا",
        "नमस्ते",
        "ภาษาไทย",
        "東京",
        "你好世界",
        "한국어",
        "ひらがな",
        "カタカナ",
        "Zürich",
        "résumé",
        "ﬁne",
        "Ǆ",
    ),
)
MARKERS = (
    *(
        "<|user|>",
        "<|assistant|>",
        "<|endoftext|>",
        "[gMASK]",
        "<sop>",
        "<think>",
        "</think>",
        "<|user",
        "|>",
    ),
    *("<tool_call>", "</tool_call>", "<arg_key>", "<|observation|>", "[MASK]", "<|user|><|user|>"),
)
CODE = (
    "def main(argv: list[str]) -> int:\n\treturn len(argv) ** 2\n",
    'for (size_t i = 0; i < 10; i++) {\r\n    printf("%d\\n", a[i]);\r\n}',
    "SELECT * FROM t WHERE x != 'it''s' -- comment",
    '{"key": [1, 2.5e-3, null], "é": "\\u00e9"}',
    "<html><body class='a'>&nbsp;</body></html>",
    "x=1;y=2;/* ... */ #include <stdio.h>",
)
SPACES = " \t\n\r\x0b\x0c\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\u200b\ufeff"
EMOJI = ("🎈", "👩‍💻", "👍🏽", "🇩🇪", "❤️", "1️⃣", "🏴󠁧󠁢󠁳󠁣󠁴󠁿")
MARKS = "\u0301\u0308\u0323\u0327\u05b0\u093c\u0e34\u1ab0\u20dd\u3099"
JAMO = "\u1100\u1161\u11a8\uac00\uac01"
BLOCKS = (
    *(
        (0x20, 0x7F),
        (0xA0, 0x250),
        (0x250, 0x600),
        (0x600, 0x870),
        (0x8A0, 0xE00),
        (0xE00, 0x2000),
        (0x2000, 0x2C00),
    ),
    *((0x3000, 0x3200), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xFB00, 0xFFFD), (0x10000, 0x10400)),
    *((0x1D400, 0x1D800), (0x1F300, 0x1F700), (0x20000, 0x20100)),
)


def _prose(choose: random.Random) -> bytes:
    words = [choose.choice(WORDS) for _ in range(choose.randint(1, 20))]
    return choose.choice((" ", "  ", ", ", "\n")).join(words).encode()


def _numbers(choose: random.Random) -> bytes:
    digits = ("0123456789", "٠١٢٣٤", "０１２３", "½¾²", "ⅣⅫ", "一二三")
    return "".join(
        choose.choice(choose.choice(digits) + " .,-") for _ in range(choose.randint(1, 30))
    ).encode()


def _code(choose: random.Random) -> bytes:
    return (choose.choice(CODE) * choose.randint(1, 2)).encode()


def _emoji(choose: random.Random) -> bytes:
    parts = [choose.choice((*EMOJI, " ", "a", choose.choice(MARKS))) for _ in range(choose.randint(1, 12))]
    return "".join(parts).encode()


def _spaces(choose: random.Random) -> bytes:
    parts = [choose.choice(SPACES) * choose.randint(1, 4) for _ in range(choose.randint(1, 8))]
    return "".join(part + choose.choice(("", "a", "1", ".", "'s")) for part in parts).encode()


def _marked(choose: random.Random) -> bytes:
    parts = [choose.choice((*MARKERS, *WORDS, " ", "\n")) for _ in range(choose.randint(1, 12))]
    return "".join(parts).encode()


def _combining(choose: random.Random) -> bytes:
    letters = "aeiouyAEOUncsdגהकสกか" + JAMO
    parts = [
        choose.choice(letters) + "".join(choose.choice(MARKS) for _ in range(choose.randint(0, 3)))
        for _ in range(12)
    ]
    return "".join(parts).encode()


def _random_characters(choose: random.Random) -> bytes:
    first, end = choose.choice(BLOCKS)
    blocks = ((first, end), choose.choice(BLOCKS))
    points = [choose.randrange(*choose.choice(blocks)) for _ in range(choose.randint(1, 40))]
    return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000).encode()


def _broken(choose: random.Random) -> bytes:
    data = bytearray(_prose(choose))
    for _ in range(choose.randint(1, 3)):
        data.insert(choose.randrange(len(data) + 1), choose.choice(b"\x80\xbf\xc0\xc3\xed\xf4\xf8\xff"))
    return bytes(data)


def _random_bytes(choose: random.Random) -> bytes:
    return choose.randbytes(choose.randint(0, 20))


_KINDS: tuple[Callable[[random.Random], bytes], ...] = (
    *(_prose, _numbers, _code, _emoji, _spaces, _marked, _combining, _random_characters),
    *(_random_characters, _broken, _random_bytes),
)


def compose() -> list[bytes]:
    """The texts. What is not UTF-8 comes twice: as it is, and repaired with replacement characters."""
    choose = random.Random(20)
    texts: list[bytes] = []
    while len(texts) < LINES:
        text = choose.choice(_KINDS)(choose)
        texts.append(text)
        repaired = text.decode("utf-8", "replace").encode()
        if repaired != text:
            texts.append(repaired)
    return texts[:LINES]


def corpus() -> list[bytes]:
    """The committed texts."""
    return [json.loads(line).encode("utf-8", "surrogateescape") for line in CORPUS.open(encoding="ascii")]


if __name__ == "__main__":
    CORPUS.write_text(
        "".join(json.dumps(text.decode("utf-8", "surrogateescape")) + "\n" for text in compose()),
        encoding="ascii",
    )
