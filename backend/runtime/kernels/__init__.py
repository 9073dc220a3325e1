"""One kernel on one device: its module and pipeline, and what the driver made of them."""
