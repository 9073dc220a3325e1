"""Every way in which a process can begin with the device ``spirv``: name → statements after ``import torch``.

``FOLDER`` holds files that another process has saved (``PREPARED``). ``expect(tensor, numbers)`` wants a tensor of the
device with these numbers. What statements raise has to be caught by them.

As a program this is a server: for each name that it reads it forks, so that each of the processes has imported torch,
and nothing has used the device. It answers in a line how that process ended, and with which last words. The processes
have imported triton, too, unless the server's argument is ``torch``.
"""

import json
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from tests.device.forks import forked

#: What the files hold that other processes begin with.
PREPARED = """
import pickle
torch.save({"x": torch.arange(3.0), "y": torch.ones(2)}, FOLDER / "cpu.pt")
torch.save(torch.arange(3.0, device="spirv"), FOLDER / "spirv.pt")
torch.save(torch.nn.Linear(2, 2).state_dict(), FOLDER / "linear.pt")
(FOLDER / "tensor.pickle").write_bytes(pickle.dumps(torch.arange(3.0, device="spirv")))
(FOLDER / "parameter.pickle").write_bytes(pickle.dumps(torch.nn.Parameter(torch.arange(3.0, device="spirv"))))
(FOLDER / "module.pickle").write_bytes(pickle.dumps(tied().to("spirv")))
torch.jit.script(torch.nn.Linear(2, 2)).save(str(FOLDER / "scripted.pt"))
for device in ("cpu", "spirv"):
    exported = torch.export.export(torch.nn.Linear(2, 2).to(device), (torch.ones(1, 2, device=device),))
    torch.export.save(exported, str(FOLDER / f"exported on {device}.pt2"))
"""

FACTORIES = {
    "empty": "assert torch.empty(3, device='spirv').is_spirv",
    "tensor": "expect(torch.tensor([1.0, 2.0], device='spirv'), [1, 2])",
    "full, by an index": "expect(torch.full((2,), 7, device='spirv:0'), [7, 7])",
    "arange of a device": "expect(torch.arange(3, device=torch.device('spirv')), [0, 1, 2])",
    "a context": "with torch.device('spirv'): x = torch.ones(2)\nexpect(x, [1, 1])",
    "a context of a module": "with torch.device('spirv'): m = torch.nn.Linear(3, 2)\nassert m.weight.is_spirv",
    "the default": "torch.set_default_device('spirv')\nexpect(torch.ones(2), [1, 1])",
    "zeros_like": "expect(torch.zeros_like(torch.ones(2), device='spirv'), [0, 0])",
    "empty_like of meta": "assert torch.empty_like(torch.empty(2, device='meta'), device='spirv').is_spirv",
    "new_full": "expect(torch.ones(2).new_full((2,), 4, device='spirv'), [4, 4])",
    "a sum": "assert torch.full((2,), 7, device=torch.device('spirv')).sum().item() == 14",
    "new_tensor": "expect(torch.ones(2).new_tensor([4], device='spirv'), [4])",
    "asarray of NumPy's": "import numpy\nexpect(torch.asarray(numpy.arange(3), device='spirv'), [0, 1, 2])",
    "as_tensor of NumPy's": "import numpy\nexpect(torch.as_tensor(numpy.arange(3), device='spirv'), [0, 1, 2])",
    "a buffer": "expect(torch.frombuffer(b'abc', dtype=torch.uint8).to('spirv'), [97, 98, 99])",
    "the old constructor": "assert torch.Tensor(3).to('spirv').is_spirv",
    "random numbers": "assert torch.rand(3, device='spirv').is_spirv",
    "inference mode": "with torch.inference_mode(): x = torch.ones(2, device='spirv')\nexpect(x, [1, 1])",
    "four threads": """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(4) as pool:
            for x in pool.map(lambda n: torch.full((2,), n, device='spirv'), range(4)): assert x.is_spirv
        """,
    "eight threads at once": """
        import threading
        from concurrent.futures import ThreadPoolExecutor
        from triton.backends.spirv.runtime.vulkan import loader
        made, all_there, begin = [], threading.Barrier(8), loader.Instance.__init__
        def counted(self): made.append(self); begin(self)
        loader.Instance.__init__ = counted
        def full(n): all_there.wait(); return torch.full((2,), n, device='spirv')
        with ThreadPoolExecutor(8) as pool:
            for n, x in enumerate(pool.map(full, range(8))): expect(x, [n, n])
        from triton.backends.spirv.runtime.device_choice import selected
        assert len(made) == (selected().api == 'Vulkan'), f'{len(made)} instances of Vulkan'
        """,
    "a fake tensor": """
        from torch._subclasses import FakeTensorMode
        with FakeTensorMode(): x = torch.empty(3, device='spirv')
        assert x.device == torch.device('spirv', 0), x.device
        expect(torch.ones(2, device='spirv'), [1, 1])
        """,
    "a device that there is not": """
        try: torch.empty(3, device='spirv:99')
        except Exception as error: assert '99' in str(error), error
        else: assert False
        """,
}
MOVES = {
    "to": "expect(torch.ones(2).to('spirv'), [1, 1])",
    "to, with a type": "expect(torch.ones(2).to('spirv', torch.int32, non_blocking=True), [1, 1])",
    "to, by an index": "torch.spirv.set_device(0)\nexpect(torch.ones(2).to(0), [1, 1])",
    "spirv()": "expect(torch.ones(2).spirv(), [1, 1])",
    "of a leaf": "x = torch.ones(2, requires_grad=True)\nx.to('spirv').backward(torch.ones(2, device='spirv'))\n"
    "assert x.grad.tolist() == [1, 1] and not x.grad.is_spirv",
    "in a backward pass": """
        class Here(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x.clone()
            @staticmethod
            def backward(ctx, gradient): return gradient.to('spirv').cpu()
        x = torch.ones(2, requires_grad=True)
        Here.apply(x).sum().backward()
        assert x.grad.tolist() == [1, 1]
        """,
    "of a class of tensors": """
        class Ours(torch.Tensor): pass
        x = torch.ones(2).as_subclass(Ours).to('spirv')
        assert type(x) is Ours and x.is_spirv
        """,
    "of a storage": "s = torch.arange(3, dtype=torch.uint8).untyped_storage().to(device='spirv')\n"
    "assert s.device.type == 'spirv' and s.tolist() == [0, 1, 2]",
    "of a storage, by name": "s = torch.arange(3, dtype=torch.uint8).untyped_storage().spirv()\n"
    "assert s.device.type == 'spirv' and s.tolist() == [0, 1, 2]",
    "a storage": "assert torch.UntypedStorage(8, device='spirv').device.type == 'spirv'",
    "a storage's bytes": "assert torch.UntypedStorage([1, 2], device=torch.device('spirv')).tolist() == [1, 2]",
    "a storage of numbers": "assert torch.TypedStorage([1, 2], dtype=torch.int32, device='spirv').tolist() == [1, 2]",
    "a storage, made as before": "new = torch.UntypedStorage.__new__\n"
    "assert torch.UntypedStorage(8, device='spirv').device.type == 'spirv' and torch.UntypedStorage.__new__ is new",
}
#: What is done to a module with a tied parameter; then that its parameters are there, and still tied.
_MODULES = {
    "to": "m = m.to('spirv')",
    "to a device": "m = m.to(device=torch.device('spirv', 0))",
    "to, with a type": "m = m.to('spirv', torch.float16)",
    "to that of a tensor": "m = m.to(torch.ones(1, device='spirv'))",
    "to, by an index": "torch.spirv.set_device(0); m = m.to(0)",
    "spirv()": "m = m.spirv()",
    "_apply": "m = m._apply(lambda x: x.to('spirv'))",
    "of a copy": "import copy; m = copy.deepcopy(m).to('spirv')",
    "overwritten": "torch.__future__.set_overwrite_module_params_on_conversion(True); m = m.to('spirv')",
    "swapped": "torch.__future__.set_swap_module_params_on_conversion(True); m = m.to('spirv')",
    "shared": "m = m.share_memory().to('spirv')",
    "from meta": "with torch.device('meta'): m = tied()\nm = m.to_empty(device='spirv')",
    "scripted": "m = list(torch.jit.script(m).to('spirv').children())",
    "traced, within another": "m = torch.nn.Sequential(*torch.jit.trace(m, torch.tensor([1])).children()).to('spirv')",
    "assigned": "m.load_state_dict({k: v.to('spirv') for k, v in m.state_dict().items()}, assign=True)\n"
    "m[1].weight = m[0].weight",
}
MODULES = {
    **{f"a tied module: {name}": f"m = tied()\n{how}\nstill_tied(m)" for name, how in _MODULES.items()},
    "a module made there": "assert torch.nn.Linear(3, 2, device='spirv').weight.is_spirv",
    "skip_init": "assert torch.nn.utils.skip_init(torch.nn.Linear, 3, 2, device='spirv').weight.is_spirv",
    "a module that is not initialized": "assert torch.nn.LazyLinear(3).to('spirv').weight.device.type == 'spirv'",
    "an LSTM": "m = torch.nn.LSTM(3, 2).to('spirv')\nassert all(w is m.weight_ih_l0 for w in m._flat_weights[:1])",
    "a class of parameters": """
        class Ours(torch.nn.Parameter): pass
        m = torch.nn.Linear(2, 2)
        m.weight = Ours(torch.ones(2, 2))
        assert m.to('spirv').weight.is_spirv
        """,
    "a module with hooks and buffers": """
        m = torch.nn.BatchNorm1d(3)
        m.register_full_backward_hook(lambda *_: None)
        assert all(x.is_spirv for x in m.to('spirv').state_dict().values())
        """,
    "a scripted module": "m = torch.jit.script(torch.nn.Linear(3, 2)).to('spirv')\nassert m.weight.is_spirv",
    # It takes CUDA where that is there, whatever the module is on.
    "DataParallel": "m = torch.nn.DataParallel(torch.nn.Linear(3, 2).to('spirv'), device_ids=[0])\n"
    "assert m.module.weight.device.type == ('cuda' if torch.cuda.is_available() else 'spirv')",
    "an optimizer": """
        p = torch.nn.Parameter(torch.ones(2))
        o = torch.optim.SGD([p], lr=0.5)
        p.grad = torch.ones(2)
        o.step()
        q = torch.nn.Parameter(p.detach().to('spirv'))
        assert q.is_spirv
        """,
}
FILES = {
    "load": "expect(torch.load(FOLDER / 'spirv.pt'), [0, 1, 2])",
    "load a file of the CPU": "expect(torch.load(FOLDER / 'cpu.pt', map_location='spirv')['x'], [0, 1, 2])",
    "load to a device": "expect(torch.load(FOLDER / 'cpu.pt', map_location=torch.device('spirv', 0))['x'], [0, 1, 2])",
    "load by a table": "expect(torch.load(FOLDER / 'cpu.pt', map_location={'cpu': 'spirv:0'})['x'], [0, 1, 2])",
    "load by a function": "expect(torch.load(FOLDER / 'cpu.pt', map_location=lambda s, _: s.spirv())['x'], [0, 1, 2])",
    "load mapped": "expect(torch.load(FOLDER / 'cpu.pt', map_location='spirv', mmap=True)['x'], [0, 1, 2])",
    "load all kinds": "expect(torch.load(FOLDER / 'spirv.pt', weights_only=False), [0, 1, 2])",
    "load to the CPU": "assert torch.load(FOLDER / 'spirv.pt', map_location='cpu').tolist() == [0, 1, 2]",
    "unpickle": "import pickle\nexpect(pickle.loads((FOLDER / 'tensor.pickle').read_bytes()), [0, 1, 2])",
    "unpickle a parameter": "import pickle\n"
    "expect(pickle.loads((FOLDER / 'parameter.pickle').read_bytes()).detach(), [0, 1, 2])",
    "unpickle a module": "import pickle\nstill_tied(pickle.loads((FOLDER / 'module.pickle').read_bytes()))",
    "a scripted module's file": "m = torch.jit.load(str(FOLDER / 'scripted.pt'), map_location='spirv')\n"
    "assert m.weight.is_spirv",
    "a checkpoint, assigned": """
        m = torch.nn.Linear(2, 2)
        m.load_state_dict(torch.load(FOLDER / 'linear.pt', map_location='spirv'), assign=True)
        assert m.weight.is_spirv and m.bias.is_spirv
        """,
    "a checkpoint into a model there": """
        with torch.device('spirv'): m = torch.nn.Linear(2, 2)
        state = torch.load(FOLDER / 'linear.pt')
        m.load_state_dict(state)
        assert m.weight.tolist() == state['weight'].tolist()
        """,
}
SEEDS = {
    "a generator": "g = torch.Generator(device='spirv').manual_seed(3)\n"
    "a = torch.rand(3, device='spirv', generator=g).tolist()\nassert a == torch.rand(3, device='spirv', "
    "generator=g.manual_seed(3)).tolist()",
    "a generator of a device": "assert torch.Generator(torch.device('spirv', 0)).device == torch.device('spirv', 0)",
    "seeded before": "torch.manual_seed(3)\na = torch.rand(3, device='spirv').tolist()\ntorch.manual_seed(3)\n"
    "assert a == torch.rand(3, device='spirv').tolist()",
    "seeded by the device": "torch.spirv.manual_seed(3)\na = torch.rand(3, device='spirv').tolist()\n"
    "torch.spirv.manual_seed(3)\nassert a == torch.rand(3, device='spirv').tolist()",
    "seeded by the device, for all": "torch.spirv.manual_seed_all(3)\na = torch.rand(3, device='spirv').tolist()\n"
    "torch.spirv.manual_seed_all(3)\nassert a == torch.rand(3, device='spirv').tolist()",
    "seeded after a question": "torch.spirv.is_available()\ntorch.manual_seed(3)\n"
    "a = torch.rand(3, device='spirv').tolist()\ntorch.manual_seed(3)\n"
    "assert a == torch.rand(3, device='spirv').tolist()",
    "a state": "state = torch.spirv.get_rng_state()\na = torch.rand(3, device='spirv').tolist()\n"
    "torch.spirv.set_rng_state(state)\nassert a == torch.rand(3, device='spirv').tolist()",
    "fork_rng": "with torch.random.fork_rng(device_type='spirv'): a = torch.rand(3, device='spirv').tolist()\n"
    "assert a == torch.rand(3, device='spirv').tolist()",
    "a seed for dropout": "torch.manual_seed(1)\nx = torch.nn.Dropout()(torch.ones(8, device='spirv')).tolist()\n"
    "torch.manual_seed(1)\nassert x == torch.nn.Dropout()(torch.ones(8, device='spirv')).tolist()",
}
MODULE_OF_TORCH = {
    **{
        f"torch.spirv.{call}": f"torch.spirv.{call}\nexpect(torch.ones(2, device='spirv'), [1, 1])"
        for call in (
            "is_available()",
            "device_count()",
            "current_device()",
            "synchronize()",
            "empty_cache()",
            "set_device(0)",
            "memory_allocated()",
            "get_device_properties()",
            "get_device_name()",
            "Stream()",
            "Event()",
            "mem_get_info()",
            "init()",
            "is_initialized()",
            "current_stream()",
            "reset_peak_memory_stats()",
        )
    },
    "import torch.spirv": "import torch.spirv\nassert torch.spirv.device_count() >= 1",
    "from torch import spirv": "from torch import spirv\nassert spirv.device_count() >= 1\n"
    "expect(torch.ones(2, device='spirv'), [1, 1])\nassert spirv.memory_allocated() >= 0",
    "a function that there is not": "assert not hasattr(torch.spirv, 'no_such_function')",
    "torch.spirv.device": "with torch.spirv.device(0): expect(torch.ones(2, device='spirv'), [1, 1])",
    "get_device_module": "assert torch.get_device_module('spirv').device_count() >= 1",
    "a stream": "with torch.Stream(device='spirv'): expect(torch.ones(2, device='spirv'), [1, 1])",
    "an event": "e = torch.Event(device='spirv')\ne.record()\ne.synchronize()",
    "no accelerator": """
        import os
        for name in ('BACKEND', 'DEVICE'): os.environ.pop(f'TRITON_SPIRV_{name}', None)
        os.environ.pop('TRITON_DEFAULT_BACKEND', None)
        before = torch.accelerator.current_accelerator()
        torch.ones(1, device='spirv')
        from triton.backends.spirv.runtime.context import current
        assert (before is None) == (current().device.kind == 'cpu'), before
        assert torch.accelerator.current_accelerator().type == 'spirv'
        """,
    "an accelerator": "import os\nos.environ['TRITON_SPIRV_BACKEND'] = '1'\n"
    "assert torch.accelerator.is_available() and torch.accelerator.device_count() >= 1\n"
    "torch.accelerator.synchronize()\nexpect(torch.ones(2, device=torch.accelerator.current_accelerator()), [1, 1])",
    "an accelerator's index": "import os\nos.environ['TRITON_SPIRV_BACKEND'] = '1'\n"
    "expect(torch.ones(2, device=0), [1, 1])\nstill_tied(tied().to(0))",
    "Triton's driver": """
        import os
        os.environ['TRITON_SPIRV_BACKEND'] = '1'
        import triton
        from triton.backends.spirv.runtime.context import current
        place = triton.runtime.driver.active.get_active_torch_device().type
        assert place == ('cpu' if current().host_memory == 'zero-copy' else 'spirv'), place
        expect(torch.ones(2, device='spirv'), [1, 1])
        """,
}
AROUND = {
    "autocast": "with torch.autocast('spirv', dtype=torch.bfloat16):\n"
    "    x = torch.ones(2, 2, device='spirv') @ torch.ones(2, 2, device='spirv')\nassert x.dtype == torch.bfloat16",
    "what autocast can do": "assert torch.amp.is_autocast_available('spirv')\n"
    "assert torch.get_autocast_dtype('spirv') is not None",
    "a scaler": "s = torch.amp.GradScaler('spirv')\nassert s.scale(torch.ones(1, device='spirv')).item() == 65536",
    "pin_memory": "x = torch.ones(2).pin_memory('spirv')\nassert x.tolist() == [1, 1]",
    "pin_memory of no device": """
        try: assert torch.ones(2).pin_memory().tolist() == [1, 1]
        except RuntimeError as error: assert 'accelerator' in str(error), error
        expect(torch.ones(2, device='spirv'), [1, 1])
        """,
    "is_pinned": "assert not torch.ones(2).is_pinned()\nexpect(torch.ones(2, device='spirv'), [1, 1])",
    "a loader that pins": """
        import warnings
        warnings.simplefilter('ignore')
        loader = torch.utils.data.DataLoader(torch.arange(4.0), batch_size=2, pin_memory=True)
        expect([x.to('spirv') for x in loader][1], [2, 3])
        """,
    "a loader's workers": """
        loader = torch.utils.data.DataLoader(torch.arange(4.0), batch_size=2, num_workers=1)
        expect([x.to('spirv') for x in loader][1], [2, 3])
        """,
    "in a loader's worker": """
        def sums(rows): return torch.stack(rows).to('spirv').cpu()
        loader = torch.utils.data.DataLoader(torch.arange(4.0), batch_size=2, num_workers=1, collate_fn=sums)
        assert [x.tolist() for x in loader] == [[0, 1], [2, 3]]
        """,
    "a fork after the first use": """
        import os
        expect(torch.ones(2, device='spirv'), [1, 1])
        usable = torch.spirv.get_device_properties(0).driver.startswith('cpu ')  # no driver has threads in the parent
        child = os.fork()
        if child == 0:
            try: os._exit(2 if torch.ones(2, device='spirv').tolist() == [1, 1] else 1)
            except RuntimeError as error: os._exit(7 if 'fork' in str(error) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (2 if usable else 7)
        """,
    "a custom operation": """
        @torch.library.custom_op('tests::twice', mutates_args=(), device_types='spirv')
        def twice(x: torch.Tensor) -> torch.Tensor: return x.clone().fill_(2)
        expect(twice(torch.ones(2, device='spirv')), [2, 2])
        """,
    "an operation for another device": """
        @torch.library.custom_op('tests::twice', mutates_args=())
        def twice(x: torch.Tensor) -> torch.Tensor: return x.clone().fill_(2)
        @twice.register_kernel('spirv')
        def _(x): return x.clone().fill_(3)
        expect(twice(torch.ones(2, device='spirv')), [3, 3])
        """,
    "a checkpointed function": """
        from torch.utils.checkpoint import checkpoint
        x = torch.ones(2, requires_grad=True)
        checkpoint(lambda x: x.to('spirv').cpu(), x, use_reentrant=False).sum().backward()
        assert x.grad.tolist() == [1, 1]
        """,
    "a saved tensor's hook": """
        x = torch.ones(2, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.to('spirv'), lambda t: t.cpu()): y = (x * x).sum()
        y.backward()
        assert x.grad.tolist() == [2, 2]
        """,
    "torch.compile": """
        x = torch.compile(lambda: torch.ones(2, device='spirv'), backend='eager')()
        expect(x, [1, 1])
        """,
    "a sparse tensor": """
        try: torch.sparse_coo_tensor([[0]], [1.0], (2,), device='spirv')
        except (RuntimeError, NotImplementedError) as error: assert 'parse' in str(error), error
        else: assert False
        """,
}
PROCESSES = {
    "a spawned process": """
        import torch.multiprocessing as processes
        with processes.get_context('spawn').Pool(1) as pool: assert pool.apply(doubled, ([1, 2],)) == [2, 4]
        """,
    "a spawned process, after the first use": """
        expect(torch.ones(2, device='spirv'), [1, 1])
        import torch.multiprocessing as processes
        with processes.get_context('spawn').Pool(1) as pool: assert pool.apply(doubled, ([1, 2],)) == [2, 4]
        """,
    "processes of a server": """
        import torch.multiprocessing as processes
        with processes.get_context('forkserver').Pool(2) as pool:
            assert pool.map(doubled, [[1], [2]]) == [[2], [4]]
        """,
    "torch.multiprocessing.spawn": "torch.multiprocessing.spawn(rank, nprocs=2)",
    "a spawned process that fails": """
        try: torch.multiprocessing.spawn(rank, args=('spirv:99',))
        except torch.multiprocessing.ProcessRaisedException as error: assert '99' in str(error), error
        else: assert False
        """,
    "a tensor for a spawned process": """
        x = torch.ones(2, device='spirv')
        process = torch.multiprocessing.get_context('spawn').Process(target=print, args=(x,))
        try: process.start()
        except RuntimeError as error: assert 'x.cpu()' in str(error), error
        else: assert False
        """,
    "a tensor from a spawned process": """
        with torch.multiprocessing.get_context('spawn').Pool(1) as pool:
            x = pool.apply(torch.full, ((2,), 3.0))
        expect(x.to('spirv'), [3, 3])
        """,
}
#: safetensors has a list of the devices' names; an index it leaves to torch. ``load_file`` knows this name from here.
SAFETENSORS = {
    name: "from safetensors import torch as files\nfile = FOLDER / 'x.safetensors'\n"
    f"files.save_file({{'x': torch.arange(3.0)}}, file)\n{code}"
    for name, code in {
        "load_file": "expect(files.load_file(file, device=0)['x'], [0, 1, 2])",
        "load_file, moved": "expect(files.load_file(file)['x'].to('spirv'), [0, 1, 2])",
        "safe_open": "from safetensors import safe_open\nwith safe_open(file, 'pt', device=0) as opened:\n"
        "    expect(opened.get_tensor('x'), [0, 1, 2])\n    expect(opened.get_slice('x')[1:], [1, 2])",
        "save_file": "files.save_file({'x': torch.ones(2, device='spirv')}, file)\n"
        "assert files.load_file(file)['x'].tolist() == [1, 1]",
        "load_model": "m = tied()\nfiles.save_model(m, file)\nm.to('spirv')\nfiles.load_model(m, file)\nstill_tied(m)",
        "load_file by name": "for device in ('spirv', 'spirv:0', torch.device('spirv')):\n"
        "    expect(files.load_file(file, device=device)['x'], [0, 1, 2])\n"
        "assert files.load_file(file, 'cpu')['x'].device.type == files.load_file(file)['x'].device.type == 'cpu'",
        "load_model by name": "m = tied()\nfiles.save_model(m, file)\nm.to('spirv')\n"
        "files.load_model(m, file, device='spirv')\nstill_tied(m)",
        "a name that safe_open does not know": "from safetensors import safe_open\n"
        "try: safe_open(file, 'pt', device='spirv')\n"
        "except Exception as error: assert 'device spirv is invalid' in str(error), error\nelse: assert False",
    }.items()
}
EXPORTED = {
    "torch.export": """
        m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).to('spirv')
        x = torch.ones(1, 2, device='spirv')
        assert torch.equal(torch.export.export(m, (x,)).module()(x), m(x))
        """,
    "torch.export of a function's tensors": """
        class Made(torch.nn.Module):
            def forward(self, x): return x.to('spirv') + torch.ones(2, device='spirv')
        exported = torch.export.export(Made(), (torch.ones(2),))
        expect(exported.module()(torch.ones(2)), [2, 2])
        """,
    "an exported module, moved": """
        from torch.export.passes import move_to_device_pass
        exported = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
        assert move_to_device_pass(exported, 'spirv').module()(torch.ones(1, 2, device='spirv')).is_spirv
        """,
    "an exported module's file": """
        exported = torch.export.load(FOLDER / 'exported on spirv.pt2')
        assert exported.module()(torch.ones(1, 2, device='spirv')).is_spirv
        """,
    "an exported module's file, moved": """
        from torch.export.passes import move_to_device_pass
        exported = move_to_device_pass(torch.export.load(FOLDER / 'exported on cpu.pt2'), 'spirv')
        assert exported.module()(torch.ones(1, 2, device='spirv')).is_spirv
        """,
    "torch.export with sizes that are open": """
        size = torch.export.Dim('size')
        m, x = torch.nn.Linear(2, 2).to('spirv'), torch.ones(3, 2, device='spirv')
        exported = torch.export.export(m, (x,), dynamic_shapes=({0: size},))
        assert torch.equal(exported.module()(x[:2]), m(x[:2]))
        """,
}
GROUPS = {
    "factories": FACTORIES, "moves": MOVES, "modules": MODULES, "files": FILES, "seeds": SEEDS,
    "torch.spirv": MODULE_OF_TORCH, "around": AROUND, "processes": PROCESSES, "export": EXPORTED,
    "safetensors": SAFETENSORS,
}  # fmt: skip
USES = {f"{group}: {name}": textwrap.dedent(code) for group, uses in GROUPS.items() for name, code in uses.items()}

#: Those that are also begun with before triton is imported.
BEFORE_TRITON = [
    "factories: a sum",
    "moves: spirv()",
    "moves: a storage",
    *(f"modules: a tied module: {how}" for how in ("to", "to a device", "spirv()")),
    "files: load",
    *(f"torch.spirv: torch.spirv.{call}()" for call in ("current_device", "device_count")),
]


def doubled(numbers: list[float]) -> list[float]:
    """What other processes run."""
    import torch

    result: list[float] = torch.tensor(numbers, device="spirv").mul(2).tolist()
    return result


def rank(number: int, device: str = "spirv") -> None:
    """What the processes of torch.multiprocessing.spawn run."""
    import torch

    assert torch.full((2,), number, device=device).tolist() == [number, number]


def _names(folder: Path) -> dict[str, Any]:
    import torch

    def expect(x: Any, numbers: list[float]) -> None:
        assert x.is_spirv and x.device.index == 0, x.device
        assert x.tolist() == numbers, x.tolist()

    def tied() -> Any:
        model = torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False))
        model[1].weight = model[0].weight
        return model

    def still_tied(model: Any) -> None:
        assert model[0].weight.is_spirv, model[0].weight.device
        assert model[0].weight is model[1].weight, "the parameters have become two"

    return {"torch": torch, "FOLDER": folder, "expect": expect, "tied": tied, "still_tied": still_tied,
            "doubled": doubled, "rank": rank}  # fmt: skip


def _run(code: str, folder: Path) -> tuple[int, str]:
    """The exit status of a fork that runs ``code``, and what it wrote last."""
    status, out, err = forked(lambda: exec(code, _names(folder)))
    return status, (out + err)[-2000:]


def _import_triton() -> None:
    import triton.backends.spirv.torch.registration  # noqa: F401  registers nothing
    from triton.backends.spirv.compiler import sources_digest
    from triton.runtime.cache import triton_key

    triton_key()  # what every cache key has, of the installed files: no use of the device
    sources_digest()


def main(*arguments: str) -> None:
    """The server."""
    import sympy  # noqa: F401  which torch imports for the first operation
    import torch  # noqa: F401  so that no fork imports it again

    if "torch" not in arguments:
        _import_triton()
    assert ("triton" in sys.modules) == ("torch" not in arguments)

    with tempfile.TemporaryDirectory() as folder:
        status, said = _run(PREPARED, Path(folder))
        for line in sys.stdin:
            answer = _run(USES[json.loads(line)], Path(folder)) if status == 0 else (status, said)
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
