import sys

import pytest


@pytest.fixture(autouse=True)
def _double_precision():
    """Peers round Python floats and priors to torch's default dtype; compare in double."""
    torch = sys.modules.get("torch")  # without it there is no peer to compare with
    if torch is None:
        yield
        return
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    yield
    torch.set_default_dtype(before)
