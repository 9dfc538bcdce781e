"""What every test shares: how hypothesis searches, and the fixtures."""

import os
import tempfile

from hypothesis import HealthCheck, settings

# A slow machine is no failure, so no profile has a deadline. On CI the same commit gives the same
# examples; `make deep` looks further, anew each time.
_SLOW_IS_FINE = [HealthCheck.too_slow]
settings.register_profile("dev", deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile(
    "deep", deadline=None, max_examples=2_000, suppress_health_check=_SLOW_IS_FINE
)
# Keys and last seals lie in the signer's home: never in that of whoever runs the tests.
os.environ["TRIPOD_HOME"] = tempfile.mkdtemp(prefix="tripod-home-")

settings.load_profile("ci" if os.environ.get("CI") else "dev")
