"""The hardened HTTP layer: waitress with the checks, deadlines, caps and the disconnect watch of http.md
§1-§4, §13.

The layer answers everything that can be decided from a request's head by itself (Host guard, key, path,
method, body size and encoding, malformed HTTP, OPTIONS, deadlines, caps) and hands the rest to handlers, see
(5), or to a plain WSGI application. A view sees only requests with a whole, decoded body within the limit,
for a known path and method, with an allowed Host and, where the route asks for it, the right key.

What a view finds in ``environ``::

    exchange = environ["colibri.exchange"]   # Exchange: this request and its one answer
    exchange.request_id                      # "req_" + 32 hex; the layer puts it on every answer
    exchange.authorized                      # the right key was sent, or none is configured
    exchange.client                          # ClientWatch, see (3)

The layer adds ``x-request-id``, ``x-client-request-id``, the CORS headers, ``Date``, ``Content-Length`` /
``Transfer-Encoding`` and ``Connection`` to every answer: a view must not. HEAD: answer like GET, the layer
drops the body.

1. **A plain answer**: return it from Flask. A body whose length is known is sent with its head in one write
   and never blocks the worker on a slow reader. Client errors: turn ``ApiError`` into JSON in a Flask error
   handler; ``refusals.envelope(error, anthropic=..., request_id=...)`` does it, or ``exchange.refuse(error)``
   sends it and the view returns ``exchange.placeholder()``. An exception that escapes the application becomes
   a 500 ``engine_error``, its text goes to the log only.

2. **A stream (SSE) with a deferred 200**: nothing is sent until the view decides::

    stream = exchange.open_stream([("x-colibri-queue-wait-ms", "3")])  # 200 and the SSE headers of §8
    stream.write(b"data: {...}\\n\\n")      # any thread; sent from the calling thread if there is room
    stream.finish(b"data: [DONE]\\n\\n")    # last bytes, terminating chunk; the connection goes on
    stream.fail()                           # after a failure: no terminating chunk, connection closes

   ``write`` returns True while the client keeps up and False once it has fallen behind (the data is kept all
   the same): then hold further events back, join them, and go on at ``stream.on_writable(callback)`` (called
   once, at once if there is room) or after ``stream.wait_writable(timeout)``. It raises ``ClientGone`` when
   the client has left. The head is sent together with the first write; ``stream.flush()`` sends it alone.
   Before ``open_stream`` the view may still return (or ``respond`` with) a plain error.

   In the worker: open, write, finish, then return anything (it is ignored: return ``exchange.placeholder()``,
   an empty WSGI answer). A view that returns or raises with its stream neither finished nor failed has failed
   it.

   From another thread, with no worker held: call ``exchange.detach()`` first and return
   ``exchange.placeholder()``. From then on whoever holds the exchange owes it exactly one end:
   ``stream.finish`` / ``stream.fail``, ``exchange.respond(status, headers, body)`` for a plain answer (JSON
   that was parked), or ``exchange.refuse(error)``. No Flask request context exists there. If the client
   leaves first, the exchange ends by itself; a late ``finish``, ``fail``, ``respond`` or ``refuse`` is then a
   no-op.

3. **The client leaving**: ``exchange.client.is_gone`` says so, and ``exchange.client.gone`` is a
   ``threading.Event`` to wait for it; ``exchange.client.on_gone(callback)`` calls ``callback()`` once, within
   100 ms of the departure, on the I/O thread (so: quick, nothing that blocks), or at once when the client has
   already left. Callbacks are dropped when the exchange ends, so a kept-alive connection never cancels a
   later request. A half-closed client and one that does not read for the stall deadline count as gone. A view
   that notices raises ``ClientGone`` or returns anything.

4. **The access log**: ``exchange.note(queue_wait_ms=3, prompt_tokens=7, completion_tokens=16, reason="...",
   outcome="error")``, from any thread until the exchange ends. The outcome defaults to ok, refused (4xx),
   error (5xx, failed stream) or cancelled (client gone); every ``accesslog.AccessRecord`` also goes to
   ``HttpConfig.observer`` (``began(record)``, ``ended(record)``) for metrics.

5. **A handler** has one method on one route to itself, without WSGI: ``handler(exchange, body)``. For a
   short body it is called on the I/O thread, so it must never wait; what has to wait it returns as a
   function, which a worker calls. It, or that function, answers like a view does, or raises
   :class:`ClientGone`; every other exception is a 500 ``engine_error``.

Running it, ``config.routes`` being ``contract_routes()``::

    server = HttpServer(application, config, handlers)  # listens; BindError (one line) if the port is taken
    server.run()                              # the I/O loop, in the calling thread, until shut_down is over
    server.shut_down(grace)                   # from a signal handler or any thread: finish what is in flight
"""

from __future__ import annotations

from server.http.accesslog import AccessRecord, RedactKey
from server.http.config import HttpConfig, Observer, Route
from server.http.exchange import ENVIRON_KEY, ClientGone, ClientWatch, Exchange, ResponseStream
from server.http.routes import contract_routes
from server.http.server import BindError, HttpServer
from server.http.shared import Handler, Work

__all__ = [
    "ENVIRON_KEY",
    "AccessRecord",
    "BindError",
    "ClientGone",
    "ClientWatch",
    "Exchange",
    "Handler",
    "HttpConfig",
    "HttpServer",
    "Observer",
    "RedactKey",
    "ResponseStream",
    "Route",
    "Work",
    "contract_routes",
]
