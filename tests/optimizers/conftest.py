import pytest
import torch


@pytest.fixture(autouse=True)
def _double_precision():
    """Peers round Python floats and priors to torch's default dtype; compare in double."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    yield
    torch.set_default_dtype(before)
