"""The contract's assertions explain themselves, as those of a test module do."""

import pytest

pytest.register_assert_rewrite("core.sqlite.store_contract")
