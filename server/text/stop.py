"""The stop filter: text up to the first stop sequence, and nothing after it (http.md §15).

Guarantees, for any splitting of the same input:

* The match is the one that starts earliest; among those that start together the longest. Text before it is
  released, the match and everything after it is dropped.
* Held back is only a suffix of the input that is a proper prefix of some stop sequence, or which a longer
  match that starts earlier could still swallow. An unfinished prefix is released by `finish`.
* With `ignore_leading`, a match preceded by nothing but blanks is removed together with them and scanning
  goes on; the first other text ends this tolerance.
* Time is linear in the input, also for stop sequences that overlap themselves.

`removed` tells in code points of the input what did not survive: the account the log probabilities need
(§9.3).

Inside is an Aho-Corasick automaton whose nodes are made when text first reaches them, so that a stop
sequence of megabytes costs nothing until the text really starts to spell it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import heappop, heappush

_WHOLE_SEARCH_MIN = 256
"""Pieces of this many characters are searched with `str.find` instead of stepping through them."""
_LONGEST_TOLD = 1024
"""Code points that may be held where `StopFilter.place` tells where it stands."""
_LONGEST_IN_RUN = 64
"""The longest stop that is tried at each place of a run of leading matches."""


class _Node:
    """A prefix shared by `members`; `text[:depth]` spells it for any member `text`."""

    __slots__ = (
        "children",
        "complete",
        "depth",
        "fail",
        "following",
        "leaf",
        "members",
        "output",
        "shorter",
        "spelling",
    )

    def __init__(self, depth: int, members: tuple[str, ...], fail: _Node | None) -> None:
        self.depth = depth
        self.members = members
        self.children: dict[str, _Node] = {}
        self.fail = fail
        self.complete = next((stop for stop in members if len(stop) == depth), None) if depth else None
        """The stop sequence that is exactly this prefix."""
        self.output: str | None = self.complete if self.complete is not None or fail is None else fail.output
        """The longest stop sequence that ends here."""
        self.shorter: _Node | None = None
        """The longest stop sequence that ends here too and is shorter than this prefix, as its node."""
        if fail is not None:
            self.shorter = fail if fail.complete is not None else fail.shorter
        self.following = "".join({stop[depth] for stop in members if len(stop) > depth})
        """The characters that lead on to a child, made already or not."""
        self.leaf = not self.following
        self.spelling = members[0] if members else ""

    def prefix(self, length: int) -> str:
        return self.spelling[:length]


StopPlace = tuple[_Node, bool]
"""All that tells what a `StopFilter` without a match does next with text: the held text, as the node that
spells it, and `leading`."""


class StopFilter:
    """Decoded text in, surviving text out."""

    __slots__ = (
        "_best",
        "_blank_start",
        "_blanks",
        "_find_first",
        "_found",
        "_longest",
        "_node",
        "_position",
        "_refining",
        "_root",
        "_starts",
        "_stops",
        "leading",
        "matched",
        "removed",
    )

    def __init__(self, stops: Sequence[str], ignore_leading: bool = False) -> None:
        """`stops`: non-empty strings, any number of them; no stops makes the filter transparent."""
        self.removed: list[tuple[int, int | None]] = []
        """Code point ranges of the input that were dropped, in order; the end None means everything from
        there on."""
        self._stops = tuple(dict.fromkeys(stops))
        self._root = _Node(0, self._stops, None)
        self._node = self._root
        self._position = 0  # code points consumed
        self._best: tuple[int, int, str] | None = None  # start, end, stop: the best match so far
        self._found: dict[int, str] = {}  # while leading: matches not removed yet, the longest of each start
        self._starts: list[int] = []  # a heap of their starts
        self.leading = ignore_leading and bool(self._stops)
        """True while matches are removed and blanks wait for what follows them."""
        self._blanks: list[str] = []
        self._blank_start = 0
        self.matched: str | None = None
        """The stop sequence that ended the text. Set as soon as the surviving text is settled; input fed
        after that can only turn it into a longer sequence with the same start."""
        self._refining = False
        self._longest = max(map(len, self._stops), default=0)
        first = "".join(re.escape(char) for char in sorted({stop[0] for stop in self._stops}))
        self._find_first = re.compile(f"[{first}]" if first else r"(?!)", re.DOTALL).search

    @property
    def idle(self) -> bool:
        """True when nothing is held and nothing has matched, so that text without any stop's first character
        passes unchanged."""
        return self._node is self._root and self.matched is None and not self.leading

    @property
    def place(self) -> StopPlace | None:
        """Where the filter stands; None when a match is found or waits for a better one, or when much text
        is held."""
        node = self._node
        if node.depth > _LONGEST_TOLD or self._best is not None or self.matched is not None or self._starts:
            return None
        return node, self.leading

    @property
    def over(self) -> bool:
        """A stop matched and no longer one can: nothing that follows counts."""
        return self.matched is not None and not self._refining

    @property
    def waits_for_text(self) -> bool:
        """True while `leading` and nothing is held but blanks."""
        return self.leading and self._node is self._root

    def stand(self, place: StopPlace) -> None:
        """Go to a place it has been at since its `account` last changed."""
        self._node = place[0]

    @property
    def account(self) -> tuple[int, int]:
        """Changes whenever something is removed, or waits to be, that no place tells."""
        return len(self.removed), len(self._blanks)

    def skip(self, length: int) -> None:
        """Account for `length` code points that went past; where they led `stand` is told."""
        self._position += length

    def wait_with(self, text: str) -> bool:
        """Whether `text`, in which no stop begins, is blanks; while `leading` they then wait for what follows
        them. Its code points are still to be accounted for."""
        if not text.isspace():
            return False
        self._blanks.append(text)
        return True

    def feed(self, text: str) -> str:
        """The part of the text so far that is now known to survive and was not returned before."""
        if self.matched is not None:
            self._refine(text)
            return ""
        if not self.leading:
            return self._step(text) if len(text) == 1 and self._best is None else self._feed_plain(text)
        if self._node is self._root and self._find_first(text) is None and self.wait_with(text):
            self._position += len(text)
            return ""
        released: list[str] = []
        place = self._skip_leading(text, released) if len(text) >= _WHOLE_SEARCH_MIN else 0
        place = self._feed_leading(text, place, released)
        if place < len(text):
            released.append(self.feed(text[place:]))
        return "".join(released)

    def finish(self) -> str:
        """End of input: the held text, unless a match that waited for a better one is decided by it."""
        released: list[str] = []
        held, base = self._node, self._position - self._node.depth
        start = base
        while self.leading and self._starts:
            start = self._take_first(held, "", base, start, released)
        if not self.leading and self._best is not None and self.matched is None:
            released.append(held.spelling[start - base : self._best[0] - base])
            self._stop_here()
        if self.matched is None:
            released.extend((*self._blanks, held.spelling[start - base : held.depth]))
            self._blanks.clear()
            self._node = self._root
        return "".join(released)

    def _step(self, char: str) -> str:
        """`_feed_plain` for one character while nothing has matched: engines that send bytes make this the
        hot path."""
        node = self._node
        following = node.children.get(char) or self._advance(node, char)
        if following.output is not None:
            return self._feed_plain(char)
        self._node = following
        self._position += 1
        length = node.depth + 1 - following.depth
        return node.spelling[:length] if length <= node.depth else node.spelling[: length - 1] + char

    def _feed_plain(self, text: str) -> str:
        if self._node is self._root and self._find_first(text) is None:
            self._position += len(text)
            return text
        before = ""
        if len(text) >= _WHOLE_SEARCH_MIN and self._best is None and len(text) >= self._node.depth:
            before, text = self._skip_matchless(text)
        released, rest = self._scan(text)
        if self._best is not None and self._position - self._node.depth >= self._best[0]:
            self._stop_here()
            self._refine(rest)
        return before + released

    def _skip_matchless(self, text: str) -> tuple[str, str]:
        """Split the held text and `text` where everything before can neither match nor begin a match."""
        data = self._node.prefix(self._node.depth) + text
        found = [place for place in (data.find(stop) for stop in self._stops) if place >= 0]
        # A partial match that competes with the one found begins less than the longest stop before it.
        begin = max(0, (min(found) if found else len(data)) - self._longest + 1)
        self._position += begin - self._node.depth
        self._node = self._root
        return data[:begin], data[begin:]

    def _feed_leading(self, text: str, place: int, released: list[str]) -> int:
        """Step through `text` from `place` on while leading matches are removed; returns where it ended.

        Nothing is looked at twice: what was found behind a match is kept until that match is decided.
        """
        while place < len(text) and self.leading:
            held = self._node
            if held is self._root:
                hit = self._find_first(text, place)
                start = len(text) if hit is None else hit.start()
                if start > place:
                    self._position += start - place
                    self._pass(text[place:start], released)
                    place = start
                    continue
            char = text[place]
            place += 1
            self._position += 1
            self._node = held.children.get(char) or self._advance(held, char)
            self._record()
            if self._starts or self._node.depth <= held.depth:
                self._settle(held, char, released)
        return place

    def _record(self) -> None:
        """Keep the matches that end here."""
        node = self._node
        match = node if node.complete is not None else node.shorter
        while match is not None:
            assert match.complete is not None
            start = self._position - match.depth
            if start not in self._found:
                heappush(self._starts, start)
            self._found[start] = match.complete
            match = match.shorter

    def _settle(self, held: _Node, char: str, released: list[str]) -> None:
        """Remove the matches no later text can change, and pass on what can be part of none: of the text
        that `held` and `char` spell."""
        base = start = self._position - 1 - held.depth
        while self.leading:
            alive = self._position - self._node.depth
            first = self._starts[0] if self._starts else alive
            if alive < first or not self._starts or (alive == first and not self._node.leaf):
                self._pass(_joined_slice(held, char, start - base, min(alive, first) - base), released)
                break
            start = self._take_first(held, char, base, start, released)
        if not self.leading:
            self._take_best()

    def _take_first(self, held: _Node, char: str, base: int, start: int, released: list[str]) -> int:
        """Pass on the text from `start` to the first match found, and remove that if it leads; returns where
        the text goes on."""
        first = self._starts[0]
        self._pass(_joined_slice(held, char, start - base, first - base), released)
        if not self.leading:
            self._take_best()
            return first
        end = first + len(self._found[first])
        self.removed.append((self._blank_start, end))
        self._blank_start = end
        self._blanks.clear()
        while self._starts and self._starts[0] < end:
            del self._found[heappop(self._starts)]
        while self._node.depth > self._position - end:
            assert self._node.fail is not None
            self._node = self._node.fail
        return end

    def _take_best(self) -> None:
        """No match leads any more: the first one found ends the text, unless one that began before it is
        still open."""
        if self._starts and self._best is None:
            start = self._starts[0]
            self._best = (start, start + len(self._found[start]), self._found[start])
            if self._position - self._node.depth >= start:
                self._stop_here()
        self._starts.clear()
        self._found.clear()

    def _pass(self, survivors: str, released: list[str]) -> None:
        """Release `survivors`; while matches may still be ignored, blanks wait for what follows them."""
        if not self.leading:
            released.append(survivors)
            return
        if not survivors:
            return
        self._blanks.append(survivors)
        if not survivors.isspace():
            self.leading = False
            released.extend(self._blanks)
            self._blanks.clear()

    def _skip_leading(self, text: str, released: list[str]) -> int:
        """What a search of the whole `text` settles at its beginning: leading matches no later text can
        change, or text before the first match. Returns up to which place."""
        if self._node is not self._root or self._starts:
            return 0
        place = self._remove_leading_run(text) if self._longest <= _LONGEST_IN_RUN else 0
        if place:
            return place
        found = [start for start in (text.find(stop) for stop in self._stops) if start >= 0]
        place = max(0, min(found, default=len(text)) - self._longest + 1)
        self._position += place
        self._pass(text[:place], released)
        return place

    def _remove_leading_run(self, text: str) -> int:
        by_length = sorted(self._stops, key=len, reverse=True)
        match = re.compile(rf"\s*?(?:{'|'.join(map(re.escape, by_length))})").match
        base, place = self._position, 0
        while (found := match(text, place)) is not None and found.end() <= len(text) - self._longest:
            place = found.end()
            self.removed.append((self._blank_start, base + place))
            self._blank_start = base + place
        if place:
            self._position = base + place
            self._blanks.clear()
        return place

    def _stop_here(self) -> None:
        assert self._best is not None
        start, _end, self.matched = self._best
        self._refining = not self._node.leaf and self._position - self._node.depth == start
        self.removed.append((start, None))

    def _refine(self, text: str) -> None:
        """Follow the matched stop into longer ones; the surviving text is settled already."""
        for char in text:
            if not self._refining:
                return
            if char not in self._node.following:
                self._refining = False
                return
            child = self._node.children.get(char) or self._make_child(self._node, char)
            self._node = child
            self._refining = not child.leaf
            if child.complete is not None:
                self.matched = child.complete

    def _scan(self, text: str) -> tuple[str, str]:
        """Step through `text` until a match is decided.

        Returns what may be released of the held text and `text`, and what was not looked at yet.
        """
        first = node = self._node
        root, best = self._root, self._best
        index, length = 0, len(text)
        while index < length:
            if node is root:
                hit = self._find_first(text, index)
                if hit is None:
                    index = length
                    break
                index = hit.start()
            char = text[index]
            index += 1
            node = node.children.get(char) or self._advance(node, char)
            if node.output is None and best is None:
                continue
            place = self._position + index
            if node.output is not None:
                start = place - len(node.output)
                if best is None or start <= best[0]:
                    best = (start, place, node.output)
            assert best is not None
            if place - node.depth >= best[0]:
                break
        base = self._position - first.depth
        self._node, self._best = node, best
        self._position += index
        boundary = self._position - node.depth
        if best is not None:
            boundary = min(boundary, best[0])
        return _joined_slice(first, text, 0, boundary - base), text[index:]

    def _advance(self, node: _Node, char: str) -> _Node:
        """The node of the longest suffix of the text that is a prefix of some stop."""
        current: _Node | None = node
        while current is not None:
            if char in current.following:
                return current.children.get(char) or self._make_child(current, char)
            current = current.fail
        return self._root

    def _make_child(self, node: _Node, char: str) -> _Node:
        depth = node.depth
        members = tuple(stop for stop in node.members if len(stop) > depth and stop[depth] == char)
        fail = self._root if node.fail is None else self._advance(node.fail, char)
        child = node.children[char] = _Node(depth + 1, members, fail)
        return child


def _joined_slice(held: _Node, text: str, start: int, end: int) -> str:
    """`(held prefix + text)[start:end]` without joining them."""
    depth = held.depth
    if start >= depth:
        return text[start - depth : end - depth]
    head = held.spelling[start : min(end, depth)]
    return head + text[: end - depth] if end > depth else head
