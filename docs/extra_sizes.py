"""Prints what each extra of this environment adds on disk: `python docs/extra_sizes.py`, for docs/installation.md."""

from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

PROJECT = "lockstep-tts"


def needs(found: Distribution, extras: Iterable[str]) -> list[Requirement]:
    """The requirements of a distribution with these extras, in this environment."""
    wanted = [Requirement(text) for text in found.requires or []]
    chosen = [{"extra": extra} for extra in ("", *extras)]
    return [need for need in wanted if need.marker is None or any(need.marker.evaluate(one) for one in chosen)]


def closure(extras: Iterable[str]) -> dict[str, Distribution]:
    """Everything that Lockstep with these extras installs, by name; `PackageNotFoundError` for a missing one."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    pending = needs(distribution(PROJECT), extras)
    while pending:
        need = pending.pop()
        package = distribution(need.name)
        name = package.name.lower().replace("_", "-")
        found[name] = package
        if (name, frozenset(need.extras)) not in seen:
            seen.add((name, frozenset(need.extras)))
            pending += needs(package, need.extras)
    return found


def megabytes(packages: Iterable[Distribution]) -> float:
    """The size of the files of these packages, in MB of 10^6 bytes."""
    files = [package.locate_file(file) for package in packages for file in package.files or []]
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def main() -> None:
    """Print the base installation and each extra, with what it adds to the base."""
    base = closure([])
    print(f"{'without extras':15} {megabytes(base.values()):6.0f} MB in {len(base)} packages")
    for extra in distribution(PROJECT).metadata.get_all("Provides-Extra") or []:
        try:
            added = {name: package for name, package in closure([extra]).items() if name not in base}
        except PackageNotFoundError as error:
            print(f"{extra:15} not installed here ({error.name})")
            continue
        print(f"{extra:15} {megabytes(added.values()):6.0f} MB: {', '.join(sorted(added))}")


if __name__ == "__main__":
    main()
