"""Tags that are part of a statistic's name, as the reference writes them: `name.__k=v` (B11, B19).

Only the names below have any: others may hold request text, where what looks like a tag is text.
"""

TAGGED = ("ratelimit.memcache.", "payments.", "catalog.")
"""The beginnings of names that the code gives tags."""
MARK = ".__"

Tags = tuple[tuple[str, str], ...]


def parted(name: str) -> tuple[str, Tags]:
    """The name without its tags, and these in order."""
    if MARK not in name or not name.startswith(TAGGED):
        return name, ()
    head, *parts = name.split(MARK)
    pairs = (part.partition("=") for part in parts)
    return head, tuple((key, value) for key, _, value in pairs)
