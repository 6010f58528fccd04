"""Settings for every test."""

import hypothesis

# A time limit per test is pytest-timeout's business; one per example only makes slow machines fail.
hypothesis.settings.register_profile("pointstamp", deadline=None)
hypothesis.settings.load_profile("pointstamp")
