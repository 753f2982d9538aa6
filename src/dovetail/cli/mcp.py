"""`dovetail mcp`: lets assistants ask a controller, and submit what a person has seen first.

The Model Context Protocol over standard input and output. Tools only read, but for one: it says
what a job would be and where it would run, and hands out a token; called again with the same job
and that token, it submits. So nothing is started that was not shown before.
"""

from __future__ import annotations

from dovetail.cli.talking import DataDir, box
from dovetail.model.errors import UserError


def mcp(data_dir: DataDir = None) -> None:
    """Serve the Model Context Protocol on standard input and output, for assistants."""
    try:
        import mcp.server.mcpserver  # noqa: F401, PLC0415
    except ImportError:
        raise UserError("this needs the package mcp: pip install 'dovetail-sched[mcp]'") from None
    from dovetail.cli.mcp_tools import served  # noqa: PLC0415

    with box(data_dir) as found:
        # A controller that is not there is told now, and not by the first tool.
        found.about()
    served(data_dir).run()
