"""The sandbox of chat templates: no way out, no end without bound (http.md §14)."""

from __future__ import annotations

import time
from datetime import datetime

import pytest

from generated import limits
from server.chat.sandbox import ChatSandbox, TemplateFailure, TemplateRefusal, render

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
def test_a_template_that_does_not_end_is_stopped(source: str) -> None:
    start = time.monotonic()
    with pytest.raises(TemplateFailure, match="ran longer"):
        rendered(source)
    assert time.monotonic() - start >= limits.TEMPLATE_SECONDS


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
