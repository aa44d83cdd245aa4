"""The gateway: an HTTP API in front of one engine process, on the generated layer.

Rooms: ``http`` (transport), ``wire`` (the engine's pipes), ``text`` and ``chat`` (from bytes to answers and
back), ``scheduler`` (slots), ``api`` (one module per endpoint family), and ``app`` and ``cli``, which put
them together.
"""
