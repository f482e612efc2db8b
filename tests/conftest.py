"""Property tests may take their time: a busy machine is no fault of the code."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("lara", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lara")
