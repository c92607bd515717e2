"""Ids of classes from the system's randomness, where Ray's core would draw them from its own.

A class that Ray is shown gets an id as it is imported. Ray's core draws it from a generator that
forks would share with their origin (`origin.py`), and then draw the same ids from for ever.
Import this before any class is shown to Ray.
"""

import os

import ray.actor
from ray import ActorClassID


class SystemClassID(ActorClassID):
    """An id of a class."""

    @classmethod
    def from_random(cls) -> "SystemClassID":
        return cls(os.urandom(cls.size()))


ray.actor.ActorClassID = SystemClassID  # type: ignore[attr-defined]
