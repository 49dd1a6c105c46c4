"""What every test stands on: bounded Hypothesis profiles, an environment without the user's settings, shared vectors."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres_server import postgres_address

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"

# Bounded, so that the suite stays short on two cores; no deadline and no complaint about slow data, because a shared
# machine is slow at times. The same examples every run: red means that the change broke something. `make soak` looks
# elsewhere each time, at many more; a failure prints how to repeat it.
settings.register_profile(
    "bounded",
    max_examples=60,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("soak", settings.get_profile("bounded"), max_examples=2000, derandomize=False)
settings.load_profile("bounded")  # `make soak` chooses the other by --hypothesis-profile


def _forget_user_settings() -> None:
    """Drop the settings of whoever runs the tests; TURNFOLD_LIVE_* and TURNFOLD_TEST_* are the tests' own."""
    for name in [name for name in os.environ if name.startswith("TURNFOLD_")]:
        if not name.startswith(("TURNFOLD_LIVE_", "TURNFOLD_TEST_")):
            del os.environ[name]


_forget_user_settings()


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The folder of shared test vectors; skips where the checkout has none beside it."""
    folder = SHARED / "vectors"
    if not folder.is_dir():
        pytest.skip("no shared vectors beside this checkout (../shared/vectors)")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL database for tests."""
    with postgres_address() as address:
        yield address
