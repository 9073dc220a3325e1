from types import SimpleNamespace

import triton.testing


def test_a_driver_times_with_its_own_graphs(monkeypatch):
    asked = {}

    def do_bench_graph(fn, **options):
        asked.update(options)
        return fn()

    driver = SimpleNamespace(active=SimpleNamespace(do_bench_graph=do_bench_graph))
    monkeypatch.setattr(triton.testing, "runtime", SimpleNamespace(driver=driver))
    assert triton.testing.do_bench_cudagraph(lambda: 2.5, rep=7, quantiles=[0.5], return_mode="median") == 2.5
    assert asked == {"rep": 7, "grad_to_none": None, "quantiles": [0.5], "return_mode": "median"}
