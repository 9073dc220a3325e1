"""torch.compile on Vulkan devices: what Dynamo and Inductor need to know of them (docs/torch.md).

``internals/`` alone touches what torch keeps private. It is installed by ``install()``, which imports nothing of
torch's compiler: each change waits until torch imports the module that it belongs to.
"""
