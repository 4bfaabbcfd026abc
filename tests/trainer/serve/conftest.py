"""One server for all tests of this folder."""

import pytest
from server_process import running_server


@pytest.fixture(scope="session")
def server(finished_run):
    """The server that the tests share; it takes eight requests at once."""
    with running_server(finished_run[0], "--max-requests", "8", "--max-letters", "2000") as client:
        yield client


@pytest.fixture(scope="session")
def start_server(finished_run):
    """`with start_server("--option", ..., VARIABLE=...) as client`: a server of its own."""

    def start(*arguments, **environment):
        return running_server(finished_run[0], *arguments, **environment)

    return start
