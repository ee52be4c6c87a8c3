"""Values of `ffm.model.device.Action` as plain numbers, for passes compiled by Numba, which knows no enumerations."""

from __future__ import annotations

from ffm.model.device import Action

ENQUEUE = int(Action.ENQUEUE)
ENQUEUE_AND_WAIT = int(Action.ENQUEUE_AND_WAIT)
WAIT_AND_ENQUEUE = int(Action.WAIT_AND_ENQUEUE)
WAIT_CONTEXT = int(Action.WAIT_CONTEXT)
WAIT_STREAM = int(Action.WAIT_STREAM)
WAIT_EVENT = int(Action.WAIT_EVENT)
RECORD_EVENT = int(Action.RECORD_EVENT)
STREAM_WAIT_EVENT = int(Action.STREAM_WAIT_EVENT)
SET_AND_WAIT = int(Action.SET_AND_WAIT)
