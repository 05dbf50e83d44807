import pytest

import parabolt

PUBLISHED = ("pco32", "pco64")


def pytest_addoption(parser):
    parser.addoption(
        "--strict-skips", action="store_true", help="fail the session if any test was skipped"
    )


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--strict-skips") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(params=PUBLISHED)
def problem(request):
    return parabolt.load_problem(request.param)


@pytest.fixture
def pco32():
    return parabolt.load_problem("pco32")


@pytest.fixture
def pco64():
    return parabolt.load_problem("pco64")
