"""Random ids of the API's objects, in the forms of the spec (http.md §1)."""

from __future__ import annotations

import secrets

from generated.http import IdForm


def new_id(form: IdForm) -> str:
    """A fresh id: the form's prefix and its number of random hexadecimal digits."""
    return form.prefix + secrets.token_hex((form.digits + 1) // 2)[: form.digits]
