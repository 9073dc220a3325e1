from triton.backends import compiler


class NvidiaBackend(compiler.BaseBackend):
    @staticmethod
    def supports_target(target):
        return target == "nvidia"
