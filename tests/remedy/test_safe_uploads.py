"""Situations in which corrected uploads could be noticed: they are made safe, or not made; the program sees no
difference.
"""

from __future__ import annotations

import pytest

from tests.remedy.applying import Play

pytestmark = pytest.mark.usefixtures("slow_gpu")


def test_the_source_of_an_upload_may_be_overwritten_at_once(play: Play) -> None:
    counts = play("source_is_overwritten").counts
    assert counts["uploads_staged"] + counts["uploads_copied"] == 3


def test_asynchronous_uploads_of_what_the_device_holds_are_copied_there(play: Play) -> None:
    counts = play("sent_again").counts
    assert (counts["uploads_kept"], counts["uploads_copied"]) == (2, 6)


def test_an_upload_is_left_out_only_while_its_destination_is_the_same_memory(play: Play) -> None:
    counts = play("sent_where_it_is").counts
    assert (counts["uploads_nothing"], counts["uploads_copied"], counts["uploads_kept"]) == (10, 6, 2)


def test_an_upload_that_is_left_out_keeps_streams_in_order(play: Play) -> None:
    assert play("sent_between_streams").counts["uploads_nothing"] == 3


def test_a_stream_copies_only_what_has_been_filled(play: Play) -> None:
    counts = play("sent_to_streams").counts
    assert counts["uploads_copied"] >= 8
    assert counts["stopped"] == 0


def test_what_the_gpu_reads_later_is_compared_only_where_it_would_be_read_at_once(play: Play) -> None:
    counts = play("source_is_filled_later").counts
    assert counts["uploads_copied"] >= 4
    assert counts["waits_host_memory"] >= 3  # a wait for a value
    assert counts["uploads_pinned"] >= 2  # a kernel that waits


def test_a_source_that_is_being_filled_is_not_compared(play: Play) -> None:
    assert play("source_is_being_filled").counts["waits_host_memory"] == 6


def test_memory_of_the_drivers_pool_is_followed_until_it_is_freed(play: Play) -> None:
    counts = play("pool_memory_goes_round").counts
    assert counts["uploads_copied"] == 3
    assert counts["downloads_staged"] == 4
    assert counts["waits_source"] == 0


def test_an_upload_in_a_graph_reads_its_source_in_each_launch(play: Play) -> None:
    counts = play("sent_by_a_graph").counts
    assert counts["waits_capture"] == 1
    assert counts["uploads_copied"] + counts["uploads_nothing"] == 0


def test_an_upload_to_memory_that_is_not_followed_is_left_and_counted(play: Play) -> None:
    counts = play("sent_to_managed_memory").counts
    assert counts["uploads_unfollowed"] == 2
    assert counts["uploads_kept"] == 0


def test_contents_that_come_back_are_copied_on_the_device(play: Play) -> None:
    assert play("contents_come_back").counts["uploads_copied"] >= 4


def test_contents_that_are_there_are_not_sent_again_unless_something_was_written_since(play: Play) -> None:
    counts = play("contents_are_there").counts
    assert counts["uploads_nothing"] == 7
    assert counts["uploads_copied"] >= 5
