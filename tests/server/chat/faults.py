"""What a refused field looks like to the client: one tuple to compare with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from generated.errors import ApiError

Fault = tuple[int, str, str | None, str | None]


def fault(work: Callable[[], object]) -> Fault:
    """Status, type, param and code of the ApiError that `work` raises."""
    with pytest.raises(ApiError) as raised:
        work()
    error = raised.value
    return error.status, error.type, error.param, error.code


def refused(param: str, code: str | None) -> Fault:
    """A 400 on `param`."""
    return 400, "invalid_request_error", param, code
