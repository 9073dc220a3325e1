"""A plugin of the tests: Python only, a dash in its folder name, white space in its name.conf."""
