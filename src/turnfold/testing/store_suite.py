"""StoreSuite: the contract of `turnfold.ports.Store`, as tests that any implementation can run.

Subclass it and give it a fixture named `store`, an empty and open store. Needs pytest and pytest-asyncio.

    class TestMyStore(StoreSuite):
        @pytest.fixture
        async def store(self) -> AsyncIterator[Store]:
            async with MyStore() as store:
                yield store
"""

from __future__ import annotations

import pytest

from turnfold.testing.branch_suite import BranchSuite
from turnfold.testing.changes_suite import ChangesSuite
from turnfold.testing.checkpoint_suite import CheckpointSuite, StateSuite
from turnfold.testing.log_suite import ListingSuite, LogSuite


@pytest.mark.asyncio
class StoreSuite(LogSuite, ListingSuite, BranchSuite, CheckpointSuite, ChangesSuite, StateSuite):
    """Everything that a `Store` promises."""
