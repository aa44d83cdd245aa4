"""Flags over variables over defaults (http.md §17)."""

from __future__ import annotations

from dataclasses import fields

import pytest

from generated.settings import SETTINGS
from server.settings import SettingError, Settings, resolve


def test_every_setting_of_the_spec_has_its_field_and_its_default() -> None:
    settings = resolve({}, {})
    assert [field.name for field in fields(Settings)] == list(SETTINGS)
    assert {name: getattr(settings, name) for name in SETTINGS} == {
        name: setting.default for name, setting in SETTINGS.items()
    }


def test_a_flag_wins_over_its_variable_and_that_over_the_default() -> None:
    assert resolve({}, {"COLI_API_KEY": "variable"}).api_key == "variable"
    assert resolve({"api_key": "flag"}, {"COLI_API_KEY": "variable"}).api_key == "flag"
    assert resolve({"api_key": None}, {}).api_key is None


def test_a_list_is_split_in_a_variable_and_repeated_as_a_flag() -> None:
    assert resolve({}, {"COLI_ALLOWED_HOSTS": "a, b,,"}).allowed_host == ("a", "b")
    assert resolve({"allowed_host": (" A ", "b")}, {"COLI_ALLOWED_HOSTS": "c"}).allowed_host == ("A", "b")
    assert resolve({"allowed_host": ()}, {}).allowed_host == ()
    assert resolve({"cors_origin": ("*",)}, {}).cors_origin == ("*",)


def test_kinds_are_those_of_the_spec() -> None:
    settings = resolve(
        {"port": "0", "queue_timeout": "0.5", "no_restart": True}, {"COLI_VISIBLE_KEEPALIVE": "1"}
    )
    assert (settings.port, settings.queue_timeout) == (0, 0.5)
    assert (settings.no_restart, settings.visible_keepalive) == (True, True)


@pytest.mark.parametrize("value", ["3", "-1", "hot", "nan"])
def test_section_6_a_temperature_that_is_not_sane_is_passed_over(value: str) -> None:
    assert resolve({}, {"COLI_TEMP": value}).temperature == SETTINGS["temperature"].default


@pytest.mark.parametrize(
    ("flags", "environ", "says"),
    [
        ({"kv_slots": "513"}, {}, "--kv-slots"),
        ({"max_queue": "-1"}, {}, "--max-queue"),
        ({"port": "8.5"}, {}, "--port"),
        ({}, {"COLI_MAX_BODY_BYTES": "0"}, "COLI_MAX_BODY_BYTES"),
        ({}, {"COLI_KEEPALIVE_SECONDS": "inf"}, "COLI_KEEPALIVE_SECONDS"),
        ({}, {"COLI_VISIBLE_KEEPALIVE": "maybe"}, "COLI_VISIBLE_KEEPALIVE"),
        ({}, {"COLI_API_KEY": "k\udcff"}, "COLI_API_KEY: it is not UTF-8"),
        ({"model_id": "\udc80"}, {}, "--model-id: it is not UTF-8"),
        ({"cors_origin": ("http://a", "\udc80")}, {}, "--cors-origin: it is not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_one_line_that_names_the_setting(
    flags: dict[str, str], environ: dict[str, str], says: str
) -> None:
    with pytest.raises(SettingError, match=says) as caught:
        resolve(flags, environ)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "environ", "says"),
    [
        ({"model_id": ""}, {}, "--model-id: the name is empty"),
        ({"model_id": " \t"}, {}, "--model-id: the name is empty"),
        ({"allowed_host": ("a", "")}, {}, "--allowed-host / COLI_ALLOWED_HOSTS: the name is empty"),
        ({"allowed_host": (" ",)}, {}, "--allowed-host / COLI_ALLOWED_HOSTS: the name is empty"),
        ({"allowed_host": ("a b",)}, {}, "--allowed-host / COLI_ALLOWED_HOSTS: the name 'a b' holds a blank"),
        (
            {},
            {"COLI_ALLOWED_HOSTS": "a, b\tc"},
            r"--allowed-host / COLI_ALLOWED_HOSTS: the name 'b\tc' holds a blank",
        ),
        ({"cors_origin": ("",)}, {}, "--cors-origin: the origin is empty"),
        (
            {"cors_origin": ("http://a http://b",)},
            {},
            "--cors-origin: the origin 'http://a http://b' holds a blank",
        ),
    ],
)
def test_a_name_that_no_request_could_match_is_refused(
    flags: dict[str, str], environ: dict[str, str], says: str
) -> None:
    with pytest.raises(SettingError) as caught:
        resolve(flags, environ)
    assert str(caught.value) == says


def test_the_name_of_a_model_may_hold_blanks_and_a_variable_may_list_no_host() -> None:
    assert resolve({"model_id": "my model"}, {}).model_id == "my model"
    assert resolve({}, {"COLI_ALLOWED_HOSTS": ""}).allowed_host == ()
    assert resolve({}, {"COLI_ALLOWED_HOSTS": " ,"}).allowed_host == ()
