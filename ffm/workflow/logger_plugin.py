"""The logger plugin `ffm` of Snakemake.

Snakemake finds plugins by their names among the top-level packages, so this is installed as
`snakemake_logger_plugin_ffm`.
"""

from ffm.workflow.logger import LogHandler

__all__ = ["LogHandler"]
