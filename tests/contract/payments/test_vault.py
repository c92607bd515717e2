"""The vault: tokens under keys of a file that is rotated (part H, The vault)."""

import pickle
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.manual_clock import ManualClock
from tollgate.serve.commands.payments.command import payments
from tollgate.serve.payments.checkout.vault import (
    LIVES_MS,
    TOKEN_LENGTH,
    SecretPart,
    TokenCard,
    TokenFault,
    TokenProblem,
    Vault,
)
from tollgate.serve.payments.network.simulator import is_test_card
from tollgate.serve.payments.secrets.master_secret import SecretFileError
from tollgate.serve.payments.secrets.vault_keys import (
    KEYS_MAX,
    open_vault_keys,
    rotate_vault_key,
)

NUMBER, CODE = "4100000000000000", "7391"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "payments" / "vault-keys"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_767_225_600)


@pytest.fixture
def vault(file: Path, clock: ManualClock) -> Vault:
    return Vault(open_vault_keys(file), clock)


def sealed(vault: Vault) -> tuple[str, str]:
    number, code = vault.seal(SecretPart.NUMBER, NUMBER), vault.seal(SecretPart.CODE, CODE)
    assert isinstance(number, str)
    assert isinstance(code, str)
    return number, code


def opened(vault: Vault, number: str, code: str) -> TokenCard | TokenFault:
    found = vault.card(number, code, 8, 2066)
    if isinstance(found, TokenProblem):
        return found.fault
    assert isinstance(found, TokenCard)
    return found


def test_a_token_is_its_card_for_a_while(vault: Vault, clock: ManualClock) -> None:
    number, code = sealed(vault)
    assert len(number) == len(code) == TOKEN_LENGTH, "a length would tell one from the other"
    assert number != vault.seal(SecretPart.NUMBER, NUMBER)
    found = opened(vault, number, code)
    assert isinstance(found, TokenCard)
    assert is_test_card(found.card)
    assert NUMBER not in repr(found)
    with pytest.raises(TypeError):
        pickle.dumps(found)
    assert len(found.tokens) == 2
    assert opened(vault, code, code) is TokenFault.OTHER_PART
    clock.advance(LIVES_MS / 1000)
    assert opened(vault, number, code) is TokenFault.UNKNOWN


def test_a_token_has_one_spelling(vault: Vault) -> None:
    number, code = sealed(vault)
    while not set(number) & set("-_"):
        number, code = sealed(vault)
    other = number.replace("-", "+").replace("_", "/")
    assert opened(vault, other, code) is TokenFault.UNKNOWN
    assert opened(vault, number[:-1] + "!", code) is TokenFault.UNKNOWN
    assert opened(vault, "é" * TOKEN_LENGTH, code) is TokenFault.UNKNOWN


def test_a_new_key_opens_what_the_older_ones_sealed(
    file: Path, clock: ManualClock, vault: Vault
) -> None:
    old = sealed(vault)
    assert rotate_vault_key(file) == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    other = Vault(open_vault_keys(file), clock)
    new = sealed(other)
    assert isinstance(opened(other, *old), TokenCard)
    assert isinstance(opened(vault, *new), TokenCard), "another process's key is looked for"
    for _ in range(KEYS_MAX):
        rotate_vault_key(file)
    assert opened(Vault(open_vault_keys(file), clock), *old) is TokenFault.UNKNOWN


def test_a_file_that_cannot_be_used_is_said(file: Path, vault: Vault) -> None:
    token = sealed(vault)
    file.write_text("no key\n")
    with pytest.raises(SecretFileError, match="restore it"):
        open_vault_keys(file)
    assert not vault.keys.reload(), "what was read is kept"
    assert isinstance(opened(vault, *token), TokenCard)
    file.chmod(0o644)
    with pytest.raises(SecretFileError, match="chmod 600"):
        open_vault_keys(file)


def test_the_command_rotates_the_file_of_the_settings(file: Path, tmp_path: Path) -> None:
    environment = {"PAYMENTS_VAULT_KEY_FILE": str(file), "TOLLGATE_DATA": str(tmp_path)}
    failed = CliRunner().invoke(payments, ["rotate-vault-key"], env=environment)
    assert failed.exit_code == 1
    open_vault_keys(file)
    done = CliRunner().invoke(payments, ["rotate-vault-key"], env=environment)
    assert (done.exit_code, "holds 2 keys" in done.output) == (0, True)
