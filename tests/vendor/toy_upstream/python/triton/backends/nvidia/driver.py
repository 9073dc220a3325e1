from triton.backends import driver


class NvidiaDriver(driver.DriverBase):
    @classmethod
    def is_active(cls):
        return False
