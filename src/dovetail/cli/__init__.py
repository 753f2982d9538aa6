"""The command line: one module per command, composed here. Nothing below this layer prints."""

from __future__ import annotations

import sys


def main() -> None:
    """Run a command; a user's mistake is one sentence on standard error and exit code 2."""
    import typer  # noqa: PLC0415 (commands start fast: heavy imports only where they are used)

    from dovetail.cli.app import app  # noqa: PLC0415
    from dovetail.model.errors import UserError  # noqa: PLC0415

    try:
        # A command that wants another exit code than 0 has it returned here.
        sys.exit(app(standalone_mode=False) or 0)
    except UserError as error:
        _fail(str(error))
    except typer.Abort:
        _fail("stopped")
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing is wrong.
        sys.stderr.close()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        # Typer's own usage errors carry a message and an exit code.
        if not hasattr(error, "format_message"):
            raise
        if not error.format_message() and hasattr(error, "show"):
            # No command was given: its help is the answer.
            error.show()
            sys.exit(2)
        _fail(error.format_message())


def _fail(sentence: str) -> None:
    from dovetail.cli.output import printable  # noqa: PLC0415

    print(f"dovetail: {printable(sentence)}", file=sys.stderr)
    sys.exit(2)
