"""Letters to people whom a stranger names: nothing in them can be clicked on."""

from email import message_from_bytes
from email.policy import default

from hypothesis import given
from hypothesis import strategies as st

from tollgate.serve.payments.mail.mailer import NAME_LENGTH_MAX, Invitation, invitation_letter

DOTS = (".", "。", "．", "｡", "․")
SLASHES = ("/", "\\", "／", "＼")
SIGNS = (*DOTS, *SLASHES, "@", "＠", "﹫", ":", "：", "\u200b", "\u0336", " ", "…", "⒈")
names = st.lists(
    st.sampled_from([*SIGNS, "http", "evil", "com", "A/S", "Café"]) | st.text(max_size=2),
    max_size=12,
).map("".join)


def named_in(name: str) -> str:
    letter = invitation_letter(Invitation("one@example.com", "m", name), "t@example.com", 0.0)
    text: str = message_from_bytes(letter.content, policy=default).get_content()
    return text.removeprefix("Hello,").partition(" has given you")[0].strip()


@given(names)
def test_no_name_is_a_link(name: str) -> None:
    seen = named_in(name)
    assert len(seen) <= max(NAME_LENGTH_MAX, len("Somebody"))
    for each in DOTS:
        seen = seen.replace(each, ".")
    for each in SLASHES:
        seen = seen.replace(each, "/")
    for word in seen.split():
        assert "@" not in word
        assert "//" not in word
        assert ":/" not in word
        parts = [part for part in word.split(".") if part]
        assert len(parts) <= 1, "a dot may end a word or begin one, and joins none"


def test_what_companies_are_called_stays() -> None:
    for name in ("Bang & Co. A/S", "Café 3:1", "Dr. No"):
        assert named_in(name) == name
