"""Where an unexpected exception of a decision becomes an error status, for both fronts."""

import logging
from collections.abc import Sequence

from tollgate.serve.ratelimit.fronts.front import Answer, DecideBatch, Refused, Service, StatusCode

logger = logging.getLogger(__name__)

_ANSWER_TYPES = {bytes, Refused}
_INTERNAL_ERROR = Refused(StatusCode.INTERNAL, "internal error, see the log of the service")


def guarded(service: Service) -> DecideBatch:
    """`service.decide_batch`, but never raising: a batch that fails is refused as a whole.

    The service hears of every such batch; the log gets one trace per failure in a row.
    """
    is_failing = False

    def decide_batch(payloads: Sequence[bytes]) -> list[Answer]:
        nonlocal is_failing
        try:
            answers = service.decide_batch(payloads)
            assert len(answers) == len(payloads), "decide_batch gives one answer per request"
            assert set(map(type, answers)) <= _ANSWER_TYPES, "an answer is bytes or Refused"
        except Exception as error:
            if not is_failing:
                logger.exception("A batch of %d calls could not be decided", len(payloads))
            is_failing = True
            service.on_error(error)
            return [_INTERNAL_ERROR] * len(payloads)
        is_failing = False
        return answers

    return decide_batch
