"""The operator's files as they are shipped: the defaults of settings that name a place."""

from importlib.resources import files
from pathlib import Path

# (In a checkout the package holds links; here are the files themselves.)
SHIPPED_CONFIGS = Path(str(files("tollgate"))).joinpath("configs").resolve()
SAMPLE_RULES = SHIPPED_CONFIGS / "ratelimit"
PAYMENTS_TABLES = SHIPPED_CONFIGS / "payments"
