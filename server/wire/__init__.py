"""The gateway's side of the engine wire (wire.md).

How the API layer uses it::

    client = EngineClient(
        EngineLaunch(argv=[...], environment={...}),  # see process.EngineLaunch
        EngineTimeouts(...),  # seconds, from the settings
        family=families.FAMILIES["glm"],
        restart=True,
        on_availability=scheduler.set_availability,  # READY, PAUSED, DOWN
    )
    client.start()  # returns at once; requests wait in the scheduler until READY
    client.wait_ready()  # optional: blocks; False if it was shut down first; raises EngineStartError

    handle = client.submit(Submission(b"hi", slot=0, max_tokens=16, temperature=0.7, top_p=0.9), sink)
    handle.stop()  # a stop sequence matched: no further on_data, ends in on_done
    handle.cancel()  # the client is gone: no further on_data, ends when the engine confirms

    client.health()  # EngineHealth(status, pid, restarts, uptime_seconds)
    client.telemetry  # hwinfo, tiers, experts, turns
    client.shut_down()  # after the last request: SIGTERM, then SIGKILL; joins the thread

:class:`~server.wire.events.Submission` lists what a request can carry: ``prompt`` (bytes: UTF-8 text, or
decimal ids with ``ids=True``), ``slot``, ``max_tokens``, ``temperature``, ``top_p``, ``extra`` (grammar),
``logprobs``, ``ids``, ``pin``, ``image`` and ``prompt_param``, the field an engine's complaint about the
prompt is attributed to.

``sink`` is any object with the methods of :class:`~server.wire.events.Sink`. They run on the engine's reader
thread, so they must be quick and must not raise; they may call ``stop``, ``cancel`` and ``submit``. They come
in wire order, once per buffer read from the pipe and not once per token:

``on_accept(prompt_tokens)``
    first, exactly once, before any other but a failure; None from engines that send no ACCEPT
``on_echo(frames)``, ``on_data(frames)``, ``on_tool(frames)``
    non-empty lists of Echo, Data, Tool frames; none after ``stop()`` or ``cancel()`` took effect
``on_done(done)``
    terminal: the Done frame; also the end of a request that was stopped
``on_cancelled()``
    terminal: nothing more of a cancelled request can come
``on_failure(error)``
    terminal: an ApiError for the client; ``error.__cause__`` is the reason for the log

Exactly one terminal call is made per submission, always, and nothing follows it. The engine has let go of the
KV slot then and not before: release it there. Only where there is no engine to submit to does the terminal
call come from within ``submit`` itself.

Scheduling stays outside: ``scheduler.enter(pinned)`` and ``wait()`` before it, ``release()`` behind its end.
"""
