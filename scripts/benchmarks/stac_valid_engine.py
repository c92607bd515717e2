"""Times stac-valid's fast engine: run by the Python of an environment that has it.

Arguments: a file of documents (one a line, as texts in JSON), the official schema, and rounds.
It is given this one schema: documents are taken to declare no other extension, and the schema of
the kind of document is an empty one. Prints documents per second of processor time, by round, and
how many it took for valid.
"""

import json
import sys
from pathlib import Path
from time import process_time
from typing import Any

from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
from stac_validator import fast_validator  # type: ignore[import-not-found]

DRAFT_07 = "http://json-schema.org/draft-07/schema"
KINDS = {"Feature": "item", "Collection": "collection", "Catalog": "catalog"}


def main() -> None:
    lines, schema_file, rounds = sys.argv[1:]
    texts = [json.loads(line) for line in Path(lines).read_text().splitlines()]
    schema = json.loads(Path(schema_file).read_text())
    identifier = schema["$id"].rstrip("#")
    known = fast_validator.SCHEMA_CACHE
    known[identifier] = schema
    known[DRAFT_07] = known[f"{DRAFT_07}#"] = REGISTRY.contents(f"{DRAFT_07}#")
    for kind in KINDS.values():
        known[f"https://schemas.stacspec.org/v1.0.0/{kind}-spec/json-schema/{kind}.json"] = {}
    speeds = []
    for _ in range(int(rounds) + 1):  # (the first one compiles the schema)
        begun_s = process_time()
        valid = sum(is_valid(json.loads(text), identifier) for text in texts)
        speeds.append(len(texts) / (process_time() - begun_s))
    sys.stdout.write(json.dumps({"per_second": speeds[1:], "valid": valid}))


def is_valid(document: Any, identifier: str) -> bool:
    kind = KINDS[document["type"]]
    validate, _ = fast_validator.get_validator(kind, "1.0.0", [identifier], quiet=True)
    try:
        validate(document)
    except fast_validator.FastSTACValidationError:
        return False
    return True


if __name__ == "__main__":
    main()
