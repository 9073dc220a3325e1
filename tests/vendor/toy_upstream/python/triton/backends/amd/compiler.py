from triton.backends import compiler


class AmdBackend(compiler.BaseBackend):
    @staticmethod
    def supports_target(target):
        return target == "amd"
