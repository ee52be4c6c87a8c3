"""als and its corrected twin compute the same, and detect a wrong result."""

import re
import subprocess

import pytest

from ffm.vgpu.paths import sample


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sample(name), *arguments], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def original() -> subprocess.CompletedProcess[str]:
    return run("als", "25")


def test_converges(original):
    assert (original.returncode, original.stderr) == (0, "")
    errors = [float(error) for error in re.findall(r"iteration \d+: training RMSE ([\d.]+)", original.stdout)]
    assert len(errors) == 25
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.1 < errors[0]


def test_each_iteration_fetches_other_numbers(original):
    """Otherwise a fetched result would be a duplicate transfer that the truth file does not name."""
    fetched = re.findall(r"RMSE ([\d.]+)", original.stdout.rpartition("training RMSE")[0])
    assert len(fetched) == 50
    assert len(set(fetched)) == 50


def test_twin_gives_the_same_output(original):
    twin = run("als_fixed", "25")
    assert (twin.returncode, twin.stderr) == (0, "")
    assert twin.stdout == original.stdout


def test_twin_gives_the_same_output_of_one_iteration():
    assert run("als_fixed", "1", "3").stdout == run("als", "1", "3").stdout


def test_seed_chooses_the_ratings(original):
    assert run("als_fixed", "25", "2").stdout != original.stdout


@pytest.mark.parametrize("arguments", [["0"], ["many"], ["5", "-1"], [""], ["99999999999"]])
def test_wrong_arguments_are_named(arguments):
    result = run("als", *arguments)
    assert result.returncode == 2
    assert "is no whole number" in result.stderr
    assert "usage: als" in result.stderr
