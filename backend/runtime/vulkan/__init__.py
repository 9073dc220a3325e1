"""Vulkan itself: the loader, what devices report and which one is used, and the driver's compiler."""
