# The five stages of a measurement, by the rules of the installed ffm. Rules of your own can follow.
#
#   snakemake --config app=./program                                                # or app="./program 1 2 3"
#   snakemake --configfile configs/program.yaml                                     # settings in a file
#   snakemake --configfile configs/program.yaml --workflow-profile profiles/slurm   # on a Slurm cluster

from ffm.workflow import SNAKEFILE


include: SNAKEFILE


# What a bare `snakemake` makes. An included file's own default counts only where that file is the main one.
rule measured:
    default_target: True
    input:
        rules.all.input,
    localrule: True
    shell:
        "true"
