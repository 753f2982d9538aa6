"""The command line: one module per command, composed here. Nothing below this layer prints."""

from __future__ import annotations

import errno
import os
import sys


def main() -> None:
    """Run a command; a user's mistake is one sentence on standard error and exit code 2."""
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing is wrong.
        _write_nowhere()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _write_nowhere()
        sys.exit(_fail(f"the output cannot be written ({error.strerror})"))


def _run() -> int:
    import typer  # noqa: PLC0415 (commands start fast: heavy imports only where they are used)

    from dovetail.cli.app import app  # noqa: PLC0415
    from dovetail.model.errors import UserError  # noqa: PLC0415

    try:
        # A command that wants another exit code than 0 has it returned here.
        return app(standalone_mode=False) or 0
    except UserError as error:
        return _fail(str(error))
    except typer.Abort:
        return _fail("stopped")
    except Exception as error:
        # Typer's own usage errors carry a message and an exit code.
        if not hasattr(error, "format_message"):
            raise
        if not error.format_message() and hasattr(error, "show"):
            # No command was given: its help is the answer.
            error.show()
            return 2
        return _fail(error.format_message())


def _fail(sentence: str) -> int:
    from dovetail.cli.output import printable  # noqa: PLC0415

    print(f"dovetail: {printable(sentence)}", file=sys.stderr)
    return 2


def _write_nowhere() -> None:
    """What is left to be written is not tried again, and complained of, at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
