"""Random ids of requests and of the API's objects, in the forms of the spec (http.md §1).

Guarantees: no two are alike, in one process or in several. They are names, not secrets: whoever has seen many
could tell the next ones.
"""

from __future__ import annotations

import random
from typing import Final

from generated.http import IdForm

_BITS_PER_DIGIT: Final = 4
_bits: Final = random.Random(random.SystemRandom().getrandbits(1024)).getrandbits
"""One call of C code, so safe in any thread; a system call for each id would give the interpreter away."""


def new_id(form: IdForm) -> str:
    """A fresh id: the form's prefix and its number of random hexadecimal digits."""
    return f"{form.prefix}{_bits(_BITS_PER_DIGIT * form.digits):0{form.digits}x}"
