"""What every test shares: hypothesis without a stop-watch, and the same examples in each run."""

import os

from hypothesis import HealthCheck, settings

# Tests compile what they test; those of the cache on disk have directories of their own.
os.environ["MIGRAPHX_JAX_CACHE"] = "off"

settings.register_profile(
    "default",
    deadline=None,  # the first example of a shape compiles
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("default")
