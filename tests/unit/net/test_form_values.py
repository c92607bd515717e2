"""A form's values are decoded as the standard library does, in pieces."""

from urllib.parse import quote_plus, unquote_plus

import pytest

from tollgate.serve.net.form_values import PIECE_BYTES, form_text


@pytest.mark.parametrize("offset", range(7))
@pytest.mark.parametrize("text", ["%41", "%", "%4", "%%41", "é€", "a+b%2B", "%zz"])
def test_values_are_decoded_across_the_ends_of_pieces(text: str, offset: int) -> None:
    sent = "x" * (PIECE_BYTES - offset) + quote_plus(text) + text * 3 + "y" * PIECE_BYTES
    assert form_text(sent.encode()) == unquote_plus(sent)


@pytest.mark.parametrize("value", ["", "+", "%C3%A9", "%41" * 100_000, "%" * 200_000])
def test_values_are_decoded(value: str) -> None:
    assert form_text(value.encode()) == unquote_plus(value)


def test_what_is_not_utf_8_is_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        form_text(b"%FF")
