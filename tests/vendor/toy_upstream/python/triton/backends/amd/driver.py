from triton.backends import driver


class AmdDriver(driver.DriverBase):
    @classmethod
    def is_active(cls):
        return False
