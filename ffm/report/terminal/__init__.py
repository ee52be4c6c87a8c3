"""Screens for a pipe or a terminal of at least 80 columns: views in, rich renderables out."""

from ffm.report.terminal.best import render_best
from ffm.report.terminal.fold import render_fold
from ffm.report.terminal.overview import render_first_screen, render_overview
from ffm.report.terminal.sequence import render_sequence
from ffm.report.terminal.site import render_site

__all__ = ["render_best", "render_first_screen", "render_fold", "render_overview", "render_sequence", "render_site"]
