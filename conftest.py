"""Root test configuration: strict JAX settings, shape-checked signatures and a fixed Hypothesis profile."""

import os
import signal

# A shell without job control has its background processes ignore SIGINT, and their children inherit that. Tests send
# it to theirs; a handler, unlike the ignoring, is not inherited.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8").strip()

import hypothesis
import jax
from jaxtyping import install_import_hook

# Packs hold no arrays, and their small functions run hundreds of thousands of times: they are left unwrapped.
install_import_hook(["engine", "experiments"], "beartype.beartype")

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
