"""The sandbox of chat templates: no way out, no end without bound (http.md §14)."""

from __future__ import annotations

import time
import tracemalloc
from datetime import datetime

import pytest

from generated import limits
from server.chat.sandbox import ChatSandbox, TemplateFailure, TemplateOverflow, TemplateRefusal, render

MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "yo"}]


def rendered(source: str) -> str:
    return render(ChatSandbox().template(source), {"messages": MESSAGES})


@pytest.mark.parametrize(
    "source, text",
    [
        ("{% for m in messages %}\n  {% if loop.last %}{{ m.content }}{% endif %}\n{% endfor %}\n", "yo"),
        ("{{ {'a': 'é<', 'b': none} | tojson }}", '{"a": "é<", "b": null}'),
        ("{{ [1] | tojson(indent=1) }}", "[\n 1\n]"),
        ("{{ {'b': 1, 'a': 2} | tojson(separators=(',', ':'), sort_keys=true) }}", '{"a":2,"b":1}'),
        (
            "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.role }}{% endfor %}",
            "assistant",
        ),
        (
            "{% for m in messages %}{{ m.role }}{% break %}{% endfor %}{{ '{}-{:>3}'.format('a', 'b') }}",
            "usera-  b",
        ),
        (
            "{% set n = namespace(n=0) %}{% for i in [1, 2] %}{% set n.n = n.n + i %}{% endfor %}{{ n.n }}",
            "3",
        ),
        ("{% for m in messages %}{{ loop.length }}{% endfor %}", "22"),
        (
            "{{ messages[1:][0].role }}{{ messages[::-1] | map(attribute='content') | join(',') }}",
            "assistantyo,Hi",
        ),
        (
            "{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}{{ {'b': 2} | items | list }}",
            "a=1[('b', 2)]",
        ),
        ("{{ 'a</t>b'.split('</t>')[-1].lstrip('b') ~ '%02d' % 5 ~ 'x'.replace('x', 'y') | upper }}", "05Y"),
        (
            "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ [] is iterable }}",
            "1True",
        ),
        (
            "{{ messages[0].nothing is defined }}{{ messages[0].nothing or 'n' }}{{ none is none }}",
            "FalsenTrue",
        ),
        ("{% generation %}x{{ messages[0].content }}{% endgeneration %}", "xHi"),
        (
            "{% for m in messages %}{{ loop.previtem.role ~ '>' if loop.previtem }}{{ m.role }}{% endfor %}",
            "useruser>assistant",
        ),
        ("{{ 'a' * 3 ~ 7 % 4 ~ ('x' + 'y') ~ ('line' | indent(2, true)) }}", "aaa3xy  line"),
        ("{% macro t(x) %}<{{ x }}>{% endmacro %}{{ t('a') }}{{ 'a b'.split(' ')[1] | trim }}", "<a>b"),
    ],
)
def test_the_conventions_of_chat_templates_are_served(source: str, text: str) -> None:
    assert rendered(source) == text


def test_the_date_is_today() -> None:
    assert rendered("{{ strftime_now('%Y') }}") in (str(datetime.now().year), str(datetime.now().year - 1))


def test_raise_exception_is_a_refusal() -> None:
    with pytest.raises(TemplateRefusal, match=r"^roles must alternate$"):
        rendered("{{ raise_exception('roles must alternate') }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update(a=1) }}",
        "{{ messages[0].clear() }}",
        "{{ (messages | attr('__class__')).mro() }}",
        "{{ lipsum() }}",
        "{% include 'x' %}",
        "{% import 'os' as os %}",
    ],
)
def test_there_is_no_way_out(source: str) -> None:
    with pytest.raises(TemplateFailure):
        rendered(source)
    assert MESSAGES == [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "yo"}]


@pytest.mark.parametrize(
    "name",
    [
        "''.__class__",
        "raise_exception.__globals__",
        "self.__init__",
        "''.format.__self__",
        "messages.__len__",
    ],
)
def test_what_is_no_data_is_undefined(name: str) -> None:
    assert rendered(f"{{{{ {name} }}}}{{{{ {name} is defined }}}}") == "False"


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{{ f(n - 1) if n }}{{ f(n - 1) if n }}{% endmacro %}{{ f(60) }}",
    ],
)
def test_a_template_that_does_not_end_is_stopped(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TEMPLATE_SECONDS", 0.2)
    start = time.thread_time()
    with pytest.raises(TemplateFailure, match="ran longer"):
        rendered(source)
    assert time.thread_time() - start >= 0.2


@pytest.mark.parametrize(
    "source",
    [
        "{% set ns = namespace(x='aaaa') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set ns = namespace(x='aaaa') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{{ 'a' * 10 ** 10 }}",
        "{{ [1] * 10 ** 10 }}",
        "{{ 10 ** 100000 }}",
        "{{ 10 ** 3000 * 10 ** 3000 }}",
        "{% for i in range(9999) %}{{ 'a' * 9999 }}{% endfor %}",
        "{{ '%999999999d' % 1 }}",
        "{{ '%*d' % (10 ** 9, 1) }}",
        "{{ 'x'.ljust(10 ** 9) }}",
        "{{ '{:999999999}'.format(1) }}",
        "{{ '{:{}}'.format(1, 10 ** 9) }}",
        "{{ 'x' | indent(10 ** 9) }}",
        "{{ [1] | tojson(indent=10 ** 9) }}",
        "{{ 'x' | center(10 ** 9) }}",
        "{% for i in range(10 ** 9) %}{% endfor %}",
        "{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}",
    ],
)
def test_a_template_cannot_make_something_huge(source: str) -> None:
    with pytest.raises(TemplateFailure):
        rendered(source)


MEBI = 1_000_000
WORD = f"('x' * {MEBI})"
MANY = f"([{WORD}] * 1000)"
DEEP = "{% set n = namespace(x=(1,)) %}{% for i in range(40) %}{% set n.x = (n.x, n.x) %}{% endfor %}"
LONG = "{% for i in range(99) %}{{ w }}{% endfor %}"


@pytest.mark.parametrize(
    "source",
    [
        "{{ [1] | slice(20000000) | list | length }}",
        "{{ [1] | batch(20000000, 'x') | list | length }}",
        f"{{{{ {WORD} | replace('x', 'y' * 200) | length }}}}",
        f"{{{{ {WORD}.replace('x', 'y' * 200) | length }}}}",
        f"{{{{ {WORD} | join('y' * 200) | length }}}}",
        f"{{{{ ('y' * 200).join({WORD}) | length }}}}",
        "{{ ('{0:999}' * 100000).format(1) | length }}",
        f"{{{{ ('{{0}}' * 1000).format({WORD}) | length }}}}",
        f"{{{{ ('{{a}}' * 1000).format_map({{'a': {WORD}}}) | length }}}}",
        f"{{{{ '{{0!r}}'.format({MANY}) | length }}}}",
        "{{ (('%999d' * 20000) % 1) | length }}",
        f"{{{{ (('%(a)s' * 1000) % {{'a': {WORD}}}) | length }}}}",
        f"{{{{ '%s' % ({MANY},) }}}}",
        f"{{{{ {MANY} }}}}",
        f"{{{{ {MANY} | string | length }}}}",
        f"{{{{ {MANY} | tojson | length }}}}",
        f"{{{{ {{'a': {MANY}}}.values() }}}}",
        f"{{{{ {MANY} ~ 'a' }}}}",
        f"{{{{ {MANY} | join | length }}}}",
        f"{{{{ [{MANY}] | map('string') | list | length }}}}",
        f"{{{{ namespace(x={MANY}) }}}}",
        f"{{{{ raise_exception({MANY}) }}}}",
        "{{ ([1] * 1000000) | tojson(separators=('x' * 9999, ':')) | length }}",
        "{{ ('\n' * 16000000) | indent(16, blank=true) | length }}",
        "{{ ('\n' * 16000000).splitlines() | length }}",
        "{{ (' ' * 16000000).split(' ') | length }}",
        "{{ ('a ' * 8000000).rsplit() | length }}",
        "{{ ('ab' * 8000000) | list | length }}",
        "{{ ('x' * 16000000) | title | length }}",
        "{{ ('<' * 16000000) | e | length }}",
        "{{ ([[1] * 1000000] * 100) | sum(start=[]) | length }}",
        "{{ [1] * 16000000 }}",
        "{{ 1 | round(-1000000000) }}",
        "{{ 1 | round(1000000000, 'ceil') }}",
        "{{ ('f' * 16000000) | int(base=16) % 3 }}",
        "{{ (1).from_bytes([255] * 1000000, 'big') % 7 }}",
        "{{ 'x'.translate({120: 'y' * 16000000}) }}",
        "{{ strftime_now('%c' * 1000000) | length }}",
        "{% autoescape true %}{{ '<' }}{% endautoescape %}",
        f"{{% set w = {WORD} %}}{{% set y %}}{LONG}{{% endset %}}{{{{ y | length }}}}",
        f"{{% set w = {WORD} %}}{{% macro f() %}}{LONG}{{% endmacro %}}{{{{ f() | length }}}}",
        f"{{{{ {MANY} == ([{WORD} ~ ''] * 1000) }}}}",
        f"{{{{ {MANY} is eq([{WORD} ~ '']) }}}}",
        f"{{{{ 'x' in {MANY} }}}}",
        f"{{{{ {MANY}.index('x') }}}}",
        f"{{{{ {MANY} | sort | length }}}}",
    ],
)
def test_no_operation_makes_something_huge_of_something_small(source: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TemplateFailure):
            rendered(source)
        assert tracemalloc.get_traced_memory()[1] < 5 * limits.PROMPT_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "use", ["{{ {n.x: 1} }}", "{{ {}[n.x] }}", "{{ {}.get(n.x) }}", "{{ n.x == (n.x,) }}"]
)
def test_what_holds_itself_many_times_is_not_walked_without_end(
    use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TEMPLATE_SECONDS", 0.2)
    with pytest.raises(TemplateFailure):
        rendered(DEEP + use)


@pytest.mark.parametrize(
    "source, text",
    [
        (
            "{{ [1, 2, 3] | batch(2, 0) | list }}{{ [1, 2, 3] | slice(2) | list }}",
            "[[1, 2], [3, 0]][[1, 2], [3]]",
        ),
        ("{{ 'aXbX' | replace('X', '--', 1) }}{{ 'aXbX'.replace('X', '') }}", "a--bXab"),
        ("{{ [1, none, 'x'] | join('/') }}{{ '/'.join(['a', 'b']) }}", "1/None/xa/b"),
        ("{{ messages | join('+', attribute='role') }}", "user+assistant"),
        ("{{ [1, 2] | sum }}{{ [[1], [2]] | sum(start=[]) }}", "3[1, 2]"),
        ("{{ '{a}{0!r:>4}'.format('x', a=[1]) }}{{ '{b}'.format_map({'b': 2}) }}", "[1] 'x'2"),
        ("{{ '%s=%03d' % ('a', 7) }}{{ '%(k)s' % {'k': 'v'} }}", "a=007v"),
        (
            "{{ 'a b  c'.split() }}{{ 'a-b-c'.rsplit('-', 1) }}{{ 'a\nb'.splitlines() }}",
            "['a', 'b', 'c']['a-b', 'c']['a', 'b']",
        ),
        (
            "{{ '<a&>' | e }}{{ '<' | safe }}{{ 'é' | upper }}{{ 'a b' | title }}",
            "&lt;a&amp;&gt;<ÉA B",
        ),
        (
            "{{ '7' | int + 1.5 | round | int }}{{ 'x' | int(9) }}{{ '2.5' | float }}{{ 2.345 | round(2) }}",
            "992.52.35",
        ),
        (
            "{{ 'ab' | list }}{{ [3, 1, 2] | sort }}{{ [1, 1] | unique | list }}{{ [1, 2] | max }}",
            "['a', 'b'][1, 2, 3][1]2",
        ),
        (
            "{{ 1 in [1, 2] }}{{ 'a' in 'ab' }}{{ [1] == [1] }}{{ 1 is in [1] }}{{ {(1, 2): 'k'}[(1, 2)] }}",
            "TrueTrueTrueTruek",
        ),
        ("{{ none }}{{ true }}{{ 1.5 }}{{ {'a': [1]} }}{{ nothing }}", "NoneTrue1.5{'a': [1]}"),
        ("{{ [1] + [2] }}{{ 7 // 2 }}{{ 7 / 2 }}{{ 2 ** 10 }}{{ 5 - 7 }}", "[1, 2]33.51024-2"),
        ("{% set x %}a{{ 1 }}{% endset %}{{ x ~ x }}{{ 'a' ~ ('b' ~ 1) }}", "a1a1ab1"),
        ("{{ messages | map(attribute='role') | map('upper') | list }}", "['USER', 'ASSISTANT']"),
    ],
)
def test_inside_the_bounds_operations_are_as_ever(source: str, text: str) -> None:
    assert rendered(source) == text


def test_text_larger_than_the_largest_prompt_is_told_apart() -> None:
    template = ChatSandbox().template("{{ m }}{{ m }}{{ 'a' + m }}{{ m ~ 'a' }}")
    with pytest.raises(TemplateOverflow):
        render(template, {"m": "x" * (limits.PROMPT_BYTES // 2)})


def test_a_rendering_that_had_to_wait_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TEMPLATE_SECONDS", 0.1)

    def wait() -> str:
        until = time.monotonic() + 0.2
        while (left := until - time.monotonic()) > 0:
            time.sleep(left)
        return "waited"

    template = ChatSandbox().template("{{ wait() }}{% for i in [1, 2] %}{{ i }}{% endfor %}")
    assert render(template, {"wait": wait}) == "waited12"
