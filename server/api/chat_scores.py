"""Which records of a chat generation belong to the message's content, and what each of them shows (http.md
§9.3).

Guarantees: records of reasoning and of reasoning markers are left out, those that straddle a stop sequence
too; of a record that straddles the end of the reasoning the part in the content is shown. So the shown
texts join to the content as the reasoning split gives it. Records without text stay where the content is
under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from server.logprobs import Records, record_texts, surviving
from server.text import Thinking
from server.text.reasoning import ReasoningSplitter


def content_texts(
    records: Records, removed: Sequence[tuple[int, int | None]], thinking: Thinking
) -> list[str | None]:
    """One text a record, None for one that is no part of the content.

    ``removed`` is the pipeline's, ``thinking`` what its reasoning split had to do.
    """
    texts = record_texts(records)
    survives = surviving(records, b"", removed)
    if thinking is Thinking.ABSENT:
        return [text if kept else None for text, kept in zip(texts, survives, strict=True)]
    tracer = _Tracer(len(texts), inside=thinking is Thinking.ON)
    place = 0
    gaps = deque(removed)
    for index, text in enumerate(texts):
        tracer.begin(index)
        for character in text:
            while gaps and gaps[0][1] is not None and gaps[0][1] <= place:
                gaps.popleft()
            if not gaps or place < gaps[0][0]:
                tracer.feed(index, character)
            place += 1
    shown = tracer.finish()
    return [
        None if not survives[index] or (text and not shown[index]) or (not text and tracer.inside_at[index])
        else shown[index]
        for index, text in enumerate(texts)
    ]  # fmt: skip


class _Tracer:
    """Follows every character through the reasoning split, which deletes markers and keeps the order of all
    else.
    """

    def __init__(self, count: int, *, inside: bool) -> None:
        self._splitter = ReasoningSplitter(inside)
        self._under_way: deque[tuple[int, str]] = deque()
        self._shown: list[list[str]] = [[] for _ in range(count)]
        self.inside_at = [False] * count
        """Whether the record began inside the reasoning."""

    def begin(self, index: int) -> None:
        self.inside_at[index] = self._splitter.inside

    def feed(self, index: int, character: str) -> None:
        self._under_way.append((index, character))
        self._settle(self._splitter.feed(character))
        if self._splitter.idle:
            self._under_way.clear()  # a marker was completed and deleted

    def finish(self) -> list[str]:
        """The content characters of each record."""
        self._settle(self._splitter.finish())
        return ["".join(characters) for characters in self._shown]

    def _settle(self, stretches: Iterable[tuple[bool, str]]) -> None:
        for is_reasoning, text in stretches:
            for _ in text:
                index, character = self._under_way.popleft()
                if not is_reasoning:
                    self._shown[index].append(character)
