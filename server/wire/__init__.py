"""The gateway's side of the engine wire (wire.md).

How the API layer uses it::

    client = EngineClient(
        EngineLaunch(argv=("./engine", "0"), environment={...}),   # launch contract, see process.EngineLaunch
        EngineTimeouts(...),                                       # seconds, from the settings
        family=families.FAMILIES["glm"],
        restart=True,
        on_availability=scheduler.set_availability,                # READY / PAUSED / DOWN
    )
    client.start()                      # spawns the supervising thread; returns at once
    client.wait_ready()                 # optional: blocks; raises EngineStartError (with the last stderr lines)

    handle = client.submit(Submission(prompt=b"hi", slot=0, max_tokens=16, temperature=0.7, top_p=0.9), sink)
    handle.stop()                       # a stop sequence matched: later DATA is discarded, ends in on_done
    handle.cancel()                     # the client is gone: ends in on_cancelled, on_done or on_failure

    client.health()                     # EngineHealth(status, pid, restarts, uptime_seconds, telemetry, ...)
    client.shut_down()                  # after the last request: SIGTERM, 5 s, SIGKILL; joins the thread

``Submission(prompt: bytes, slot: int, max_tokens: int, temperature: float, top_p: float, extra: bytes = b"", logprobs: int = 0,
ids: bool = False, pin: bool = False, image: Image | None = None)``; ``prompt`` is UTF-8 text, or decimal ids with ``ids=True``.

``sink`` is any object with the methods of :class:`Sink`; they run on the engine's reader thread (so they must be quick and must
not raise), in wire order, once per buffer read from the pipe and not once per token:

=====================================  ==========================================================================
``on_accept(prompt_tokens)``           first, exactly once, before anything else; None from engines that send no ACCEPT
``on_echo(frames)``                    list of Echo frames
``on_data(frames)``                    list of Data frames, never empty; nothing after ``stop()`` or ``cancel()``
``on_tool(frames)``                    list of Tool frames
``on_done(done)``                      terminal: the Done frame (also the end of a request that was stopped)
``on_cancelled()``                     terminal: the engine confirmed our CANCEL
``on_failure(error)``                  terminal: an ApiError for the client; ``error.__cause__`` says why, for the log
=====================================  ==========================================================================

Exactly one terminal call is made per submission, always, and nothing follows it; release the KV slot there and not before.
A submission that fails at once (engine down, extension known to be unsupported) gets its ``on_failure`` inside ``submit``.

The blocking form, for JSON answers and batches, wakes once per buffer::

    collector = Collector()
    handle = client.submit(submission, collector)
    for event in collector.events():    # Accepted, Echoes, Pieces, Tools, Finished; raises ApiError or RequestCancelled
        ...
    outcome = collector.result()        # Outcome(prompt_tokens, echoes, data, tools, done): everything at the end

Scheduling stays outside: take a slot from ``server.scheduler`` first, submit with it, release it at the terminal call.
"""
