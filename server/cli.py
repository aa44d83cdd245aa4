"""The ``coli`` command: ``coli serve`` runs the gateway, ``coli demo`` shows it at work.

Flags, variables, kinds and defaults are those of ``generated.settings``. Whatever is wrong with the command
line, the model, the port or the engine is one line on stderr and exit code 2; no child process is left
behind.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from generated import launch
from generated.families import SLOTS
from generated.http import LOOPBACK_HOSTS
from generated.settings import SETTINGS, Setting
from server.demo import DemoError, run_demo
from server.engines import EngineError
from server.http.server import BindError
from server.model import ModelError, load_model
from server.serving import serve
from server.settings import SettingError, Settings, resolve
from server.wire.process import EngineStartError

EXAMPLE = f"""\b
Example, with the embedded model:
  coli serve --port 8000
  curl http://127.0.0.1:8000/v1/chat/completions \\
    -H 'Content-Type: application/json' \\
    -d '{{"model": "nano", "temperature": 0, "messages": [{{"role": "user", "content": "what is 2 + 2?"}}]}}'

\b
A model of your own, for the machines of your network:
  {SETTINGS["api_key"].env}="$KEY" coli serve --model ~/models/glm --model-id glm \\
    --host 0.0.0.0 --allowed-host my-machine.local
"""

_METAVARS = {
    "directory": "DIR", "integer": "N", "number": "SECONDS", "string": "TEXT", "secret": "KEY",
    "family": "FAMILY", "choice": "WORD",
}  # fmt: skip


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
def coli(context: click.Context) -> None:
    """An OpenAI and Anthropic compatible gateway in front of one inference engine."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _setting_options(command: Callable[..., None]) -> Callable[..., None]:
    for setting in reversed(tuple(SETTINGS.values())):
        if setting.flag is not None:
            command = _option(setting)(command)
    return command


def _option(setting: Setting) -> Callable[[Callable[..., None]], Callable[..., None]]:
    assert setting.flag is not None
    if setting.kind == "boolean":
        return click.option(setting.flag, setting.name, is_flag=True, default=False, help=_help(setting))
    metavar = "|".join(setting.choices) if setting.kind == "choice" else _METAVARS[setting.kind]
    return click.option(
        setting.flag, setting.name, metavar=metavar, multiple=setting.multiple, help=_help(setting)
    )


def _help(setting: Setting) -> str:
    notes = []
    if setting.default not in (None, False, ()) and not setting.multiple:
        notes.append(f"default {setting.default}")
    if setting.kind == "family":
        notes.append("one of " + ", ".join(setting.choices))
    if setting.multiple:
        notes.append("repeatable")
    if setting.env is not None:
        notes.append(f"variable {setting.env}")
    if setting.kind == "secret":
        notes.append("every user of this machine can read the flag in the process list, not the variable")
    return setting.doc + (f"  [{'; '.join(notes)}]" if notes else "")


@coli.command("serve", epilog=EXAMPLE)
@_setting_options
@click.pass_context
def serve_command(context: click.Context, /, **flags: Any) -> None:
    """Serve a model over HTTP until SIGTERM or Ctrl-C.

    Clients of the OpenAI API (/v1/chat/completions, /v1/completions) and of the Anthropic API
    (/v1/messages) can use it; GET /docs describes every endpoint, GET /health and GET /metrics tell how it
    is doing.
    """
    settings = resolve(flags, os.environ)
    _refuse_insecure_bind(settings)
    model = load_model(
        settings.model, model_id=settings.model_id, arch=settings.arch, context=os.environ.get(launch.CTX)
    )
    _refuse_useless_slots(settings, model.family.can, model.family.name)
    context.exit(serve(settings, model, os.environ))


def _refuse_insecure_bind(settings: Settings) -> None:
    if settings.api_key or settings.allow_insecure_bind or _is_loopback(settings.host):
        return
    key, insecure = SETTINGS["api_key"], SETTINGS["allow_insecure_bind"]
    raise SettingError(
        f"refusing to listen on {settings.host} without a key: set {key.env} (or give {key.flag}), or set "
        f"{insecure.env}=1"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK_HOSTS


def _refuse_useless_slots(settings: Settings, can: frozenset[str], family: str) -> None:
    if SLOTS not in can and settings.kv_slots != SETTINGS["kv_slots"].default:
        raise SettingError(f"engines of the family {family} have one KV slot: leave out --kv-slots")


@coli.command("demo")
@click.option("--engine", metavar="TEXT", help=SETTINGS["engine"].doc)
@click.option(
    "--prompt", default="what is 2 + 2?", show_default=True, help="The question of the conversation."
)
def demo_command(engine: str | None, prompt: str) -> None:
    """Start a gateway with the embedded model on a free port, ask it two things, stop it."""
    run_demo(sys.stdout, engine=engine, question=prompt)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the ``coli`` script; ends the process."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="coli: %(message)s")
    try:
        code = coli.main(args=arguments, prog_name="coli", standalone_mode=False)
    except click.ClickException as fault:
        _end(2, fault.format_message())
    except (SettingError, ModelError, EngineError, EngineStartError, BindError) as fault:
        _end(2, str(fault))
    except DemoError as fault:
        _end(1, str(fault))
    except (click.Abort, KeyboardInterrupt):
        _end(130, "interrupted")
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _end(code: int, message: str) -> None:
    lines = (" ".join(line.split()) for line in message.splitlines())
    print(f"coli: {'; '.join(filter(None, lines))}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
