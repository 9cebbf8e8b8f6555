"""The `runnel` command: its sub-commands, and what becomes of errors."""

from __future__ import annotations

import gc
import os
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from runnel import __version__
from runnel.cli import define, demo, doctor, look, shell, work
from runnel.cli import run as running
from runnel.cli.options import CatalogOption, Code, LakeOption
from runnel.cli.text import note, show_error
from runnel.errors import Busy, RunnelError


class _Commands(TyperGroup):
    """Turns errors into messages and exit codes, for every command in the same way."""

    def invoke(self, ctx: Any) -> Any:
        # What a command imports is no garbage; `opened` switches the collector back on for work.
        gc.disable()
        try:
            return super().invoke(ctx)
        except RunnelError as error:
            show_error(error)
            raise typer.Exit(Code.BUSY if isinstance(error, Busy) else Code.FAILED) from error
        except KeyboardInterrupt as error:
            note("interrupted")
            raise typer.Exit(Code.INTERRUPTED) from error
        finally:
            gc.enable()


app = typer.Typer(
    name="runnel",
    cls=_Commands,
    help="Stream tables on Spark and Delta Lake: query results that keep themselves up to date.",
    epilog="Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 verify found a difference, 4 busy, "
    "130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"runnel {__version__}")
        raise typer.Exit


@app.callback()
def common(
    ctx: typer.Context,
    lake: LakeOption = None,
    catalog: CatalogOption = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    given = {
        "lake": lake or os.environ.get("RUNNEL_LAKE") or None,
        "catalog": catalog or os.environ.get("RUNNEL_CATALOG") or None,
    }
    assert isinstance(ctx.command, TyperGroup)
    ctx.default_map = dict.fromkeys(ctx.command.commands, given)
    # The demo never plays in a lake that is merely the usual one.
    ctx.default_map["demo"] = {"lake": lake}


_START, _DEFINE, _WORK, _LOOK = "Start", "Define", "Keep up to date", "Look (no Spark, fast)"
for _command, _panel in (
    (demo.demo, _START), (shell.sql, _START),
    (define.create, _DEFINE), (define.alter, _DEFINE), (define.drop, _DEFINE),
    (define.suspend, _WORK), (define.resume, _WORK),
    (running.run, _WORK), (work.refresh, _WORK),
    (work.verify, _WORK), (work.compact, _WORK), (work.explain, _WORK),
    (look.status, _LOOK), (look.history, _LOOK), (look.stats, _LOOK), (look.alerts, _LOOK),
    (look.graph, _LOOK), (look.diamond_groups, _LOOK), (look.scc_status, _LOOK),
    (doctor.doctor, _LOOK),
):  # fmt: skip
    app.command(rich_help_panel=_panel)(_command)


if __name__ == "__main__":
    app(prog_name="runnel")
