"""The least that is a compiler class; for the toy upstream."""

from triton.backends import compiler


class NativeToyBackend(compiler.BaseBackend):
    @staticmethod
    def supports_target(target):
        return target == "native_toy"
