"""Tests of orders of rows in which passes visit them."""

from __future__ import annotations

import numpy as np

from ffm.model.compiled import index
from ffm.model.gpu_times.fitting import visiting_order
from ffm.model.visits import at, inverse, row_at
from tests.model.timelines import Row, simple_device_work, timeline


def test_the_order_of_the_rows_takes_no_memory() -> None:
    run = timeline([Row(), Row(), Row()])
    order = visiting_order(run, simple_device_work(run))
    assert not order.nbytes and not inverse(order).nbytes
    assert [row_at(order, place) for place in range(3)] == [0, 1, 2]
    assert at(order, np.array([2, 0])).tolist() == [2, 0]


def test_rows_and_places_lead_to_each_other() -> None:
    order = np.array([2, 0, 3, 1])
    place = inverse(order)
    rows = at(order, np.arange(4))
    assert [row_at(order, each) for each in range(4)] == rows.tolist() == [2, 0, 3, 1]
    assert at(place, rows).tolist() == [0, 1, 2, 3]


def test_an_index_is_the_number_whatever_its_type() -> None:
    for number in (0, 7, np.int32(7), np.int64(1 << 40)):
        assert index(number) == number
        assert isinstance(index(number), int)
