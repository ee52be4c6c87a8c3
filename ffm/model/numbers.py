"""Values of the model's enumerations as plain numbers, for passes compiled by Numba, which knows no enumerations."""

from __future__ import annotations

from ffm.model.device import Action, Direction
from ffm.model.timeline import Kind, Problem

SYNCHRONIZATION = int(Kind.SYNCHRONIZATION)
TRANSFER = int(Kind.TRANSFER)
FREE = int(Kind.FREE)
ALLOCATION = int(Kind.ALLOCATION)
LAUNCH = int(Kind.LAUNCH)

UNNECESSARY_SYNCHRONIZATION = int(Problem.UNNECESSARY_SYNCHRONIZATION)
MISPLACED_SYNCHRONIZATION = int(Problem.MISPLACED_SYNCHRONIZATION)
UNNECESSARY_TRANSFER = int(Problem.UNNECESSARY_TRANSFER)
SYNCHRONIZATION_PROBLEM = UNNECESSARY_SYNCHRONIZATION | MISPLACED_SYNCHRONIZATION

ENQUEUE = int(Action.ENQUEUE)
ENQUEUE_AND_WAIT = int(Action.ENQUEUE_AND_WAIT)
WAIT_AND_ENQUEUE = int(Action.WAIT_AND_ENQUEUE)
WAIT_CONTEXT = int(Action.WAIT_CONTEXT)
WAIT_STREAM = int(Action.WAIT_STREAM)
WAIT_EVENT = int(Action.WAIT_EVENT)
RECORD_EVENT = int(Action.RECORD_EVENT)
STREAM_WAIT_EVENT = int(Action.STREAM_WAIT_EVENT)
SET_AND_WAIT = int(Action.SET_AND_WAIT)
WAIT_THREAD = int(Action.WAIT_THREAD)
LOAD = int(Action.LOAD)
LOAD_AND_ENQUEUE = int(Action.LOAD_AND_ENQUEUE)

TO_DEVICE = int(Direction.TO_DEVICE)
FROM_DEVICE = int(Direction.FROM_DEVICE)
