"""The anchor of a day (F7): one hash for the heads of all books, as they were when the day ended.

Whoever keeps the anchors elsewhere can show later that no entry of those days was changed, even if
all hashes behind it were computed anew.

    leaf = SHA-256( 00 ‖ book ‖ ":" ‖ seq ‖ ":" ‖ hash )     the last entry before the day's end
    node = SHA-256( 01 ‖ left ‖ right )

The leaves are in the order of books. The tree over n of them splits at the largest power of two
below n, so it can be grown leaf by leaf with one node of each height in memory. Without any book,
the root is SHA-256 of nothing.
"""

from hashlib import sha256

from tollgate.actors.ledger.law.values import BookId

DAY_MS = 86_400_000


class MerkleTree:
    """Grows by leaves; `root` at any time."""

    def __init__(self) -> None:
        self.leaves = 0
        # (height, hash) of whole subtrees, from left to right; heights fall.
        self._peaks: list[tuple[int, bytes]] = []

    def add(self, book: BookId, seq: int, hash_: str) -> None:
        self.leaves += 1
        height, node = 0, sha256(b"\0" + f"{book}:{seq}:{hash_}".encode()).digest()
        while self._peaks and self._peaks[-1][0] == height:
            _, left = self._peaks.pop()
            height, node = height + 1, _joined(left, node)
        self._peaks.append((height, node))

    @property
    def root(self) -> str:
        """Hex."""
        if not self._peaks:
            return sha256().hexdigest()
        *lefts, (_, node) = self._peaks
        for _, left in reversed(lefts):
            node = _joined(left, node)
        return node.hex()


def _joined(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()
