# The five stages of a measurement: snakemake --config app=./cumf_als, or app="./cumf_als 1 2 3" with arguments.
#
# Each rule is one `ffm stage` command, so that the stages can also be run by hand, or on a cluster through Snakemake's
# executor plugins. The measured runs depend on each other, so that they never overlap.
#
# Other settings: timeout=SECONDS for each run, results=FOLDER (default: results/<program>); or, in place of app,
# sample=NAME and arguments="1 2 3" for a bundled program. Files of settings lie in configs/:
# ordinary_memory=no says that no kernel uses ordinary host memory by its address.
#
#   snakemake --configfile configs/als.yaml

import os
import shlex
import shutil
import sys
from datetime import datetime
from pathlib import Path

from ffm.stages.folder import application_name, python_script
from ffm.vgpu.paths import NotBuiltError, sample


def command():
    """The words of the program to measure. Raises ValueError, NotBuiltError."""
    if "app" in config or "sample" not in config:
        return shlex.split(str(config.get("app") or ""))
    program = os.path.relpath(sample(str(config["sample"])))
    return [program, *shlex.split(str(config.get("arguments", "")))]


try:
    COMMAND = command()
except ValueError as error:
    print(
        f"ffm: the program and its arguments cannot be split into words: {error}. (Snakemake takes quotes off the value; "
        "a space within a word is written with a backslash before it.)",
        file=sys.stderr,
    )
    raise SystemExit(1) from None
except NotBuiltError as error:
    print(f"ffm: {error}", file=sys.stderr)
    raise SystemExit(1) from None
if not COMMAND:
    print("ffm: name the program to measure: snakemake --config app=./program", file=sys.stderr)
    raise SystemExit(1)

# The ffm of the Python that runs this workflow, also where its environment is not activated.
FFM = f"{shlex.quote(sys.executable)} -m ffm"
PROGRAM = shutil.which(COMMAND[0])
RESULTS = str(config.get("results", Path("results") / application_name(COMMAND)))
KERNELS = {"yes": "", "true": "", "no": "--no-ordinary-memory", "false": "--no-ordinary-memory"}.get(
    str(config.get("ordinary_memory", "yes")).lower()
)
if KERNELS is None:
    print(f"ffm: ordinary_memory is yes or no, not {config['ordinary_memory']}", file=sys.stderr)
    raise SystemExit(1)
LIMIT = f"--timeout {config['timeout']}" if "timeout" in config else ""


# A program that does not exist is left to `ffm stage`, which says so in one sentence.
def program(_wildcards):
    files = [PROGRAM, python_script(COMMAND)]
    return [file for file in files if file and Path(file).is_file()]


ANALYSIS = Path(RESULTS) / "analysis.json"
ANALYSED = ANALYSIS.stat().st_mtime if ANALYSIS.exists() else None


# It has something to do, so that `onsuccess` comes also when all results are up to date.
rule all:
    default_target: True
    input:
        str(ANALYSIS),
    localrule: True
    shell:
        "true"


rule baseline:
    input:
        program,
    output:
        f"{RESULTS}/baseline.json",
    params:
        command=shlex.join(COMMAND),
    resources:
        gpu=1,
    shell:
        "{FFM} stage baseline --results {RESULTS:q} {LIMIT} -- {params.command}"


rule tracing:
    input:
        program,
        baseline=rules.baseline.output,
    output:
        f"{RESULTS}/tracing.json",
    params:
        command=shlex.join(COMMAND),
    resources:
        gpu=1,
    shell:
        "{FFM} stage tracing --results {RESULTS:q} {LIMIT} -- {params.command}"


rule memory:
    input:
        program,
        baseline=rules.baseline.output,
        tracing=rules.tracing.output,
    output:
        f"{RESULTS}/memory.json",
    params:
        command=shlex.join(COMMAND),
    resources:
        gpu=1,
    shell:
        "{FFM} stage memory --results {RESULTS:q} {LIMIT} {KERNELS} -- {params.command}"


rule sync_use:
    input:
        program,
        memory=rules.memory.output,
    output:
        f"{RESULTS}/sync-use.json",
    params:
        command=shlex.join(COMMAND),
    resources:
        gpu=1,
    shell:
        "{FFM} stage sync-use --results {RESULTS:q} {LIMIT} -- {params.command}"


rule analysis:
    input:
        baseline=rules.baseline.output,
        tracing=rules.tracing.output,
        memory=rules.memory.output,
        sync_use=rules.sync_use.output,
    output:
        str(ANALYSIS),
    shell:
        "{FFM} stage analysis --results {RESULTS:q}"


onsuccess:
    if ANALYSED is not None and ANALYSIS.stat().st_mtime == ANALYSED:
        when = datetime.fromtimestamp(ANALYSED).strftime("%Y-%m-%d %H:%M")
        print(f"Nothing has changed since {COMMAND[0]} was measured ({when}); --forceall measures it again.")
        print(f"The results are in {RESULTS}. Look: ffm report --results {shlex.quote(RESULTS)}")
