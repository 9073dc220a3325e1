"""The functions that kernels call by symbol (``tt.extern_elementwise``): libdevice's, and CUDA's names for them."""
