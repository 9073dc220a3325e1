"""What is raised inside a backward pass arrives in the program that asked for it, as with torch's CPU."""

import subprocess
import sys

_PROGRAM = """
import os, signal, sys, threading
import torch
from torch.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
def bad(*_): raise KeyError("mine")
def interrupt(_): signal.raise_signal(signal.SIGINT)
class Raises(torch.autograd.Function):
    forward, backward = staticmethod(lambda ctx, x: x * 2), staticmethod(bad)
class Nested(Raises):
    backward = staticmethod(torch.enable_grad()(lambda ctx, g: hooked(bad)))
def leaf(): return torch.ones(3, device=device, requires_grad=True)
def hooked(hook, on=lambda y: y.register_hook, run=lambda y, x: y.backward()):
    x = leaf(); y = (x * 2).exp(); on(y)(hook); run(y.sum(), x)
def of_leaf(on): x = leaf(); on(x)(bad); (x * 2).sum().backward()
def of_module(name): m = torch.nn.Linear(3, 3).to(device); getattr(m, name)(bad); m(leaf()).sum().backward()
def recomputed(reentrant):
    once = iter([torch.exp])
    checkpoint(lambda x: next(once, bad)(x), leaf(), use_reentrant=reentrant).sum().backward()
def of_several(): a, b = leaf(), leaf(); register_multi_grad_hook((a, b), bad); (a * b).sum().backward()
def saved():
    with saved_tensors_hooks(lambda x: x, bad): y = leaf().exp() * leaf()
    y.sum().backward()
def twice():
    x = leaf(); g, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True); g.register_hook(bad); g.sum().backward()
def in_a_thread():
    raised = []
    def work():
        try: hooked(bad)
        except KeyError as error: raised.append(error)
    thread = threading.Thread(target=work); thread.start(); thread.join()
    raise raised[0]
CASES = [lambda: hooked(bad), lambda: hooked(bad, lambda y: y.grad_fn.register_hook), lambda: hooked(interrupt),
         lambda: hooked(bad, lambda y: y.grad_fn.register_prehook), lambda: hooked(lambda _: sys.exit(3)),
         lambda: hooked(bad, run=torch.autograd.grad), lambda: hooked(lambda g: g[:2]),
         lambda: of_leaf(lambda x: x.register_hook), lambda: of_leaf(lambda x: x.register_post_accumulate_grad_hook),
         lambda: of_module("register_full_backward_hook"), lambda: of_module("register_full_backward_pre_hook"),
         lambda: Raises.apply(leaf()).sum().backward(), lambda: Nested.apply(leaf()).sum().backward(),
         lambda: recomputed(True), lambda: recomputed(False), of_several, saved, twice, in_a_thread]
for case in CASES:
    raised = []
    for device in "cpu", "spirv":
        try: case()
        except BaseException as error: raised.append(repr(error))
    print(*raised, sep="\\n", flush=True)
"""


def test_the_error_is_that_of_the_program() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    raised = done.stdout.splitlines()
    assert done.returncode == 0 and len(raised) == 2 * 19, done.stdout + done.stderr
    assert raised[::2] == raised[1::2] and raised.count("KeyError('mine')") == 2 * 16, done.stdout
