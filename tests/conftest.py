import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The kernel lives on asyncio."""
    return "asyncio"
