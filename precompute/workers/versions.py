"""Versions of the packages that decide the bytes of a cache."""

from importlib.metadata import PackageNotFoundError, version

_VERSIONED = ("lockstep-tts", "numpy", "scipy", "soundfile", "soxr")


def installed_versions() -> dict[str, str]:
    """Package to its version in this process."""
    versions = dict[str, str]()
    for name in _VERSIONED:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "source"  # imported from a checkout that is not installed
    return versions
