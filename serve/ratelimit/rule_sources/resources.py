"""Reads what a control plane sends (B20) into drafts, beside those of files (B1).

A resource is kept as a rule file whose text is the serialised message: so the archive holds both
alike, and one pipeline checks and publishes them. `value_to_metric` and `share_threshold` cannot be
sent; what YAML alone can get wrong cannot be wrong here.
"""

from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from tollgate.actors.ratelimit.rules.builder import DESCRIPTORS_MAX
from tollgate.actors.ratelimit.rules.drafts import DomainDraft, LimitDraft, RuleDraft
from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError
from tollgate.serve.ratelimit.rule_sources.resource_messages import (
    RESOURCE_NAME,
    RESOURCE_TYPE_URL,
    ResourceMessage,
    unit_name,
)

RESOURCES_MAX = 10_000
# Of a type that is not ours, as much is told.
TYPE_URL_CHARS_MAX = 200


def response_files(response: Any) -> list[RuleFile]:
    """The resources of a DiscoveryResponse. RuleFileError for one that is not about rules: what is
    of another type, or empty, does not say that there are none."""
    if response.type_url != RESOURCE_TYPE_URL:
        said = response.type_url[:TYPE_URL_CHARS_MAX]
        reason = f"is of type '{said}', and not '{RESOURCE_TYPE_URL}'"
        raise RuleFileError("the response", None, reason)
    return resource_files(response.resources)


def resource_files(packed: Any) -> list[RuleFile]:
    """The resources in a list of `google.protobuf.Any`. RuleFileError for what is none."""
    if len(packed) > RESOURCES_MAX:
        raise RuleFileError("the response", None, f"has more than {RESOURCES_MAX} resources")
    files = []
    for number, each in enumerate(packed, start=1):
        place = f"resource {number} of {len(packed)}"
        if each.type_url != RESOURCE_TYPE_URL:
            reason = f"is of type '{each.type_url}', and not '{RESOURCE_TYPE_URL}'"
            raise RuleFileError(place, None, reason)
        files.append(RuleFile(_decoded(place, each.value).name, each.value))
    return files


def read_resource(file: RuleFile) -> DomainDraft:
    """The draft in a resource. RuleFileError: it is none, or beyond a bound."""
    message = _decoded(file.name, file.content())
    return DomainDraft(file.name, message.domain, _Reader(file.name).rules(message.descriptors))


def _decoded(place: str, content: bytes) -> Any:
    try:
        return ResourceMessage.FromString(content)
    except DecodeError:
        raise RuleFileError(place, None, f"cannot be decoded as {RESOURCE_NAME}") from None


class _Reader:
    """Reads one resource, and no further than a whole set may go."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._descriptors = 0

    def rules(self, messages: Any) -> tuple[RuleDraft, ...]:
        self._descriptors += len(messages)
        if self._descriptors > DESCRIPTORS_MAX:
            raise RuleFileError(self._name, None, f"has more than {DESCRIPTORS_MAX} descriptors")
        return tuple(map(self._rule, messages))

    def _rule(self, message: Any) -> RuleDraft:
        metadata, problem = _metadata(message) if message.HasField("metadata") else (None, "")
        return RuleDraft(
            key=message.key,
            value=message.value,
            limit=_limit(message.rate_limit) if message.HasField("rate_limit") else None,
            is_shadow=message.shadow_mode,
            is_quota=message.quota_mode,
            has_detailed_metric=message.detailed_metric,
            metadata=metadata,
            metadata_problem=problem,
            children=self.rules(message.descriptors),
        )


def _limit(message: Any) -> LimitDraft:
    has_no_unit = message.unlimited and not message.unit
    return LimitDraft(
        unit="" if has_no_unit else unit_name(message.unit),
        requests_per_unit=message.requests_per_unit,
        is_unlimited=message.unlimited,
        name=message.name,
        replaces=tuple(each.name for each in message.replaces),
    )


def _metadata(message: Any) -> tuple[dict[str, object] | None, str]:
    try:
        return json_format.MessageToDict(message.metadata), ""
    except (ValueError, json_format.Error) as error:  # a number that JSON has not
        return None, str(error)
