"""The tables that Tollgate ships hold what part C says."""

from pathlib import Path

import pytest

from tollgate.actors.ledger.law.values import Currency
from tollgate.serve.payments.api.bodies.constraints import iban_problem
from tollgate.serve.payments.reference.data_file import DataFileError
from tollgate.serve.payments.reference.tables import ReferenceData, load_reference

FOLDER = Path(__file__).parents[3] / "configs/payments"
NOW_MS = 1_800_000_000_000

FUNDABLE = "BGN CHF CZK DKK EUR GBP HUF NOK PLN RON SEK USD"
WITHOUT_DECIMALS = "BIF BYR CLP DJF GNF JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
WITH_THREE = "BHD IQD JOD KWD OMR TND"
DEPRECATED = "HRK MRO SLL STD VES"
CLIENT = {2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 18, 19, 20, 25, 29, 30, 31}
MERCHANT = {13, 21, 22, 26, 27, 28}
BOTH = {1, 11, 12, 14, 15, 16}
# From the registers of the countries, as published for everybody to check with.
IBANS = """AT611904300234573201 BE68539007547034 CH9300762011623852957 CZ6508000000192000145399
    DE89370400440532013000 DK5000400440116243 EE382200221020145685 ES9121000418450200051332
    FI2112345600000785 FR1420041010050500013M02606 GB29NWBK60161331926819
    GR1601101250000000012300695 HU42117730161111101800000000 IE29AIBK93115212345678
    IS140159260076545510730339
    IT60X0542811101000000123456 LT121000011101001000 LU280019400644750000 LV80BANK0000435195001
    MT84MALT011000012345MTLCAST001S NL91ABNA0417164300 NO9386011117947 PL61109010140000071219812874
    PT50000201231234567890154 RO49AAAA1B31007593840000 SE4550000000058398257466
    SI56263300012039086 SK3112000000198742637541"""


@pytest.fixture(scope="module")
def reference() -> ReferenceData:
    return load_reference(FOLDER)


def test_shipped_currencies_are_those_of_part_c(reference: ReferenceData) -> None:
    table = reference.currencies.by_code
    assert len(table) == 157
    assert list(reference.currencies.fundable) == FUNDABLE.split()
    assert sorted(code for code in table if table[code].exponent == 0) == WITHOUT_DECIMALS.split()
    assert sorted(code for code in table if table[code].exponent == 3) == WITH_THREE.split()
    assert sorted(code for code in table if table[code].is_deprecated) == DEPRECATED.split()
    rest = table.keys() - {*WITHOUT_DECIMALS.split(), *WITH_THREE.split()}
    assert {table[code].exponent for code in rest} == {2}


def test_shipped_processing_errors_are_those_of_part_c(reference: ReferenceData) -> None:
    table = {code: facts.error for code, facts in reference.errors.by_code.items()}
    assert {code for code in table if table[code].is_client} == CLIENT | BOTH
    assert {code for code in table if table[code].is_merchant} == MERCHANT | BOTH
    assert all(error.code == code and error.message for code, error in table.items())
    facts = reference.errors.by_code.values()
    usual = {each.error.code for each in facts if each.is_usual_for_recurring}
    assert usual == {6, 7, 8, 9, 10, 11, 12, 25}
    advice = {each.error.code: each.error.advice for each in facts}
    numbers = {
        code: (each.retry_after_hours, each.attempts_max) for code, each in advice.items() if each
    }
    assert numbers == {code: (0, 0) if code in (6, 10) else (24, 5) for code in table}
    assert all(each.error.text.endswith(".") for each in facts)


def test_every_currency_of_today_can_be_exchanged(reference: ReferenceData) -> None:
    today = [each.code for each in reference.currencies.by_code.values() if not each.is_deprecated]
    for target in reference.currencies.fundable:
        missing = [code for code in today if reference.rates.rate(code, target, NOW_MS) is None]
        assert missing == []
    for gone in DEPRECATED.split():
        assert reference.rates.rate(Currency(gone), Currency("EUR"), NOW_MS) is None


def test_shipped_countries_and_ibans_are_those_of_part_c(reference: ReferenceData) -> None:
    assert len(reference.countries) == 250
    assert reference.iban_lengths.keys() <= reference.countries
    assert [each for each in IBANS.split() if iban_problem(each, reference.iban_lengths)] == []


def test_shipped_fees_are_in_fundable_currencies(reference: ReferenceData) -> None:
    assert reference.pricing.rate_ppm < 1_000_000
    for price in (reference.pricing.flat, reference.pricing.dispute):
        assert price.currency in reference.currencies.fundable


def test_a_folder_without_tables_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"currencies\.yaml: cannot be read: No such file"):
        load_reference(tmp_path)


def test_a_table_without_an_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "currencies.yaml").write_bytes(b"#" * (8 * 1024 * 1024 + 1))
    with pytest.raises(DataFileError, match=r"currencies\.yaml: is larger than 8388608 bytes"):
        load_reference(tmp_path)
