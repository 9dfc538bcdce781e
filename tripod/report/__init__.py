"""One self-contained HTML page of what a team did, and of what can be proved of it.

``render_report`` judges a team and gives its pages by name; ``render_sessions`` does it for
recorded sessions alone. Nothing is written here, so a command writes the pages and a server serves
the same ones. It needs the extra ``report`` (jinja2).
"""

from tripod.report.page import RenderedReport as RenderedReport
from tripod.report.page import render_report as render_report
from tripod.report.page import render_sessions as render_sessions

__all__ = ["RenderedReport", "render_report", "render_sessions"]
