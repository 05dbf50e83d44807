import pytest

from parabolt.optimizers.registry import make_optimizer, optimizer_names
from parabolt.testing import OptimizerContract


@pytest.fixture(params=optimizer_names(), autouse=True)
def _name(request):
    request.instance.name = request.param


class TestEveryOptimizer(OptimizerContract):
    name: str

    def make_optimizer(self, space, **options):
        return make_optimizer(self.name, space, **options)
