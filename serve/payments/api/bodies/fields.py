"""Takes the fields of a body one by one and remembers what is wrong with them, so that a caller is
told everything at once. A value that is wrong is replaced by a stand-in, which nobody sees: `check`
comes before any use.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from tollgate.actors.ledger.law.values import EntityId
from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.bodies.constraints import FieldError, is_id
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.rejections import BadRequest

T = TypeVar("T")
Check = Callable[[object, str], T | FieldError]

REQUIRED = "is required"
_NO_ID = EntityId("")


class BodyFields:
    """The fields of one body. Paths are dotted; null and the empty text mean absent."""

    def __init__(self, body: Body) -> None:
        self._fields = body.fields
        self._is_form = body.is_form
        self._errors: list[FieldError] = []

    def check(self) -> None:
        """Raises BadRequest with everything that was wrong."""
        if self._errors:
            raise BadRequest(*self._errors)

    def refuse(self, field: str, message: str) -> None:
        self._errors.append(FieldError(field, message))

    def need(self, path: str, check: Check[T], stand_in: T) -> T:
        """A field that must be there."""
        value = self.raw(path)
        if value is None or value == "":
            self.refuse(path, REQUIRED)
            return stand_in
        return self._taken(check(value, path), stand_in)

    def may(self, path: str, check: Check[T], otherwise: T) -> T:
        """A field that may be absent."""
        value = self.raw(path)
        if value is None or value == "":
            return otherwise
        return self._taken(check(value, path), otherwise)

    def amount(self, path: str = "amount") -> int:
        """A required amount in minor units."""
        is_form = self._is_form
        return self.need(
            path, lambda value, field: constraints.amount(value, field, is_form=is_form), 1
        )

    def flag(self, path: str) -> bool:
        """An optional boolean; false when absent."""
        is_form = self._is_form
        return self.may(
            path, lambda value, field: constraints.boolean(value, field, is_form=is_form), False
        )

    def reference(self, path: str) -> EntityId:
        """A required id of something."""
        return self.need(path, _id, _NO_ID)

    def optional_reference(self, path: str) -> EntityId | None:
        """An id of something; `false` means absent as well, because clients send that."""
        return None if self.raw(path) is False else self.may(path, _id, _NO_ID) or None

    def raw(self, path: str) -> object:
        """The value at a path, unchecked; None when there is none."""
        value: object = self._fields
        steps = path.split(".")
        for depth, step in enumerate(steps):
            if not isinstance(value, Mapping):
                if value is not None and value != "":
                    self._not_an_object(".".join(steps[:depth]))
                return None
            value = value.get(step)
        return value

    def _not_an_object(self, path: str) -> None:
        error = FieldError(path, "must be an object")
        if error not in self._errors:
            self._errors.append(error)

    def _taken(self, found: T | FieldError, otherwise: T) -> T:
        if isinstance(found, FieldError):
            self._errors.append(found)
            return otherwise
        return found


def _id(value: object, field: str) -> EntityId | FieldError:
    if isinstance(value, str) and is_id(value):
        return EntityId(value)
    return FieldError(field, "must be an id: 24 digits of 0-9 and a-f")
