"""The last good rules on disk, for a config watcher that is restarted."""

import json
import os
from pathlib import Path

from tollgate.actors.ratelimit.rules.rule_file import RuleFile
from tollgate.actors.ratelimit.watching.watcher import GoodRules


class FileArchive:
    """One JSON file, replaced as a whole. Names and texts survive byte for byte."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def put_away(self, good: GoodRules) -> None:
        """Keep these rules in place of those kept before. OSError when the disk refuses."""
        document = {
            "run": good.run,
            "number": good.number,
            "files": [[file.name, file.content().decode("latin-1")] for file in good.files],
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".new")
        draft.write_text(json.dumps(document))
        os.replace(draft, self._path)

    def take_out(self) -> GoodRules | None:
        """What was kept last; None when there is nothing, or nothing that can be read."""
        try:
            document = json.loads(self._path.read_text())
            files = tuple(
                RuleFile(str(name), str(text).encode("latin-1")) for name, text in document["files"]
            )
            return GoodRules(str(document["run"]), int(document["number"]), files)
        except (OSError, ValueError, KeyError, TypeError):
            return None
